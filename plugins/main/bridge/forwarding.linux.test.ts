import { ip, makeNode, type TestNode } from "@tscni/test-support";
import { afterEach, beforeEach, expect, test } from "vitest";

let node: TestNode;
beforeEach(() => {
  node = makeNode();
});
afterEach(() => node.close());

/** The states of the bridge's own addresses, also the one that the kernel gives it. */
const states = () =>
  ip(node.host, "-6", "addr", "show", "dev", "brtest")
    .flatMap((link) => link.addr_info)
    .map(({ scope, tentative = false }: { scope: string; tentative?: boolean }) => `${scope} ${tentative}`)
    .toSorted();

test("a new bridge can ask for neighbours at once: none of its addresses waits for a duplicate", async () => {
  await node.ok("ADD", node.bridgeConf({ isGateway: true }), { netns: node.container() });
  expect(states()).toEqual(["global false", "link false"]);
});

test("with enabledad, it does not skip the search", async () => {
  await node.ok("ADD", node.bridgeConf({ isGateway: true, enabledad: true }), { netns: node.container() });
  expect(node.host.run("sysctl", "-n", "net.ipv6.conf.brtest.accept_dad").trim()).toBe("1");
});
