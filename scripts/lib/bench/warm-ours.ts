/**
 * Attaches containers to a network in process and takes them off again, and prints how long each took, in milliseconds:
 * {"ADD":[...],"DEL":[...]}. The peer of libcni-go.
 *
 *   warm-ours.ts CONFLIST CACHE-DIR NETNS...
 */
import { basename, dirname } from "node:path";
import { inProcess } from "@tscni/in-process";
import bridge from "@tscni/plugin-bridge";
import hostLocal from "@tscni/plugin-host-local";
import { Networking } from "@tscni/runtime";

const [, , listFile, cacheDir, ...containers] = process.argv as [string, string, string, string, ...string[]];
const networking = new Networking({
  pluginDirs: ["/nowhere"],
  cacheDir,
  exec: inProcess([bridge, hostLocal]),
});
networking.load({ listFile });

const timed = async (work: Promise<unknown>, begin = performance.now()) => {
  await work;
  return performance.now() - begin;
};
const idOf = (netns: string) => basename(dirname(netns));
const took: Record<"ADD" | "DEL", number[]> = { ADD: [], DEL: [] };
for (const netns of containers) took.ADD.push(await timed(networking.setup(idOf(netns), netns)));
for (const netns of containers) took.DEL.push(await timed(networking.remove(idOf(netns), netns)));
console.log(JSON.stringify(took));
