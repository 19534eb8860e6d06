import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { distBin, goBin, runPlugin, temporaryFolder } from "@tscni/test-support";
import { afterEach, beforeEach, expect, test } from "vitest";

let folder: ReturnType<typeof temporaryFolder>;
let file: string;
let log: string;
beforeEach(() => {
  folder = temporaryFolder();
  file = join(folder.path, "debug.json");
  log = join(folder.path, "log.json");
});
afterEach(() => folder.remove());

const prevResult = {
  cniVersion: "1.0.0",
  interfaces: [{ name: "eth0", sandbox: "/n" }],
  ips: [{ address: "10.1.2.3/24" }],
  dns: {},
};

/** A call by either plugin of a script: what came out, and what stands in the file and the log afterwards. */
async function call(bin: string, verb: string, script: object, more: { conf?: object; args?: string } = {}) {
  writeFileSync(file, JSON.stringify(script));
  writeFileSync(log, "");
  const conf = {
    cniVersion: "1.0.0",
    name: "n",
    type: "noop",
    debugFile: file,
    commandLog: log,
    prevResult,
    ...more.conf,
  };
  const env = {
    CNI_COMMAND: verb,
    CNI_CONTAINERID: "c1",
    CNI_NETNS: "/some/where",
    CNI_IFNAME: "eth0",
    CNI_PATH: "/p",
    CNI_ARGS: more.args ?? "A=B",
  };
  const { status, stdout, stderr } = await runPlugin({ bin, env, stdin: conf });
  const read = (path: string) => JSON.parse(readFileSync(path, "utf8") || "null");
  return { status, out: withoutVersion(stdout), stderr, written: read(file), logged: read(log) };
}

/** Our errors have the version, which Go's lack; spaces don't matter. */
function withoutVersion(text: string): unknown {
  try {
    const { cniVersion, ...rest } = JSON.parse(text);
    return "code" in rest ? rest : { cniVersion, ...rest };
  } catch {
    return text;
  }
}

/** Fields that the script did not set: Go writes them empty. */
const withoutEmpty = (written: Record<string, unknown>) =>
  Object.fromEntries(
    Object.entries(written).filter(([, value]) => value !== "" && value !== 0 && value !== null),
  );

const scripts: [string, string, object][] = [
  ["a result as it is", "ADD", { ReportResult: '{"cniVersion":"1.0.0"}' }],
  ["what is no result", "ADD", { ReportResult: "garbage {" }],
  ["an error", "ADD", { ReportError: "banana", ReportErrorCode: 137 }],
  ["an error without a code", "DEL", { ReportError: "banana" }],
  ["the previous result", "ADD", { ReportResult: "PASSTHROUGH" }],
  ["the previous result with DNS", "CHECK", { ReportResult: "INJECT-DNS" }],
  ["words on stderr and an exit status", "DEL", { ReportStderr: "some words", ExitWithCode: 3 }],
];

for (const [what, verb, script] of scripts)
  test(`${what}, as the reference does it`, async (ctx) => {
    const [ours, theirs] = [join(distBin, "noop"), goBin("noop", ctx)];
    const [a, b] = [await call(ours, verb, script), await call(theirs, verb, script)];
    expect({ ...a, written: withoutEmpty(a.written) }).toEqual({ ...b, written: withoutEmpty(b.written) });
    expect(a.written).toMatchObject({
      Command: verb,
      CmdArgs: { ContainerID: "c1", Args: "A=B", Path: "/p" },
    });
  });

test("the file's name comes from CNI_ARGS, too, and so do the versions", async () => {
  const bin = join(distBin, "noop");
  const { out } = await call(
    bin,
    "ADD",
    { ReportResult: '{"x":1}' },
    { args: `DEBUG=${file}`, conf: { debugFile: "" } },
  );
  expect(out).toMatchObject({ x: 1 });
  writeFileSync(file, JSON.stringify({ ReportVersionSupport: ["0.987.0"] }));
  const env = { CNI_COMMAND: "VERSION", CNI_ARGS: `DEBUG=${file}` };
  expect((await runPlugin({ bin, env })).json.supportedVersions).toEqual(["0.987.0"]);
  const every = (await runPlugin({ bin, env: { CNI_COMMAND: "VERSION" } })).json.supportedVersions;
  expect([every[0], every.length]).toEqual(["0.-42.0", 8]);
});

test("without a file it says so, and succeeds", async () => {
  const conf = { cniVersion: "1.1.0", name: "n", type: "noop" };
  for (const verb of ["ADD", "DEL", "CHECK", "STATUS", "GC"]) {
    const env = { CNI_COMMAND: verb, CNI_CONTAINERID: "c1", CNI_NETNS: "/n", CNI_IFNAME: "eth0" };
    const { status, stdout, stderr } = await runPlugin({ bin: "noop", env, stdin: conf });
    expect([status, stdout]).toEqual([0, "{}"]);
    expect(stderr).toContain("no debug behavior");
  }
});
