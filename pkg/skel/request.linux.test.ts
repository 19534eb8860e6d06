import { atLeast, specVersions } from "@tscni/types";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { conf, errorOf, goodEnv, run } from "./testing.ts";

const verbs = ["ADD", "DEL", "CHECK", "STATUS", "GC"] as const;

describe("the environment", () => {
  /** Variables in the order in which they are reported; the commands that need them. */
  const needs: Record<(typeof verbs)[number], string[]> = {
    ADD: ["CNI_CONTAINERID", "CNI_NETNS", "CNI_IFNAME", "CNI_PATH"],
    CHECK: ["CNI_CONTAINERID", "CNI_NETNS", "CNI_IFNAME", "CNI_PATH"],
    DEL: ["CNI_CONTAINERID", "CNI_IFNAME", "CNI_PATH"],
    STATUS: ["CNI_PATH"],
    GC: ["CNI_PATH"],
  };

  test.each(verbs)("%s names all that is missing, and nothing else", async (verb) => {
    const names = Object.keys(goodEnv);
    for (let mask = 0; mask < 1 << names.length; mask++) {
      const gone = names.filter((_, i) => mask & (1 << i));
      for (const absent of [undefined, ""]) {
        const env = Object.fromEntries(gone.map((name) => [name, absent]));
        const missing = needs[verb].filter((name) => gone.includes(name));
        if (missing.length === 0) {
          expect((await run(verb, { env })).seen, gone.join()).toMatchObject([{ verb }]);
        } else {
          const msg = `required env variables [${missing.join(",")}] missing`;
          expect(await errorOf(verb, { env })).toEqual({ code: 4, msg });
        }
      }
    }
  });

  test.each([
    ["CNI_CONTAINERID", "../etc", { msg: "invalid characters in containerID", details: "../etc" }],
    ["CNI_CONTAINERID", "a\nb", { msg: "invalid characters in containerID", details: "a\nb" }],
    ["CNI_CONTAINERID", "a\n", { msg: "invalid characters in containerID", details: "a\n" }],
    ["CNI_CONTAINERID", ".hidden", { msg: "invalid characters in containerID" }],
    ["CNI_CONTAINERID", "ünï", { msg: "invalid characters in containerID" }],
    ["CNI_CONTAINERID", `${"a".repeat(4096)}/`, { msg: "invalid characters in containerID" }],
    ["CNI_IFNAME", "a".repeat(16), { msg: "interface name is too long" }],
    ["CNI_IFNAME", "é".repeat(8), { msg: "interface name is too long" }],
    ["CNI_IFNAME", ".", { msg: "interface name is . or .." }],
    ["CNI_IFNAME", "..", { msg: "interface name is . or .." }],
    ["CNI_IFNAME", "a/b", { msg: "interface name contains / or : or whitespace characters" }],
    ["CNI_IFNAME", "a:b", { msg: "interface name contains / or : or whitespace characters" }],
    ["CNI_IFNAME", "a b", { msg: "interface name contains / or : or whitespace characters" }],
    ["CNI_IFNAME", "a\u2003b", { msg: "interface name contains / or : or whitespace characters" }],
  ])("%s=%j is refused where it is needed", async (name, value, error) => {
    for (const verb of ["ADD", "DEL", "CHECK"])
      expect(await errorOf(verb, { env: { [name]: value } })).toMatchObject({ code: 4, ...error });
    for (const verb of ["STATUS", "GC"])
      expect((await run(verb, { env: { [name]: value } })).status).toEqual([0]);
  });

  test("a wrong value is reported before what is missing", async () => {
    const env = { CNI_CONTAINERID: "a b", CNI_IFNAME: undefined, CNI_PATH: undefined };
    expect(await errorOf("ADD", { env })).toMatchObject({ msg: "invalid characters in containerID" });
  });

  test("the longest names pass, and arrive", async () => {
    const env = {
      CNI_CONTAINERID: `A0_.-${"x".repeat(4000)}`,
      CNI_IFNAME: "a".repeat(15),
      CNI_ARGS: "A=1;B=2",
    };
    const { seen } = await run("ADD", { env });
    expect(seen).toMatchObject([
      {
        call: { containerId: env.CNI_CONTAINERID, ifName: env.CNI_IFNAME, args: "A=1;B=2", network: "net" },
      },
    ]);
    expect(seen[0]!.call).toMatchObject({ netns: goodEnv.CNI_NETNS, path: goodEnv.CNI_PATH });
  });

  test("whatever the variables hold, there is one answer", async () => {
    const value = fc.option(fc.string({ unit: "binary", maxLength: 40 }), { nil: undefined });
    const env = fc.record({ CNI_CONTAINERID: value, CNI_NETNS: value, CNI_IFNAME: value, CNI_PATH: value });
    await fc.assert(
      fc.asyncProperty(fc.constantFrom(...verbs), env, async (verb, values) => {
        const { status, stdout } = await run(verb, { env: values });
        expect(status).toHaveLength(1);
        if (status[0] === 1) expect(JSON.parse(stdout.join(""))).toMatchObject({ code: 4 });
      }),
    );
  });
});

