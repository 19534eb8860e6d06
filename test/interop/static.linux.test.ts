import { dirname } from "node:path";
import { goBin, makeNode, type TestNode } from "@tscni/test-support";
import { atLeast, specVersions } from "@tscni/types";
import { afterEach, beforeEach, describe, expect, test } from "vitest";

let node: TestNode;
/** The folder of the Go plugins. */
let go: string;
beforeEach((test) => {
  node = makeNode();
  go = dirname(goBin("static", test));
});
afterEach(() => node.close());

const addresses = [{ address: "10.10.0.1/24", gateway: "10.10.0.254" }, { address: "fd10::1/64" }];
const routes = [{ dst: "0.0.0.0/0" }, { dst: "fd99::/64", gw: "fd10::2" }];
const dns = { nameservers: ["10.10.0.53"], domain: "a.test" };
const netns = "/run/netns/none";

describe.each(specVersions)("static beside Go's, cniVersion %s", (cniVersion) => {
  const confOf = (more: object) => ({
    cniVersion,
    name: "testnet",
    type: "static",
    ipam: { type: "static", ...more },
  });

  test("what one adds the other CHECKs and DELs", async () => {
    for (const [by, then] of [
      [{ bin: go }, {}],
      [{}, { bin: go }],
    ]) {
      const conf = confOf({ addresses, routes, dns });
      const prevResult = await node.ok("ADD", conf, { netns, ...by });
      if (atLeast(cniVersion, "0.4.0")) await node.ok("CHECK", { ...conf, prevResult }, { netns, ...then });
      await node.ok("DEL", { ...conf, prevResult }, { netns, ...then });
    }
  });

  const withArgs = { args: "IP=10.20.0.2/16,fd20::2/64;GATEWAY=10.20.0.1" };
  test.each<[string, object, object, object]>([
    ["all keys", { addresses, routes, dns }, {}, {}],
    ["CNI_ARGS", {}, {}, withArgs],
    ["args", { addresses }, { args: { cni: { ips: ["10.30.0.3/24"] } } }, {}],
    ["the capability", { addresses }, { runtimeConfig: { ips: ["10.40.0.4/24"] } }, withArgs],
    ["an address without prefix length", { addresses: [{ address: "10.1.1.1" }] }, {}, {}],
    ["too many for the oldest versions", { addresses: [...addresses, ...addresses] }, {}, {}],
  ])("the same result or refusal: %s", async (_, ipam, more, call) => {
    const conf = { ...confOf(ipam), ...more };
    const [ours, theirs] = [
      await node.call("ADD", conf, { netns, ...call }),
      await node.call("ADD", conf, { netns, ...call, bin: go }),
    ];
    expect(ours.status).toBe(theirs.status);
    if (theirs.status === 0) expect(ours.json).toEqual(theirs.json);
  });
});
