import type { Attachment } from "@tscni/libcni";
import { decodeResult } from "@tscni/types";
import { type Context, libcniOf } from "../context.ts";
import { jsonText } from "../json.ts";
import { table } from "../style.ts";

/** Lists what the cache knows, of one network or of all. */
export async function run(context: Context): Promise<number> {
  const { io, json, style, words } = context;
  const { attachments, problems } = (await libcniOf(context)).readCache();
  const shown = words.length === 0 ? attachments : attachments.filter((a) => words.includes(a.network));
  if (json) io.stdout(jsonText(shown.map(toJson)));
  else if (shown.length > 0) io.stdout(table(heading, shown.map(toRow), style));
  else io.stderr(`Nothing is attached${words.length > 0 ? ` to ${words.join(", ")}` : ""}.\n`);
  for (const { file, message } of problems) io.stderr(`Warning: ${file}: ${message}\n`);
  return 0;
}

const heading = ["NETWORK", "CONTAINER", "IFNAME", "ADDRESSES", "NETNS", "STATE"];

function toRow(a: Attachment): string[] {
  const state = a.failed ? `${a.failed.verb} failed at ${a.failed.plugin}` : "attached";
  return [a.network, a.containerId, a.ifName, addressesOf(a).join(" ") || "-", a.netns || "-", state];
}

function toJson(a: Attachment) {
  const { network, containerId, ifName, netns, args, capabilityArgs, result, failed, file } = a;
  return {
    network,
    containerId,
    ifName,
    netns,
    addresses: addressesOf(a),
    args,
    capabilityArgs,
    result: result ?? null,
    failed: failed ?? null,
    file,
  };
}

/** The addresses of the stored result; none when it is damaged, which is no reason to hide the attachment. */
function addressesOf({ result }: Attachment): string[] {
  try {
    return result ? decodeResult(result, "").ips.map((ip) => ip.address) : [];
  } catch {
    return [];
  }
}
