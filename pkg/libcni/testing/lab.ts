import {
  appendFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  Libcni,
  type LibcniOptions,
  type NetworkConfigList,
  parseConfList,
  type RuntimeConf,
} from "../index.ts";

/** One run of a plugin, as the plugin saw it. */
export interface Call {
  plugin: string;
  verb: string;
  containerId: string;
  ifName: string;
  netns: string;
  args: string;
  path: string;
  stdin: Record<string, unknown>;
}

/** What a plugin does on a verb, in shell; $in is its stdin. Verbs that are not named succeed with no output. */
export type Script = Record<string, string>;

/** A result that a shell script prints. */
export const prints = (result: unknown): string => `printf '%s' '${JSON.stringify(result)}'`;

/** An error object that a shell script fails with. */
export const fails = (code: number, msg: string): string => `${prints({ code, msg })}; exit 1`;

/** A folder with plugins (shell scripts that write down how they were called), configs and a cache. */
export class Lab {
  readonly dir = mkdtempSync(join(tmpdir(), "tscni-libcni-"));
  readonly bin = join(this.dir, "bin");
  readonly cacheDir = join(this.dir, "cache");
  readonly notes: string[] = [];
  readonly #log = join(this.dir, "log");

  constructor() {
    mkdirSync(this.bin);
  }

  plugin(name: string, script: Script = {}): void {
    const cases = Object.entries({
      VERSION: prints({ cniVersion: "1.1.0", supportedVersions: ["0.4.0", "1.0.0", "1.1.0"] }),
      ...script,
    });
    const fields = ["CNI_COMMAND", "CNI_CONTAINERID", "CNI_IFNAME", "CNI_NETNS", "CNI_ARGS", "CNI_PATH"];
    const text = `#!/bin/sh
in=$(cat)
printf '%s\\t%s\\t%s\\t%s\\t%s\\t%s\\t%s\\t%s\\n' ${name} ${fields.map((f) => `"$${f}"`).join(" ")} "$in" >> ${this.#log}
case $CNI_COMMAND in
${cases.map(([verb, body]) => `${verb}) ${body};;`).join("\n")}
esac
`;
    writeFileSync(join(this.bin, name), text, { mode: 0o755 });
  }

  removePlugin(name: string): void {
    rmSync(join(this.bin, name));
  }

  /** The calls since the last time. */
  calls(): Call[] {
    if (!existsSync(this.#log)) return [];
    const lines = readFileSync(this.#log, "utf8").trimEnd().split("\n");
    rmSync(this.#log);
    return lines.map((line) => {
      const [plugin, verb, containerId, ifName, netns, args, path, stdin] = line.split("\t") as string[];
      return {
        plugin: plugin!,
        verb: verb!,
        containerId: containerId!,
        ifName: ifName!,
        netns: netns!,
        args: args!,
        path: path!,
        stdin: JSON.parse(stdin || "{}"),
      };
    });
  }

  /** "verb plugin" of each call since the last time. */
  verbs(): string[] {
    return this.calls().map(({ plugin, verb }) => `${verb} ${plugin}`);
  }

  libcni(options: Partial<LibcniOptions> = {}): Libcni {
    return new Libcni({
      path: [this.bin],
      cacheDir: this.cacheDir,
      log: (text) => this.notes.push(text),
      ...options,
    });
  }

  write(name: string, text: string): string {
    const file = join(this.dir, name);
    mkdirSync(join(file, ".."), { recursive: true });
    writeFileSync(file, "");
    appendFileSync(file, text);
    return file;
  }

  cacheFile(name: string): string {
    return join(this.cacheDir, "results", name);
  }

  readCache(name: string): Record<string, unknown> {
    return JSON.parse(readFileSync(this.cacheFile(name), "utf8"));
  }

  close(): void {
    rmSync(this.dir, { recursive: true, force: true });
  }
}

/** A list of these plugin types, or objects. */
export function listOf(
  plugins: (string | Record<string, unknown>)[],
  extra: Record<string, unknown> = {},
): NetworkConfigList {
  return parseConfList(
    JSON.stringify({
      cniVersion: "1.1.0",
      name: "net1",
      ...extra,
      plugins: plugins.map((plugin) => (typeof plugin === "string" ? { type: plugin } : plugin)),
    }),
  );
}

export const runtime = (extra: Partial<RuntimeConf> = {}): RuntimeConf => ({
  containerId: "c1",
  netns: "/var/run/netns/t1",
  ifName: "eth0",
  ...extra,
});
