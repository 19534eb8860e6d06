import { ip, type TestNamespace } from "@tscni/test-support";
import { afterEach, beforeEach, expect, test } from "vitest";
import { type Lab, makeLab } from "./testing.ts";

let lab: Lab;
let senders: Bun.Subprocess[];
beforeEach(async () => {
  lab = await makeLab();
  senders = [];
});
afterEach(() => {
  for (const sender of senders) sender.kill();
  lab.node.close();
});

/** Sends UDP packets to an address for ten seconds at about 100 Mbit/s. */
const flood = `
  const socket = require("node:dgram").createSocket(process.argv[1].includes(":") ? "udp6" : "udp4");
  socket.on("error", () => {});
  const packet = Buffer.alloc(1400);
  const start = performance.now();
  let sent = 0;
  setInterval(() => {
    const due = ((performance.now() - start) * 100_000) / (8 * packet.length);
    for (sent = Math.max(sent, due - 500); sent < due; sent++) socket.send(packet, 9, process.argv[1]);
  }, 2);
  setTimeout(() => process.exit(), 10_000);
`;

function send(from: TestNamespace, to: string): void {
  const command = ["nsenter", `--net=${from.path}`, "--", process.execPath, "-e", flood, to];
  senders.push(Bun.spawn(command, { stdout: "ignore", stderr: "ignore" }));
}

/** Bytes that a link has received so far, Ethernet headers included. */
const received = (ns: TestNamespace, name: string): number =>
  ip(ns, "-s", "link", "show", "dev", name)[0].stats64.rx.bytes;

/** What arrives in bit/s, over three seconds of which the first bucket's tokens are gone. */
async function rates(...ends: [TestNamespace, string][]): Promise<number[]> {
  await Bun.sleep(1000);
  const before = ends.map((end) => ({ at: performance.now(), bytes: received(...end) }));
  await Bun.sleep(3000);
  return ends.map((end, i) => {
    const [bytes, seconds] = [
      received(...end) - before[i]!.bytes,
      (performance.now() - before[i]!.at) / 1000,
    ];
    return (bytes * 8) / seconds;
  });
}

const within10 = (rate: number, wanted: number) => {
  expect(rate).toBeGreaterThan(wanted * 0.9);
  expect(rate).toBeLessThan(wanted * 1.1);
};

// A bucket of a tenth of a second lets a sender that was kept waiting by a busy machine catch up.
const limits = {
  ingressRate: 20_000_000,
  ingressBurst: 2_000_000,
  egressRate: 8_000_000,
  egressBurst: 800_000,
};

test.each(["4", "6"])("IPv%s: both ways at once, each at the rate that was set", async (family) => {
  const [hostAddress, address] = family === "4" ? ["10.88.0.1", "10.88.0.2"] : ["fd88::1", "fd88::2"];
  await lab.node.ok("ADD", lab.conf(limits), { netns: lab.container });
  send(lab.node.host, address!);
  send(lab.container, hostAddress!);
  const [ingress, egress] = await rates([lab.container, "eth0"], [lab.node.host, "brtest"]);
  within10(ingress!, limits.ingressRate);
  within10(egress!, limits.egressRate);
});

test("what is not limited goes as fast as it is sent", async () => {
  const { egressRate, egressBurst } = limits;
  await lab.node.ok("ADD", lab.conf({ egressRate, egressBurst }), { netns: lab.container });
  send(lab.node.host, "10.88.0.2");
  const [ingress] = await rates([lab.container, "eth0"]);
  expect(ingress).toBeGreaterThan(limits.ingressRate * 1.5);
});

test("how much waits in a full queue is the latency's choice", async () => {
  send(lab.node.host, "10.88.0.2");
  for (const [latency, bytes] of [
    [5, 5000],
    [200, 200_000],
  ] as const) {
    const burst = 3000;
    const own = { ingressRate: 8_000_000, ingressBurst: 8 * burst, latency };
    await lab.node.ok("ADD", lab.conf(own), { netns: lab.container });
    const waiting: number[] = [];
    for (let i = 0; i < 40; i++) {
      await Bun.sleep(25);
      waiting.push(lab.tc("-s", "qdisc", "show", "dev", lab.port)[0].backlog);
    }
    expect(Math.max(...waiting)).toBeLessThanOrEqual(bytes + burst);
    expect(Math.max(...waiting)).toBeGreaterThan((bytes + burst) / 2);
  }
});
