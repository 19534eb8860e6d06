import { openNamespace } from "@tscni/ns";
import { AF_PACKET, bind, close, SOCK_RAW, send, socket } from "@tscni/sys";
import { packetAddress, pollReadable, receivePacket, SOCK_NONBLOCK } from "@tscni/sys/net";
import { ip } from "@tscni/test-support";
import { afterEach, beforeEach, expect, test } from "vitest";
import { type Lab, makeLab } from "./testing.ts";
import { decodeFrame, ETH_P_IP, encodeFrame } from "./wire/frame.ts";
import { ipv4Bytes } from "./wire/ipv4.ts";
import { decodeMessage, encodeMessage, type Message, MessageType } from "./wire/message.ts";
import { Option } from "./wire/options.ts";

let lab: Lab;
beforeEach(() => {
  lab = makeLab();
});
afterEach(() => lab.close());

const [serverIp, address] = [0x0a370001, 0x0a370064];
const mask = Uint8Array.of(255, 255, 255, 0);

/** The answer that a proper server gives; `changes` make it what it is not. */
function answer(
  request: Message,
  type: number,
  changes: Partial<Message> = {},
  options: [number, number[]][] = [],
): Message {
  return {
    ...request,
    reply: true,
    type,
    ciaddr: 0,
    yiaddr: address,
    options: new Map<number, Uint8Array>([
      [Option.ServerId, ipv4Bytes(serverIp)],
      [Option.LeaseTime, Uint8Array.of(0, 0, 14, 16)],
      [Option.SubnetMask, mask],
      ...options.map(([code, value]) => [code, Uint8Array.from(value)] as [number, Uint8Array]),
    ]),
    ...changes,
  };
}

type Datagram = Message | Uint8Array;
type Reaction = (request: Message) => Datagram[];

/** Somebody on the bridge who answers by raw packets; returns what was asked of him. */
function answerBy(react: Reaction, port = 67): { asked: Message[]; stop(): void } {
  const [link] = ip(lab.host, "link", "show", "dev", "br0");
  using namespace = openNamespace(lab.host.path);
  const fd = namespace.enter(() => socket(AF_PACKET, SOCK_RAW | SOCK_NONBLOCK, 0));
  bind(fd, packetAddress(link.ifindex, ETH_P_IP));
  const own = Uint8Array.from(link.address.split(":"), (byte: string) => Number.parseInt(byte, 16));
  const asked: Message[] = [];
  const buffer = new Uint8Array(4096);
  const timer = setInterval(() => {
    while (pollReadable([fd], 0).length > 0) {
      const { length } = receivePacket(fd, buffer);
      const frame = readFrame(buffer.subarray(0, length));
      if (frame?.targetPort !== 67) continue;
      const request = decodeMessage(frame.payload);
      asked.push(request);
      for (const reply of react(request)) {
        const payload = reply instanceof Uint8Array ? reply : encodeMessage(reply);
        const all = Uint8Array.of(255, 255, 255, 255, 255, 255);
        const ports = { sourcePort: port, targetPort: 68 };
        const data = encodeFrame({
          sourceMac: own,
          targetMac: all,
          source: serverIp,
          target: 0xffffffff,
          ...ports,
          payload,
        });
        send(fd, data, packetAddress(link.ifindex, 0));
      }
    }
  }, 5);
  return {
    asked,
    stop() {
      clearInterval(timer);
      close(fd);
    },
  };
}

function readFrame(bytes: Uint8Array) {
  try {
    return decodeFrame(bytes, true);
  } catch {
    return undefined;
  }
}

const isDiscover = ({ type }: Message) => type === MessageType.Discover;

/** What is wrong in an answer, and what the daemon says of it. */
const wrongs: [what: string, (request: Message, type: number) => Datagram, said: string][] = [
  [
    "another exchange's",
    (r, type) => answer(r, type, { xid: (r.xid + 1) >>> 0 }),
    "of another exchange (xid)",
  ],
  [
    "another client's",
    (r, type) => answer(r, type, { chaddr: Uint8Array.of(2, 2, 2, 2, 2, 2) }),
    "for another client (chaddr)",
  ],
  [
    "another client id's",
    (r, type) => answer(r, type, {}, [[61, [0, 65]]]),
    "for another client (option 61)",
  ],
  ["of no address", (r, type) => answer(r, type, { yiaddr: 0 }), "0.0.0.0"],
  ["of another type", (r) => answer(r, MessageType.Inform), "INFORM, not"],
  ["a request", (r, type) => answer(r, type, { reply: false }), "another client's request"],
  ["cut off", (r, type) => encodeMessage(answer(r, type)).slice(0, 200), "are too few"],
  [
    "an option that goes beyond the end",
    (r, type) => encodeMessage(answer(r, type, {}, [[77, new Array(200).fill(65)]])).slice(0, 300),
    "goes beyond",
  ],
  ["BOOTP", (r, type) => encodeMessage(answer(r, type)).fill(0, 236, 240), "no magic cookie"],
  ["garbage", () => Uint8Array.from({ length: 500 }, (_, i) => (i * 37) & 255), "ignored a packet"],
];