describe("the config", () => {
  const decoding = /^error unmarshall network config: /;

  test.each([
    ["nothing", "", { code: 6, msg: "error unmarshall network config: no config on stdin" }],
    ["white space", " \n", { code: 6, msg: "error unmarshall network config: no config on stdin" }],
    ["cut off", '{"name":"n"', { code: 6, msg: expect.stringMatching(decoding) }],
    ["two documents", "{}{}", { code: 6, msg: expect.stringMatching(decoding) }],
    ["a list", "[]", { code: 6, msg: "error unmarshall network config: it is not a JSON object" }],
    ["null", "null", { code: 6, msg: "error unmarshall network config: it is not a JSON object" }],
    ["a text", '"x"', { code: 6, msg: "error unmarshall network config: it is not a JSON object" }],
    ["a number", "0", { code: 6, msg: "error unmarshall network config: it is not a JSON object" }],
    ["no name", "{}", { code: 7, msg: "missing network name" }],
    ["name null", '{"name":null}', { code: 7, msg: "missing network name" }],
    ["name empty", '{"name":""}', { code: 7, msg: "missing network name" }],
    ["name 7", '{"name":7}', { code: 6, msg: "error unmarshall network config: name: 7 is not a string" }],
    [
      "name ../x",
      '{"name":"../x"}',
      { code: 7, msg: "invalid characters found in network name", details: "../x" },
    ],
    ["name a/b", '{"name":"a/b"}', { code: 7, msg: "invalid characters found in network name" }],
    ["name with newline", '{"name":"a\\n"}', { code: 7, msg: "invalid characters found in network name" }],
    [
      "cniVersion 1",
      '{"name":"n","cniVersion":1}',
      { code: 6, msg: "error unmarshall network config: cniVersion: 1 is not a string" },
    ],
  ])("%s is refused by every verb", async (_, stdin, error) => {
    for (const verb of verbs) expect(await errorOf(verb, { stdin }), verb).toMatchObject(error);
  });

  test("keys match in any case; of several spellings the last that is not null wins", async () => {
    const stdin = '{"NAME":"a","CniVersion":"0.4.0","name":"b","Name":null,"MTU":1,"mtu":2,"Mtu":null}';
    const { seen } = await run("ADD", { stdin });
    expect(seen).toMatchObject([{ call: { network: "b", cniVersion: "0.4.0", conf: { mtu: 2 } } }]);
  });

  test("reading fails: code 5", async () => {
    const readStdin = () => {
      throw new Error("read fd 0: input/output error");
    };
    const msg = "error reading from stdin: read fd 0: input/output error";
    for (const verb of verbs) expect(await errorOf(verb, { io: { readStdin } })).toEqual({ code: 5, msg });
  });

  test("any JSON gets one answer", async () => {
    await fc.assert(
      fc.asyncProperty(fc.constantFrom(...verbs), fc.json(), async (verb, stdin) => {
        const { status, stdout } = await run(verb, { stdin });
        expect(status).toHaveLength(1);
        if (status[0] === 1) expect([1, 6, 7]).toContain(JSON.parse(stdout.join("")).code);
      }),
    );
  });
});

