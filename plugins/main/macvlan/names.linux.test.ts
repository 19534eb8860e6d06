import { ip, makeNode, needs, type TestNamespace, type TestNode } from "@tscni/test-support";
import { afterEach, beforeEach, expect, test } from "vitest";

let node: TestNode;
beforeEach((test) => {
  needs(test, "dummy"); // kernels that lack it are too new for what is tried here, and the virtual machine's is not
  node = makeNode();
});
afterEach(() => node.close());

const namesIn = (ns: TestNamespace): string[] =>
  ip(ns, "link")
    .map((link) => link.ifname)
    .toSorted();

test("the container's interface may be called as one of the host, even the master", async () => {
  node.host.run("ip", "link", "add", "eth0", "up", "type", "dummy");
  const conf = { cniVersion: "1.1.0", name: "testnet", type: "macvlan", master: "eth0" };
  const containers = [node.container(), node.container()];
  for (const [i, netns] of containers.entries()) {
    const prevResult = await node.ok("ADD", conf, { netns, id: `c${i}` });
    await node.ok("CHECK", { ...conf, prevResult }, { netns, id: `c${i}` });
    expect(namesIn(netns)).toEqual(["eth0", "lo"]);
    const { msg } = await node.error("ADD", conf, { netns, id: "c9" });
    expect(msg).toBe('interface "eth0" already exists in the container');
  }
  expect(namesIn(node.host)).toEqual(["eth0", "lo"]);
});
