import { findGoBin, makeNode, type NodeCall, runPlugin, type TestNode } from "@tscni/test-support";
import { specVersions } from "@tscni/types";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { call, goodConf, inParallel, type PluginName, verbs } from "./call.ts";

/*
 * The Go plugins as the second opinion: whether a call fails, its code, and the message where programs match on it.
 */

let node: TestNode;
beforeAll(() => {
  node = makeNode();
});
afterAll(() => node.close());

interface Case {
  what: string;
  verb: string;
  stdin: object | string;
  call: NodeCall & { env?: Record<string, string | undefined> };
}

const gone = { netns: "/no/such" };

function casesOf(type: PluginName): Case[] {
  const conf = goodConf(type, node);
  const variables = ["CNI_CONTAINERID", "CNI_IFNAME", "CNI_NETNS", "CNI_PATH", "CNI_ARGS"];
  const bad = ["", "../x", "a b", "a\nb", ".", "x".repeat(16), "a:b", "é"];
  const versions = [...specVersions, "", "0.5.0", "1.0", "9.0.0", "x"];
  const names = [undefined, null, "", "a b", "../x", "-a", 7, [], {}];
  const texts = ["", "{", "[]", "null", "3", '"x"', '{"name":"n"} x', "{'name':'n'}"];
  return verbs
    .flatMap((verb) => [
      ...variables.flatMap((name) =>
        bad.map((value) => ({
          what: `${name}=${value}`,
          verb,
          stdin: conf,
          call: { ...gone, env: { [name]: value } },
        })),
      ),
      ...versions.map((cniVersion) => ({
        what: `version ${cniVersion}`,
        verb,
        stdin: { ...conf, cniVersion },
        call: gone,
      })),
      ...names.map((name) => ({
        what: `name ${JSON.stringify(name)}`,
        verb,
        stdin: { ...conf, name },
        call: gone,
      })),
      ...texts.map((stdin) => ({ what: `stdin ${stdin}`, verb, stdin, call: gone })),
      {
        what: "everything wrong",
        verb,
        stdin: "{",
        call: { env: { CNI_PATH: "", CNI_IFNAME: "a/b", CNI_CONTAINERID: "" } },
      },
      {
        what: "nothing given",
        verb,
        stdin: "",
        call: { env: Object.fromEntries(variables.map((name) => [name, ""])) },
      },
    ])
    .concat(
      ["", "add", "UPDATE"].map((verb) => ({ what: `command ${verb}`, verb, stdin: conf, call: gone })),
      [{ what: "a bad config for a bad command", verb: "UPDATE", stdin: "{}", call: gone }],
    );
}

/** Where the Go plugins answer otherwise, and why we do. */
function differs(type: PluginName, { what, verb }: Case, code: number | undefined): boolean {
  // Theirs is a text of the Go library that was not given a code.
  if (code === 999) return true;
  // A version that is none: 6 from their gate, 1 as everywhere else from ours.
  if (what === "version x" && ["CHECK", "STATUS", "GC"].includes(verb)) return true;
  // JSON's null as the whole config is an empty config to them.
  if (what === "stdin null") return true;
  // Their gate parses before it looks, ours reads the name first.
  return type === "host-local" && verb === "STATUS" && what.startsWith("version");
}

/** Messages that contracts.md quotes. */
const quoted =
  /^(required env variables|missing network name|invalid characters|interface name|config version does not|plugin version does not|incompatible CNI versions|unknown CNI_COMMAND)/;

describe.each(["loopback", "bridge", "host-local"] as PluginName[])("%s", (type) => {
  const go = findGoBin(type);
  test.skipIf(go === undefined)("bad input gets the reference's answer", async () => {
    let compared = 0;
    await inParallel(casesOf(type), async (each) => {
      const ours = await call(node, type, each.verb, each.stdin, each.call);
      const theirs = await asGo(go!, each);
      if (differs(type, each, theirs.json?.code)) return;
      compared++;
      const what = `${each.verb}, ${each.what}: ${ours.stdout} / ${theirs.stdout}`;
      expect(answerOf(ours), what).toEqual(answerOf(theirs));
    });
    expect(compared).toBeGreaterThan(250);
  });
});

const answerOf = ({
  status,
  json,
}: {
  status: number | null;
  json: { code?: number; msg?: string } | undefined;
}) => {
  const { code, msg } = status === 0 ? {} : (json ?? {});
  return { status, code, ...(msg !== undefined && quoted.test(msg) ? { msg } : {}) };
};

/** The same call of the Go plugin. */
function asGo(go: string, { verb, stdin, call: { netns, env } }: Case) {
  const [bin, ...args] = node.command("", "");
  return runPlugin({
    bin: Bun.which(bin!)!,
    args: [...args.slice(0, -1), go],
    env: {
      CNI_COMMAND: verb,
      CNI_CONTAINERID: "c1",
      CNI_NETNS: netns as string | undefined,
      CNI_IFNAME: "eth0",
      CNI_PATH: go.slice(0, go.lastIndexOf("/")),
      ...env,
    },
    stdin,
  });
}
