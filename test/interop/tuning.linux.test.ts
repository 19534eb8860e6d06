import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import {
  type Conf,
  goBin,
  ip,
  makeNode,
  type TestNamespace,
  type TestNode,
  temporaryFolder,
} from "@tscni/test-support";
import { atLeast, specVersions } from "@tscni/types";
import { afterEach, beforeEach, describe, expect, test } from "vitest";

let node: TestNode;
/** The folder of the Go plugins. */
let go: string;
let c: TestNamespace;
let data: ReturnType<typeof temporaryFolder>;
beforeEach((test) => {
  node = makeNode();
  go = dirname(goBin("tuning", test));
  c = node.container();
  c.run("ip", "link", "add", "eth0", "address", "0a:00:00:00:00:01", "type", "veth", "peer", "name", "other");
  data = temporaryFolder();
});
afterEach(() => {
  node.close();
  data.remove();
});

const settings = { mac: "0a:00:00:00:00:02", mtu: 1400, txQLen: 77, promisc: true, allmulti: true };

const confOf = (cniVersion: string, more: object = settings): Conf => ({
  cniVersion,
  name: "tuned",
  type: "tuning",
  dataDir: join(data.path, "tuning"),
  prevResult: atLeast(cniVersion, "0.3.0")
    ? { cniVersion, interfaces: [{ name: "eth0", sandbox: c.path }] }
    : { cniVersion, ip4: { ip: "10.1.2.3/24" } },
  ...more,
});

function link(): object {
  const [found] = ip(c, "link", "show", "dev", "eth0");
  const { address, mtu, txqlen, flags } = found;
  return { address, mtu, txqlen, flags: flags.filter((f: string) => f === "PROMISC" || f === "ALLMULTI") };
}

const files = (): Record<string, object> => {
  const folder = join(data.path, "tuning");
  const names = existsSync(folder) ? readdirSync(folder) : [];
  return Object.fromEntries(names.map((n) => [n, JSON.parse(readFileSync(join(folder, n), "utf8"))]));
};

describe.each(specVersions)("tuning beside Go's, cniVersion %s", (cniVersion) => {
  test.each([
    ["Go adds, we CHECK and DEL", true],
    ["we add, Go CHECKs and DELs", false],
  ])("%s, and nothing is left", async (_, goAdds) => {
    const before = link();
    const [by, then] = [goAdds, !goAdds].map((isGo) => ({ netns: c, ...(isGo ? { bin: go } : {}) }));
    const conf = confOf(cniVersion);
    await node.ok("ADD", conf, by);
    expect(link()).toEqual({
      address: "0a:00:00:00:00:02",
      mtu: 1400,
      txqlen: 77,
      flags: expect.arrayContaining(["PROMISC", "ALLMULTI"]),
    });
    if (atLeast(cniVersion, "0.4.0")) await node.ok("CHECK", conf, then);
    await node.ok("DEL", conf, then);
    expect([link(), files()]).toEqual([before, {}]);
  });

  test("both write the same backup, but for the keys that only we add", async () => {
    const conf = confOf(cniVersion);
    await node.ok("ADD", conf, { netns: c, bin: go });
    const theirs = files();
    await node.ok("DEL", conf, { netns: c, bin: go });
    await node.ok("ADD", conf, { netns: c });
    const { network, link, ...ours } = files()["c1_eth0.json"] as Record<string, unknown>;
    expect(network).toBe("tuned");
    expect(link).toMatchObject({ index: expect.any(Number) });
    expect({ "c1_eth0.json": ours }).toEqual(theirs);
    expect(Object.keys(ours)).toEqual(Object.keys(theirs["c1_eth0.json"]!));
  });

  test("our ADD over Go's keeps the values of before Go's", async () => {
    const before = link();
    await node.ok("ADD", confOf(cniVersion, { mtu: 1450 }), { netns: c, bin: go });
    await node.ok("ADD", confOf(cniVersion), { netns: c });
    await node.ok("DEL", confOf(cniVersion), { netns: c });
    expect([link(), files()]).toEqual([before, {}]);
  });
});
