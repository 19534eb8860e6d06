import { readdirSync } from "node:fs";
import { nearest } from "@tscni/conf";
import type { CallOptions, Libcni } from "@tscni/libcni";
import { messageOf } from "@tscni/types";
import type { Finding } from "../io.ts";
import { messageLines } from "../message.ts";
import type { CheckedNetwork } from "./network.ts";
import { error } from "./report.ts";

/** Asks every plugin that the networks need, once, whether it is there and which versions it supports. */
export async function checkExecutables(
  networks: readonly CheckedNetwork[],
  libcni: Libcni,
  dirs: readonly string[],
  options: CallOptions,
): Promise<void> {
  const types = new Set(networks.flatMap((n) => n.needed.map(({ type }) => type)));
  const answers = new Map<string, string[] | Finding>();
  await Promise.all(
    [...types].map(async (type) => answers.set(type, await versionsOf(type, libcni, dirs, options))),
  );
  for (const { network, needed } of networks)
    for (const { type, conf, path } of needed) {
      const answer = answers.get(type)!;
      if (!Array.isArray(answer)) conf.add([answer], path);
      else if (network.cniVersion !== "" && !answer.includes(network.cniVersion))
        conf.add(
          [
            error(
              "",
              `"${type}" supports ${answer.join(", ")}, but the network asks for ${network.cniVersion}`,
            ),
          ],
          path,
        );
    }
}

async function versionsOf(
  type: string,
  libcni: Libcni,
  dirs: readonly string[],
  options: CallOptions,
): Promise<string[] | Finding> {
  try {
    return (await libcni.getVersionInfo(type, options)).supportedVersions;
  } catch (thrown) {
    const names = dirs.flatMap(namesIn);
    const meant = names.includes(type) ? undefined : nearest(type, names);
    return error(
      "",
      `${messageLines(messageOf(thrown)).headline}${meant ? `; did you mean "${meant}"?` : ""}`,
    );
  }
}

function namesIn(dir: string): string[] {
  try {
    return readdirSync(dir);
  } catch {
    return [];
  }
}
