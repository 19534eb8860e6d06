import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach } from "vitest";
import { main } from "../index.ts";
import { containerIdOf } from "../runtime.ts";

/*
 * For tests: a folder with plugins that are real programs, a network "net" of two of them, and a cache. The
 * plugins are scripts, so Windows skips these tests.
 */

/** A plugin that logs its calls, answers ADD with one address, and fails the verbs named in its config's "fail". */
const plugin = `#!/bin/sh
conf=$(cat)
log=$(dirname "$0")/../log
case $CNI_COMMAND in
  VERSION) echo '{"cniVersion":"1.1.0","supportedVersions":["1.0.0","1.1.0"]}'; exit ;;
esac
echo "$(basename "$0") $CNI_COMMAND $CNI_CONTAINERID $CNI_IFNAME $CNI_NETNS $CNI_ARGS" >> "$log"
echo "$conf" >> "$log.conf"
case $conf in
  *'"fail":"'$CNI_COMMAND'"'*) echo '{"code":100,"msg":"no luck","details":"today"}'; exit 1 ;;
  *'"hang":"'$CNI_COMMAND'"'*) exec sleep 60 ;;
esac
if [ "$CNI_COMMAND" = ADD ]; then
  echo '{"cniVersion":"1.1.0","interfaces":[{"name":"'$CNI_IFNAME'","sandbox":"'$CNI_NETNS'"}],"ips":[{"address":"10.9.0.2/24","interface":0}]}'
fi
`;

/** The test's own folder, with bin, conf and cache in it. */
export let dir: string;
/** The environment that cnitool gets. */
export let env: Record<string, string>;

export const onWindows = process.platform === "win32";

/** Makes all of this anew for every test of a describe block. */
export function withScriptPlugins(): void {
  beforeEach(() => {
    dir = mkdtempSync(join(tmpdir(), "cnitool-"));
    for (const name of ["bin", "conf", "cache"]) mkdirSync(join(dir, name));
    for (const name of ["one", "two"]) writeFileSync(join(dir, "bin", name), plugin, { mode: 0o755 });
    conflist("net", [{ type: "one" }, { type: "two" }]);
    env = { CNI_PATH: join(dir, "bin"), NETCONFPATH: join(dir, "conf") };
  });
  afterEach(() => rmSync(dir, { recursive: true, force: true }));
}

/** Writes a conflist into the config folder. */
export function conflist(name: string, plugins: object[], more: object = {}): string {
  const file = join(dir, "conf", `${name}.conflist`);
  writeFileSync(file, JSON.stringify({ cniVersion: "1.1.0", name, plugins, ...more }, null, 2));
  return file;
}

/** The calls of plugins since the last time this was asked. */
export function calls(): string[] {
  const log = join(dir, "log");
  const text = existsSync(log) ? readFileSync(log, "utf8") : "";
  rmSync(log, { force: true });
  return text.split("\n").filter((line) => line !== "");
}

/** Runs cnitool in this process, with the test's cache. */
export async function cnitool(...argv: string[]) {
  const stdout: string[] = [];
  const stderr: string[] = [];
  const io = {
    stdout: (text: string) => stdout.push(text),
    stderr: (text: string) => stderr.push(text),
    cwd: dir,
  };
  const status = await main([...argv, "--cache-dir", "cache"], env, io);
  return { status, stdout: stdout.join(""), stderr: stderr.join("") };
}

export const id = containerIdOf("/ns/web");
export const silent = { status: 0, stdout: "", stderr: "" };
