import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeEach, describe, expect, test } from "vitest";
import { containerIdOf } from "../runtime.ts";
import { calls, cnitool, conflist, dir, onWindows, silent, withScriptPlugins } from "./fixture.ts";

describe.skipIf(onWindows)("gc", () => {
  withScriptPlugins();

  const ids = ["/ns/a", "/ns/b", "/ns/c"].map(containerIdOf);
  const left = async () => {
    const list = JSON.parse((await cnitool("attachments", "--json")).stdout) as { netns: string }[];
    return list.map((a) => a.netns).toSorted();
  };
  beforeEach(async () => {
    for (const name of ["a", "b", "c"]) await cnitool("add", "net", `/ns/${name}`);
    calls();
  });

  test("without a list it removes them all, as Go's does", async () => {
    expect(await cnitool("gc", "net", "/ignored")).toEqual(silent);
    expect(await left()).toEqual([]);
    const verbs = calls().map((call) => call.split(" ")[1]);
    expect(verbs.filter((verb) => verb === "DEL").length).toBe(6);
    expect(verbs.filter((verb) => verb === "GC").length).toBe(2);
  });

  test("keeps nothing when nothing is said, and tells the plugins so", async () => {
    expect(await cnitool("gc", "net")).toEqual(silent);
    const last = readFileSync(join(dir, "log.conf"), "utf8").trim().split("\n").at(-1)!;
    expect(JSON.parse(last)).toMatchObject({ "cni.dev/valid-attachments": [] });
    expect((await cnitool("attachments", "--json")).stdout).toBe("[]\n");
  });

  test("keeps what --keep and --keep-file name", async () => {
    writeFileSync(join(dir, "live"), `# of the runtime\n${ids[1]}:eth0  # b\n\n`);
    expect(await cnitool("gc", "net", "--keep", ids[0]!, "--keep-file", "live")).toEqual(silent);
    expect(await left()).toEqual(["/ns/a", "/ns/b"]);
    const conf = readFileSync(join(dir, "log.conf"), "utf8").trim().split("\n").at(-1)!;
    expect(JSON.parse(conf)["cni.dev/valid-attachments"]).toEqual(
      [ids[0], ids[1]].map((containerID) => ({ containerID, ifname: "eth0" })),
    );
  });

  test("keeps what attachments --json printed; another interface of a container does not save it", async () => {
    writeFileSync(join(dir, "live"), (await cnitool("attachments", "--json")).stdout);
    expect(await cnitool("gc", "net", "--keep-file", "live")).toEqual(silent);
    expect(await left()).toEqual(["/ns/a", "/ns/b", "/ns/c"]);
    expect(await cnitool("gc", "net", "--keep", `${ids[0]}:net9`, "--keep", `${ids[2]}:eth0`)).toEqual(
      silent,
    );
    expect(await left()).toEqual(["/ns/c"]);
  });

  test("an empty keep file keeps nothing, and that is said", async () => {
    writeFileSync(join(dir, "live"), "# none\n");
    const { status, stderr } = await cnitool("gc", "net", "--keep-file", "live");
    expect([status, stderr]).toEqual([0, "Note: live lists nothing to keep.\n"]);
    expect(await left()).toEqual([]);
  });

  test("--dry-run only tells", async () => {
    const { status, stdout } = await cnitool("gc", "net", "--keep", ids[1]!, "--dry-run");
    expect(status).toBe(0);
    expect(stdout).toMatch(new RegExp(`delete +${ids[0]} +eth0 +/ns/a`));
    expect(stdout).toMatch(new RegExp(`keep +${ids[1]} +eth0 +/ns/b`));
    expect(stdout).toContain("2 to delete, 1 to keep.");
    expect(calls()).toEqual([]);
    expect(await left()).toEqual(["/ns/a", "/ns/b", "/ns/c"]);
  });

  test("--json tells what was done", async () => {
    const { stdout } = await cnitool("gc", "net", "--keep", ids[1]!, "--json");
    const report = JSON.parse(stdout) as { deleted: object[]; kept: object[] };
    expect(report).toMatchObject({ network: "net", dryRun: false, plugins: ["one", "two"], failed: [] });
    expect(report.deleted.length).toBe(2);
    expect(report.kept).toEqual([{ containerId: ids[1], ifName: "eth0", netns: "/ns/b" }]);
  });

  test("a failing DEL stops neither the others nor GC", async () => {
    conflist("net", [{ type: "one", fail: "DEL" }, { type: "two" }]);
    const { status, stderr } = await cnitool("gc", "net");
    expect(status).toBe(1);
    expect(stderr).toContain("no luck");
    const verbs = calls().map((call) => call.split(" ").slice(0, 2).join(" "));
    expect(verbs.filter((verb) => verb === "two DEL").length).toBe(3);
    expect(verbs).toContain("two GC");
    const report = JSON.parse((await cnitool("gc", "net", "--json")).stdout) as {
      failed: object[];
      error: object;
    };
    expect(report.failed.length).toBe(3);
    expect(report.error).toHaveProperty("code");
  });

  test.each([
    [["--keep", "a b"], "--keep: invalid characters in containerID; a b"],
    [["--keep", "a:b:c"], '--keep: "a:b:c" is not CONTAINERID or CONTAINERID:IFNAME'],
    [["--keep", "a:"], "--keep: interface name is empty"],
    [["--keep-file", "missing"], "ENOENT: no such file or directory"],
    [["--keep-file", "words"], "words:2: invalid characters in containerID; not an id"],
    [["--keep-file", "broken"], "broken: "],
    [["--keep-file", "shape"], 'shape: [0] is not an object with "containerID" and "ifname"'],
  ])("%j is refused before anything is deleted", async (flags, message) => {
    writeFileSync(join(dir, "words"), "good\nnot an id\n");
    writeFileSync(join(dir, "broken"), "[1,");
    writeFileSync(join(dir, "shape"), '[{"id":"x"}]');
    const { status, stderr } = await cnitool("gc", "net", ...flags);
    expect(status).toBe(1);
    expect(stderr.startsWith(`Error: ${message}`)).toBe(true);
    expect(calls()).toEqual([]);
    expect((await left()).length).toBe(3);
  });
});
