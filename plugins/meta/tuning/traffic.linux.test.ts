import { type Conf, makeNode, type TestNamespace, type TestNode, temporaryFolder } from "@tscni/test-support";
import { afterEach, beforeEach, expect, test } from "vitest";

// What tuning changes, seen by packets: behind bridge, with a neighbour on the same bridge.

let node: TestNode;
let c: TestNamespace;
let neighbour: TestNamespace;
let data: ReturnType<typeof temporaryFolder>;
let prevResult: object;
beforeEach(async () => {
  node = makeNode();
  data = temporaryFolder();
  [c, neighbour] = [node.container(), node.container()];
  prevResult = await node.ok("ADD", bridge(), { netns: c }); // 10.88.0.2
  await node.ok("ADD", bridge(), { netns: neighbour, id: "c2" });
});
afterEach(() => {
  node.close();
  data.remove();
});

const bridge = (): Conf => node.bridgeConf({ isGateway: true });
const tuning = (more: object): Conf => ({
  cniVersion: "1.1.0",
  name: "testnet",
  type: "tuning",
  dataDir: data.path,
  prevResult,
  ...more,
});

function answers(from: TestNamespace, ...options: string[]): boolean {
  try {
    return from.run("ping", "-c1", "-W1", ...options).includes(" 1 received");
  } catch {
    return false;
  }
}

const v4 = "10.88.0.2";
const v6 = "fd88::2";

test("a new MAC address is known at once to those who remember the old one", async () => {
  for (const from of [node.host, neighbour])
    for (const address of [v4, v6]) expect(answers(from, address)).toBe(true);
  await node.ok("ADD", tuning({ mac: "0a:00:00:00:00:05" }), { netns: c });
  for (const from of [node.host, neighbour])
    for (const address of [v4, v6]) expect(answers(from, address), address).toBe(true);
  await node.ok("DEL", tuning({}), { netns: c });
  for (const from of [node.host, neighbour])
    for (const address of [v4, v6]) expect(answers(from, address), address).toBe(true);
});

test("packets of the MTU leave, larger ones don't", async () => {
  const ofSize = (bytes: number) => answers(c, "-M", "do", "-s", String(bytes - 28), "10.88.0.1");
  expect(ofSize(1401)).toBe(true);
  await node.ok("ADD", tuning({ mtu: 1400 }), { netns: c });
  expect([ofSize(1400), ofSize(1401)]).toEqual([true, false]);
  await node.ok("DEL", tuning({}), { netns: c });
  expect(ofSize(1401)).toBe(true);
});

test("a sysctl does what it says, in this container alone", async () => {
  await node.ok("ADD", tuning({ sysctl: { "net.ipv4.icmp_echo_ignore_all": "1" } }), { netns: c });
  expect([answers(node.host, v4), answers(node.host, "10.88.0.3")]).toEqual([false, true]);
  expect(answers(node.host, v6)).toBe(true);
});
