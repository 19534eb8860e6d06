import { join } from "node:path";
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
  const ofVerb = (verb: string): Case[] => [
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
  ];
  return [
    ...verbs.flatMap(ofVerb),
    ...["", "add", "UPDATE"].map((verb) => ({ what: `command ${verb}`, verb, stdin: conf, call: gone })),
    { what: "a bad config for a bad command", verb: "UPDATE", stdin: "{}", call: gone },
  ];
}

/** Where the Go plugins answer otherwise, and why we do. */
function differs({ what, verb }: Case, code: number | undefined): boolean {
  // They have no code for it. We mostly have, and a DEL often has nothing to complain of.
  if (code === 999) return true;
  // A version that is none: 6 from their gate, 1 from ours as from every other check of a version.
  if (what === "version x" && ["CHECK", "STATUS", "GC"].includes(verb)) return true;
  // Null for the whole config is an empty config to them, and no object to us.
  return what === "stdin null";
}

/** Messages that contracts.md quotes. */
const quoted =
  /^(required env variables|missing network name|invalid characters|interface name|config version does not|plugin version does not|incompatible CNI versions|unknown CNI_COMMAND)/;

describe.each(["loopback", "bridge", "host-local"] as PluginName[])("%s", (type) => {
  const go = findGoBin(type);
  test.skipIf(go === undefined)("bad input gets the reference's answer", async () => {
    let compared = 0;
    await inParallel([...casesOf(type).entries()], async ([i, each]) => {
      const ours = await call(node, type, each.verb, withDataDir(each.stdin, `${i}`), each.call);
      const theirs = await asGo(go!, { ...each, stdin: withDataDir(each.stdin, `${i}-go`) });
      const what = `${each.verb}, ${each.what}: ${ours.stdout} / ${theirs.stdout}`;
      if (differs(each, theirs.json?.code)) return;
      compared++;
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

/** The config with a folder of its own for IPAM, so that no case sees what another has reserved. */
function withDataDir(stdin: Case["stdin"], name: string): Case["stdin"] {
  if (typeof stdin === "string" || !("ipam" in stdin)) return stdin;
  return { ...stdin, ipam: { ...(stdin.ipam as object), dataDir: join(node.dataDir, name) } };
}

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