test.each(wrongs)("answers that are wrong count for nothing: %s", async (_, wrong, said) => {
  const daemon = await lab.daemon("-resendmax", "400ms");
  const server = answerBy((request) => {
    const type = isDiscover(request) ? MessageType.Offer : MessageType.Ack;
    return [wrong(request, type), answer(request, type), answer(request, type)]; // and the right one twice
  });
  const result = await lab.call("ADD", { ns: lab.container() });
  server.stop();
  expect(result).toMatchObject({ status: 0, ips: [{ address: "10.55.0.100/24" }] });
  expect(daemon.log()).toContain(said);
  expect(server.asked.map(({ type }) => type)).toEqual([MessageType.Discover, MessageType.Request]);
});

test("an answer from another port is none", async () => {
  const daemon = await lab.daemon("-resendmax", "200ms", "-resendtimeout", "700ms");
  const server = answerBy((request) => [answer(request, MessageType.Offer)], 6767);
  const error = await lab.call("ADD", { ns: lab.container() });
  server.stop();
  expect(error).toMatchObject({
    code: 11,
    msg: "no more tries",
    details: expect.stringContaining("from UDP port 6767"),
  });
  expect(daemon.log()).not.toContain("REQUEST");
});

test("options in file and sname; a slow server; the first request lost", async () => {
  await lab.daemon("-resendmax", "300ms");
  let requests = 0;
  const server = answerBy((request) => {
    if (isDiscover(request)) return requests++ < 2 ? [] : [answer(request, MessageType.Offer)];
    if (requests++ < 4) return [];
    const ack = answer(request, MessageType.Ack);
    ack.options.delete(Option.SubnetMask);
    const data = encodeMessage({ ...ack, options: new Map([[52, Uint8Array.of(3)], ...ack.options]) });
    data.set([1, 4, 255, 255, 0, 0, 255], 108); // file
    data.set([15, 4, 97, 46, 98, 99, 255], 44); // sname
    return [data];
  });
  const result = await lab.call("ADD", { ns: lab.container() });
  server.stop();
  expect(result).toMatchObject({ ips: [{ address: "10.55.0.100/16" }], dns: { domain: "a.bc" } });
});

test("a NAK to the first request is the beginning of another exchange; without a mask ADD fails", async () => {
  const daemon = await lab.daemon("-resendmax", "300ms");
  let refused = false;
  const server = answerBy((request) => {
    if (isDiscover(request)) return [answer(request, MessageType.Offer)];
    if (refused) return [answer(request, MessageType.Ack)];
    refused = true;
    return [answer(request, MessageType.Nak, {}, [[Option.Message, [110, 111]]])];
  });
  expect(await lab.call("ADD", { ns: lab.container() })).toMatchObject({ status: 0 });
  server.stop();
  expect(daemon.log()).toContain('refused (NAK): "no"');

  const noMask = answerBy((request) => {
    const reply = answer(request, isDiscover(request) ? MessageType.Offer : MessageType.Ack);
    reply.options.delete(Option.SubnetMask);
    return [reply];
  });
  expect(await lab.call("ADD", { ns: lab.container(), id: "c2" })).toMatchObject({
    status: 1,
    msg: "DHCP option Subnet Mask not found in DHCPACK",
  });
  noMask.stop();
});

test("a flood of packets keeps nobody from getting an address", async () => {
  await lab.daemon("-resendmax", "400ms");
  const server = answerBy((request) => {
    const type = isDiscover(request) ? MessageType.Offer : MessageType.Ack;
    return [
      ...Array.from({ length: 300 }, (_, i) => answer(request, type, { xid: i })),
      answer(request, type),
    ];
  });
  expect(await lab.call("ADD", { ns: lab.container() })).toMatchObject({ status: 0 });
  server.stop();
});
