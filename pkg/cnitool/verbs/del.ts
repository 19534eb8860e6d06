import type { CallOptions, Libcni, RuntimeConf } from "@tscni/libcni";
import { type Context, callOptions, libcniOf } from "../context.ts";
import { jsonText } from "../json.ts";
import { attachmentOf, runtimeOf } from "../runtime.ts";

/** DEL; silent when all is gone. */
export async function run(context: Context): Promise<number> {
  const network = context.words[0]!;
  const libcni = await libcniOf(context);
  const options = callOptions(context);
  let rt: RuntimeConf;
  if (context.flags.on("cached")) {
    rt = runtimeOf(context);
    await deleteCached(libcni, network, rt, options);
  } else {
    const attachment = await attachmentOf(context);
    rt = attachment.rt;
    await libcni.delNetworkList(attachment.list, rt, options);
  }
  const { containerId, ifName, netns } = rt;
  if (context.json) context.io.stdout(jsonText({ network, containerId, ifName, netns, deleted: true }));
  return 0;
}

/** DEL with the config that ADD remembered, for a network whose config is gone. */
async function deleteCached(
  libcni: Libcni,
  network: string,
  rt: RuntimeConf,
  options: CallOptions,
): Promise<void> {
  const { containerId, ifName } = rt;
  const attachment = libcni
    .getCachedAttachments(containerId)
    .find((a) => a.network === network && a.ifName === ifName);
  if (attachment === undefined)
    throw new Error(
      `nothing is remembered of interface "${ifName}" of ${containerId} on network "${network}"`,
    );
  await libcni.delAttachment(attachment, options);
}
