import { dirname } from "node:path";
import { goBin, ip, makeNode, type TestNode } from "@tscni/test-support";
import { atLeast, specVersions } from "@tscni/types";
import { afterEach, beforeEach, describe, expect, test } from "vitest";

let node: TestNode;
/** The folder of the Go plugins. */
let go: string;
beforeEach((test) => {
  node = makeNode();
  go = dirname(goBin("loopback", test));
});
afterEach(() => node.close());

describe.each(specVersions)("loopback beside Go's, cniVersion %s", (cniVersion) => {
  test.each([
    ["Go adds, we CHECK and DEL", true],
    ["we add, Go CHECKs and DELs", false],
  ])("%s", async (_, goAdds) => {
    const conf = { cniVersion, name: "lo", type: "loopback" };
    const netns = node.container();
    const [by, then] = [goAdds, !goAdds].map((isGo) => ({ netns, ...(isGo ? { bin: go } : {}) }));
    const isUp = () => ip(netns, "link", "show", "dev", "lo")[0].flags.includes("UP");
    await node.ok("ADD", conf, by);
    expect(isUp()).toBe(true);
    if (atLeast(cniVersion, "0.4.0")) await node.ok("CHECK", conf, then);
    await node.ok("DEL", conf, then);
    expect(isUp()).toBe(false);
  });
});
