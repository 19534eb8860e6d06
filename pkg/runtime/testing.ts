import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "vitest";
import { type Call, Lab, prints } from "../libcni/testing/lab.ts";

import { isNetworkingError, Networking, type NetworkingError, type NetworkingOptions } from "./index.ts";

export type { Call };

export const resultOf = (ifName: string, address: string) => ({
  cniVersion: "1.1.0",
  interfaces: [{ name: `veth-${ifName}` }, { name: ifName, mac: "02:00:00:00:00:01", sandbox: "/netns" }],
  ips: [{ interface: 1, address }],
  routes: [{ dst: "0.0.0.0/0" }],
  dns: { nameservers: ["10.0.0.53"] },
});

/** libcni's lab with a config folder beside the plugins. */
export class NetworkingLab extends Lab {
  readonly configDir = join(this.dir, "net.d");

  constructor() {
    super();
    mkdirSync(this.configDir);
  }

  conflist(name: string, type: string, extra: Record<string, unknown> = {}): void {
    const list = { cniVersion: "1.1.0", name, plugins: [{ type, ...extra }] };
    writeFileSync(join(this.configDir, `${name}.conflist`), JSON.stringify(list));
  }

  /** A page's examples with the folders that they name replaced by those of the lab. */
  here(code: string): string {
    return code
      .replaceAll("/opt/cni/bin", this.bin)
      .replaceAll("/etc/cni/net.d", this.configDir)
      .replaceAll("/var/lib/cni", this.cacheDir);
  }

  networking(options: NetworkingOptions = {}): Networking {
    const { configDir, cacheDir } = this;
    return new Networking({ pluginDirs: [this.bin], configDir, cacheDir, maxConfigs: 0, ...options });
  }

  /** Two networks, `a` on eth0 and `b` on eth1, with a plugin each. */
  twoNetworks(b: Record<string, string> = {}, options: NetworkingOptions = {}): Networking {
    this.plugin("alpha", { ADD: prints(resultOf("eth0", "10.1.0.2/24")) });
    this.plugin("beta", { ADD: prints(resultOf("eth1", "10.2.0.2/24")), ...b });
    this.conflist("a", "alpha");
    this.conflist("b", "beta");
    const both = this.networking(options);
    both.load("directory");
    return both;
  }
}

/** A signal that fires when a file is there: a plugin has come so far. */
export function stopWhen(file: string): AbortSignal {
  const stop = new AbortController();
  const timer = setInterval(() => {
    if (!existsSync(file)) return;
    clearInterval(timer);
    stop.abort();
  }, 5);
  return stop.signal;
}

/** The NetworkingError that a promise rejects with. */
export async function failureOf(promise: Promise<unknown>): Promise<NetworkingError> {
  const error = await promise.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  expect(isNetworkingError(error)).toBe(true);
  return error as NetworkingError;
}

/** The examples of a page, one program. */
export function codeIn(page: string, language = "ts"): string {
  const blocks = readFileSync(page, "utf8").matchAll(/^```(\w+)\n(.*?)^```$/gms);
  return [...blocks].flatMap(([, name, code]) => (name === language ? [code!] : [])).join("\n");
}

/** What the comments behind console.log say. */
export const saidIn = (code: string): string[] =>
  [...code.matchAll(/console\.log\(.*?\);(?: \})* \/\/ (.*)$/gm)].map(([, text]) => text!);

/** Prints everything as JSON on one line, text as it is. */
const plainly = `
const log = console.log;
console.log = (...all) => log(all.map((one) => typeof one === "string" ? one : JSON.stringify(one)).join(" "));
`;

/** A new folder beside a test: programs in it find the packages that the test's package has. */
export const folderBeside = (directory: string): string => mkdtempSync(join(directory, ".build-"));

/** Runs a program as its user would, in a folder of `folderBeside`. The lines that it prints. */
export function runExample(folder: string, code: string): string[] {
  writeFileSync(join(folder, "plainly.ts"), plainly);
  writeFileSync(join(folder, "program.ts"), code);
  const run = join(folder, "run.ts");
  writeFileSync(run, `import "./plainly.ts";\nawait import("./program.ts");\n`);
  return execFileSync(process.execPath, [run], { encoding: "utf8" }).trimEnd().split("\n");
}
