import { spawnSync } from "node:child_process";
import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { fails, prints } from "../libcni/testing/lab.ts";
import { codeIn, folderBeside, NetworkingLab, runExample, saidIn } from "./testing.ts";

const here = import.meta.dirname;
let folder: string;

let lab: NetworkingLab;
beforeEach(() => {
  lab = new NetworkingLab();
  folder = folderBeside(here);
  lab.plugin("loopback", { ADD: prints({ cniVersion: "0.4.0", interfaces: [{ name: "lo" }] }) });
  const result = {
    cniVersion: "1.1.0",
    interfaces: [{ name: "eth0", sandbox: "/run/netns/c1" }],
    ips: [{ interface: 0, address: "10.1.0.2/24", gateway: "10.1.0.1" }],
  };
  const full = `if [ $CNI_CONTAINERID = full ]; then ${fails(11, "no address left")}; fi`;
  lab.plugin("bridge", { ADD: `${full}; ${prints(result)}` });
  lab.conflist("mynet", "bridge", { capabilities: { portMappings: true } });
});
afterEach(() => {
  lab.close();
  rmSync(folder, { recursive: true, force: true });
});

describe.skipIf(process.platform === "win32")("README", () => {
  test("its examples run, and print what they say", () => {
    const code = lab.here(codeIn(join(here, "README.md")));
    const said = saidIn(code);
    expect(said.length).toBeGreaterThan(8);
    expect(runExample(folder, code)).toEqual(said);
    const call = lab.calls().find(({ plugin }) => plugin === "bridge")!;
    expect(call.args).toBe("IgnoreUnknown=1;K8S_POD_NAME=web");
    expect(call.stdin.runtimeConfig).toMatchObject({ portMappings: [{ hostPort: 8080 }] });
  });

  test("its examples have no type errors", () => {
    writeFileSync(join(folder, "program.ts"), codeIn(join(here, "README.md")));
    const config = {
      extends: "../../../tsconfig.json",
      include: ["program.ts"],
      exclude: [],
      compilerOptions: { noEmit: true, skipLibCheck: true },
    };
    writeFileSync(join(folder, "tsconfig.json"), JSON.stringify(config));
    const tsc = join(here, "../../node_modules/typescript/bin/tsc");
    const { status, stdout } = spawnSync(process.execPath, [tsc, "-p", folder], { encoding: "utf8" });
    expect({ status, stdout }).toEqual({ status: 0, stdout: "" });
  }, 120_000);

  test("it has every event, error code and option that there is", () => {
    const page = readFileSync(join(here, "README.md"), "utf8");
    const source = (name: string) => readFileSync(join(here, name), "utf8");
    const between = (text: string, from: string, to: string) => text.slice(text.indexOf(from)).split(to)[0]!;
    const names = [
      ...[...source("events.ts").matchAll(/type: "([\w-]+)"/g)].map(([, name]) => name!),
      ...[
        ...between(source("errors.ts"), "export type NetworkingErrorCode", ";").matchAll(/"([\w-]+)"/g),
      ].map(([, name]) => name!),
      ...[
        ...source("options.ts").matchAll(/^ {2}(\w+)\?:/gm),
        ...between(source("container.ts"), "export interface ContainerOptions", "\n}").matchAll(
          /^ {2}(\w+)\?:/gm,
        ),
        ...between(source("watch.ts"), "export interface WatchOptions", "\n}").matchAll(/^ {2}(\w+)\?:/gm),
      ].map(([, name]) => name!),
    ];
    expect(names.length).toBeGreaterThan(30);
    expect(names.filter((name) => !page.includes(`\`${name}\``))).toEqual([]);
  });
});
