import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { callPlugin, parseNetworkConfig } from "@tscni/skel";
import { temporaryFolder } from "@tscni/test-support";
import { type CniError, type Result, toCniError } from "@tscni/types";
import plugin from "./host-local.ts";

/** What a test says of a call; the rest has defaults. */
export interface CallOptions {
  id?: string;
  ifName?: string;
  /** Keys of `ipam`, instead of the network's. */
  ipam?: object;
  /** Further keys of the config. */
  conf?: object;
  args?: string;
  version?: string;
  /** Stands for a stdout that cannot be written to. */
  deliver?: (result: Result) => void;
}

export interface Answer {
  ips: string[];
  result: Result | undefined;
  error: CniError | undefined;
  warnings: string[];
}

/** A network with a data folder of its own, for calls within this process and of other programs. */
export class TestNetwork {
  readonly name = "net";
  readonly dataDir: string;
  readonly ipam: object;
  readonly #remove: () => void;

  constructor(ipam: object = { subnet: "10.1.0.0/24" }, folder?: string) {
    const temporary = folder === undefined ? temporaryFolder() : { path: folder, remove() {} };
    this.dataDir = temporary.path;
    this.#remove = temporary.remove;
    this.ipam = ipam;
  }

  [Symbol.dispose](): void {
    this.#remove();
  }

  get dir(): string {
    return join(this.dataDir, this.name);
  }

  /** Everything in the network's folder, with its content; our own files only if asked for. */
  files(all = false): Record<string, string> {
    const names = readdirSync(this.dir).filter((name) => all || !name.startsWith(".tscni"));
    return Object.fromEntries(names.sort().map((name) => [name, contentOf(join(this.dir, name))]));
  }

  /** The addresses that have a file. */
  addresses(): string[] {
    return Object.keys(this.files()).filter((name) => /^[0-9a-f.:]+$/.test(name) && name !== "lock");
  }

  config({ ipam = this.ipam, conf = {}, version = "1.1.0" }: CallOptions = {}): string {
    return JSON.stringify({
      cniVersion: version,
      name: this.name,
      ipam: { type: "host-local", dataDir: this.dataDir, ...ipam },
      ...conf,
    });
  }

  env(command: string, { id = "c1", ifName = "eth0", args = "" }: CallOptions = {}): Record<string, string> {
    return {
      CNI_COMMAND: command,
      CNI_CONTAINERID: id,
      CNI_IFNAME: ifName,
      CNI_NETNS: "/nonexistent",
      CNI_PATH: "/nonexistent",
      CNI_ARGS: args,
    };
  }

  /** Calls the plugin in this process, with everything that the protocol does around it. */
  async call(command: string, options: CallOptions = {}): Promise<Answer> {
    const stdin = this.config(options);
    const { CNI_CONTAINERID: containerId, CNI_IFNAME: ifName, CNI_ARGS: args } = this.env(command, options);
    const warnings: string[] = [];
    let result: Result | undefined;
    let error: CniError | undefined;
    try {
      await callPlugin(
        plugin,
        {
          command,
          containerId: containerId!,
          ifName: ifName!,
          args: args!,
          netns: "",
          path: "",
          stdin,
          ...parseNetworkConfig(stdin),
        },
        (message) => warnings.push(message),
        (answer) => {
          options.deliver?.(answer);
          result = answer;
        },
      );
    } catch (thrown) {
      error = toCniError(thrown);
    }
    return { result, error, warnings, ips: result?.ips.map((ip) => ip.address) ?? [] };
  }

  /** Starts another program with the same input, such as the Go plugin. */
  async run(argv: string[], command: string, options: CallOptions = {}) {
    const child = Bun.spawn(argv, {
      env: { ...this.env(command, options) },
      cwd: import.meta.dirname,
      stdin: new TextEncoder().encode(this.config(options)),
      stdout: "pipe",
      stderr: "pipe",
      timeout: 60_000,
    });
    const [stdout, stderr, status] = await Promise.all([
      new Response(child.stdout).text(),
      new Response(child.stderr).text(),
      child.exited,
    ]);
    return { status, stderr, stdout, json: stdout.trim() === "" ? undefined : JSON.parse(stdout) };
  }
}

const contentOf = (path: string): string =>
  statSync(path).isDirectory() ? "(folder)" : readFileSync(path, "utf8");

/** This plugin as a process of its own, from source. */
export const ownProcess: string[] = [
  process.execPath,
  "-e",
  'import { runPlugin } from "@tscni/skel"; import plugin from "./host-local.ts"; await runPlugin(plugin);',
];