describe("the order of checks", () => {
  /** Each has everything wrong that the ones after it look at. */
  const steps: [string, Parameters<typeof run>[1], number][] = [
    ["environment", { env: { CNI_PATH: "" }, stdin: "{" }, 4],
    ["JSON", { stdin: "{" }, 6],
    ["name", { stdin: { cniVersion: "9.0.0" } }, 7],
    ["version", { stdin: conf("9.0.0", { mtu: "wrong" }) }, 1],
    ["config", { stdin: conf("1.1.0", { mtu: "wrong", prevResult: 3 }) }, 6],
    ["previous result", { stdin: conf("1.1.0", { prevResult: 3 }) }, 6],
  ];
  test.each(steps)("%s", async (_, input, code) => {
    for (const verb of ["ADD", "CHECK", "STATUS"])
      expect(await errorOf(verb, input), verb).toMatchObject({ code });
  });

  test("an unknown command comes after the config and before the version", async () => {
    for (const command of ["add", "UPDATE", " ADD", "ADD\n", "constructor"]) {
      expect(await errorOf(command, { stdin: "{}", env: { CNI_PATH: "" } })).toMatchObject({ code: 7 });
      const stdin = conf("9.0.0", { mtu: "wrong" });
      expect(await errorOf(command, { stdin })).toEqual({ code: 4, msg: `unknown CNI_COMMAND: ${command}` });
    }
  });
});

describe("versions", () => {
  const since: Record<string, string> = {
    ADD: "0.1.0",
    DEL: "0.1.0",
    CHECK: "0.4.0",
    STATUS: "1.1.0",
    GC: "1.1.0",
  };

  test.each(verbs.flatMap((verb) => specVersions.map((version) => [verb, version] as const)))(
    "%s with %s",
    async (verb, version) => {
      if (atLeast(version, since[verb]!)) {
        expect((await run(verb, { stdin: conf(version) })).seen).toMatchObject([{ verb }]);
      } else {
        const error = { cniVersion: version, code: 1, msg: `config version does not allow ${verb}` };
        expect(await errorOf(verb, { stdin: conf(version) })).toMatchObject(error);
      }
    },
  );

  test("a config without one is 0.1.0", async () => {
    for (const stdin of [{ name: "n" }, { name: "n", cniVersion: "" }, { name: "n", cniVersion: null }])
      expect((await run("ADD", { stdin })).seen).toMatchObject([{ call: { cniVersion: "0.1.0" } }]);
  });

  test.each(["9.0.0", "1.0", "1.1.1", "0.4.0-rc1", "v1.1.0", "x", "1.1.0 "])(
    "%j is incompatible",
    async (version) => {
      const details = `config is "${version}", plugin supports ["0.1.0" "0.2.0" "0.3.0" "0.3.1" "0.4.0" "1.0.0" "1.1.0"]`;
      for (const verb of ["ADD", "DEL"])
        expect(await errorOf(verb, { stdin: conf(version) })).toEqual({
          cniVersion: version,
          code: 1,
          msg: "incompatible CNI versions",
          details,
        });
      for (const verb of ["CHECK", "STATUS", "GC"])
        expect(await errorOf(verb, { stdin: conf(version) })).toMatchObject({ code: 1 });
    },
  );

  test("a plugin that does not have them all", async () => {
    const plugin = { versions: ["0.4.0", "1.0.0"] as const };
    const details = 'config is "0.3.1", plugin supports ["0.4.0" "1.0.0"]';
    expect(await errorOf("ADD", { plugin, stdin: conf("0.3.1") })).toMatchObject({ code: 1, details });
    expect((await run("ADD", { plugin, stdin: conf("0.4.0") })).status).toEqual([0]);
    for (const verb of ["CHECK", "STATUS", "GC"])
      expect(await errorOf(verb, { plugin, stdin: conf("1.1.0") })).toMatchObject({
        code: 1,
        msg: `plugin version does not allow ${verb}`,
      });
  });
});
