import { openSync } from "node:fs";
import { makeNamespace } from "@tscni/test-support";
import { CniError, emptyResult, specVersions } from "@tscni/types";
import { describe, expect, test } from "vitest";
import { conf, errorOf, run } from "./testing.ts";

const own = { CNI_NETNS: "/proc/thread-self/ns/net" };

describe("without a verb", () => {
  test.each([undefined, ""])("CNI_COMMAND %j: who we are, on stderr, and success", async (command) => {
    const { status, stdout, stderr, seen } = await run(command, { stdin: "{" });
    expect({ status, stdout, seen }).toEqual({ status: [0], stdout: [], seen: [] });
    expect(stderr).toBe(
      "tscni probe: writes down what it is told\nCNI protocol versions supported: 0.1.0, 0.2.0, 0.3.0, 0.3.1, 0.4.0, 1.0.0, 1.1.0\n",
    );
  });

  test("VERSION: one line, without a look at stdin or the other variables", async () => {
    const readStdin = () => {
      throw new Error("not to be read");
    };
    const env = { CNI_PATH: "", CNI_IFNAME: "a/b", ...own };
    const { status, stdout } = await run("VERSION", { env, io: { readStdin } });
    expect(status).toEqual([0]);
    expect(stdout).toEqual([`{"cniVersion":"1.1.0","supportedVersions":${JSON.stringify(specVersions)}}\n`]);
  });
});

describe("the netns check", () => {
  const error = { code: 8, msg: "plugin's netns and netns from CNI_NETNS should not be the same" };

  test.each(["ADD", "DEL"])("%s in our own namespace fails before the verb", async (verb) => {
    expect(await errorOf(verb, { env: own })).toMatchObject(error);
    for (const override of ["0", "false", "yes", ""])
      expect(await errorOf(verb, { env: { ...own, CNI_NETNS_OVERRIDE: override } })).toMatchObject(error);
  });

  test.each(["1", "true", "TRUE", "True"])("CNI_NETNS_OVERRIDE=%s lets it pass", async (override) => {
    const { seen } = await run("ADD", { env: { ...own, CNI_NETNS_OVERRIDE: override } });
    expect(seen).toHaveLength(1);
  });

  test("CHECK, STATUS and GC don't care", async () => {
    for (const verb of ["CHECK", "STATUS", "GC"]) expect((await run(verb, { env: own })).status).toEqual([0]);
  });

  test("another namespace passes, and one that cannot be looked at", async () => {
    const ns = makeNamespace();
    const fd = openSync("/proc/thread-self/ns/net", "r");
    for (const CNI_NETNS of [ns.path, "/no/such", "/proc/self/ns/mnt", "x".repeat(5000)])
      expect((await run("ADD", { env: { CNI_NETNS } })).status, CNI_NETNS).toEqual([0]);
    expect(await errorOf("ADD", { env: { CNI_NETNS: `/proc/self/fd/${fd}` } })).toMatchObject(error);
    ns.close();
  });
});

describe("ADD", () => {
  test("prints the result once, indented by four, without a newline, in the config's version", async () => {
    const { status, stdout } = await run("ADD", { stdin: conf("0.2.0") });
    expect(status).toEqual([0]);
    expect(stdout).toEqual([
      '{\n    "cniVersion": "0.2.0",\n    "ip4": {\n        "ip": "10.1.2.3/24"\n    },\n    "dns": {}\n}',
    ]);
  });

  test("takes back what it did, last first, and says why it failed", async () => {
    const done: string[] = [];
    const { status, stdout } = await run("ADD", {
      plugin: {
        async add(_, undo) {
          undo.defer(() => void done.push("link"));
          undo.defer(async () => {
            await new Promise((resolve) => setTimeout(resolve, 5));
            done.push("lease");
          });
          undo.defer(() => void done.push("rule"));
          throw new CniError(101, "no gateway", { details: "10.1.0.0/16" });
        },
      },
    });
    expect(done).toEqual(["rule", "lease", "link"]);
    expect(status).toEqual([1]);
    expect(stdout.map((text) => JSON.parse(text))).toEqual([
      { cniVersion: "1.1.0", code: 101, msg: "no gateway", details: "10.1.0.0/16" },
    ]);
  });

  test.each([
    [new CniError(11, "busy"), { code: 11, msg: "busy", details: "could not be taken back: b; a" }],
    [
      new CniError(11, "busy", { details: "why" }),
      { code: 11, msg: "busy", details: "why; could not be taken back: b; a" },
    ],
    [new Error("plain"), { code: 999, msg: "plain", details: "could not be taken back: b; a" }],
    ["a string", { code: 999, msg: "a string", details: "could not be taken back: b; a" }],
  ])("what cannot be taken back is told, and the rest still is (%s)", async (error, expected) => {
    const done: string[] = [];
    const { stdout } = await run("ADD", {
      plugin: {
        add(_, undo) {
          undo.defer(() => void done.push("first"));
          undo.defer(() => {
            throw new Error("a");
          });
          undo.defer(() => Promise.reject(new Error("b")));
          throw error;
        },
      },
    });
    expect(done).toEqual(["first"]);
    expect(JSON.parse(stdout[0]!)).toEqual({ cniVersion: "1.1.0", ...expected });
  });

  const add = (done: string[]) => ({
    add(_: unknown, undo: { defer(step: () => void): void }) {
      undo.defer(() => void done.push("undone"));
      return emptyResult();
    },
  });

  test("is taken back when the result cannot be written: code 5, or stderr when nothing can be", async () => {
    const done: string[] = [];
    let writes = 0;
    const writeStdout = () => {
      writes++;
      throw new Error("write fd 1: no space left on device");
    };
    const { status, stderr } = await run("ADD", { plugin: add(done), io: { writeStdout } });
    expect(done).toEqual(["undone"]);
    expect(writes).toBe(2);
    expect(status).toEqual([1]);
    expect(JSON.parse(stderr)).toEqual({
      cniVersion: "1.1.0",
      code: 5,
      msg: "error writing the result to stdout: write fd 1: no space left on device",
    });
  });

  test("is taken back when its result has no form in the version asked for", async () => {
    const done: string[] = [];
    const { stdout, status } = await run("ADD", { plugin: add(done), stdin: conf("0.1.0") });
    expect(done).toEqual(["undone"]);
    expect(status).toEqual([1]);
    expect(JSON.parse(stdout[0]!)).toMatchObject({ code: 999, msg: "cannot convert: no valid IP addresses" });
  });

  test("that succeeds takes nothing back", async () => {
    const done: string[] = [];
    expect((await run("ADD", { plugin: add(done) })).status).toEqual([0]);
    expect(done).toEqual([]);
  });
});

test.each(["DEL", "CHECK", "STATUS", "GC"])("%s prints nothing, or its error", async (verb) => {
  expect(await run(verb)).toMatchObject({ status: [0], stdout: [], stderr: "" });
  const fail = async () => {
    throw new CniError(50, "no daemon");
  };
  const { status, stdout } = await run(verb, { plugin: { del: fail, check: fail, status: fail, gc: fail } });
  expect(status).toEqual([1]);
  expect(stdout).toEqual(['{\n    "cniVersion": "1.1.0",\n    "code": 50,\n    "msg": "no daemon"\n}']);
});
