import fc from "fast-check";
import { expect, test } from "vitest";
import { decodeMessage, encodeMessage, type Message, MessageType, typeName } from "./message.ts";
import { decodeOptions, encodeOptions, Malformed, Option, type Options } from "./options.ts";

const bytes = (length: number) => fc.uint8Array({ minLength: length, maxLength: length });
const uint32 = fc.integer({ min: 0, max: 0xffffffff });

/** Codes that mean something to the codec itself are left out. */
const options: fc.Arbitrary<Options> = fc
  .array(fc.tuple(fc.integer({ min: 1, max: 254 }), fc.uint8Array({ maxLength: 700 })), { maxLength: 8 })
  .map((list) => new Map(list.filter(([code]) => code !== Option.Overload && code !== Option.MessageType)));

const messages: fc.Arbitrary<Message> = fc.record({
  reply: fc.boolean(),
  xid: uint32,
  secs: fc.integer({ min: 0, max: 0xffff }),
  broadcast: fc.boolean(),
  ciaddr: uint32,
  yiaddr: uint32,
  giaddr: uint32,
  chaddr: bytes(6),
  options,
  type: fc.integer({ min: 0, max: 255 }),
});

test("a message is read as it was written", () => {
  fc.assert(
    fc.property(messages, (message) => {
      expect(decodeMessage(encodeMessage(message))).toEqual(message);
    }),
  );
});

test("whatever comes in is a message or malformed", () => {
  const read = (data: Uint8Array) => {
    try {
      decodeMessage(data);
    } catch (error) {
      expect(error).toBeInstanceOf(Malformed);
    }
  };
  fc.assert(fc.property(fc.uint8Array({ maxLength: 600 }), read));
  // Nearly right ones: cut off, with bytes changed.
  const changes = fc.array(fc.tuple(fc.nat(400), fc.integer({ min: 0, max: 255 })), { maxLength: 6 });
  fc.assert(
    fc.property(messages, fc.nat(700), changes, (message, length, list) => {
      const data = encodeMessage(message).slice(0, length);
      for (const [at, value] of list) if (at < data.length) data[at] = value;
      read(data);
    }),
  );
});

test("a message has at least 300 bytes, its type first, and an end", () => {
  const message = {
    ...fc.sample(messages, 1)[0]!,
    options: new Map([[Option.HostName, Uint8Array.of(104)]]),
    type: MessageType.Discover,
  };
  const data = encodeMessage(message);
  expect(data.length).toBe(300);
  expect([...data.subarray(236, 248)]).toEqual([0x63, 0x82, 0x53, 0x63, 53, 1, 1, 12, 1, 104, 255, 0]);
});

const field = (...values: number[]) => Uint8Array.from(values);
const none = new Uint8Array();

test("option 52 leads into file and sname, and the pieces of an option make one", () => {
  const read = decodeOptions(
    field(52, 1, 3, 15, 2, 97, 98, 255),
    field(0, 15, 1, 99, 255),
    field(15, 1, 100, 255),
  );
  expect(read).toEqual(new Map([[15, field(97, 98, 99, 100)]]));
  const file = field(12, 1, 65, 255);
  const sname = field(12, 1, 66, 255);
  expect(decodeOptions(field(52, 1, 1, 255), file, sname).get(12)).toEqual(field(65));
  expect(decodeOptions(field(52, 1, 2, 255), file, sname).get(12)).toEqual(field(66));
  expect(decodeOptions(field(255), file, sname)).toEqual(new Map());
  // There it means nothing, and so goes nowhere.
  expect(decodeOptions(field(52, 1, 1, 255), field(52, 1, 3, 255), sname)).toEqual(new Map());
});

test.each([
  ["no length", field(15), none, none],
  ["shorter than it says", field(15, 3, 97, 98), none, none],
  ["goes on beyond file", field(52, 1, 1, 255), field(15, 9, 97), none],
  ["overload of nothing", field(52, 1, 0, 255), none, none],
  ["overload of two bytes", field(52, 2, 1, 1, 255), none, none],
])("malformed: %s", (_, main, file, sname) => {
  expect(() => decodeOptions(main, file, sname)).toThrow(Malformed);
});

test("an empty value stays one, and one of 256 bytes is written in two pieces", () => {
  expect([...encodeOptions(new Map([[80, none]]))]).toEqual([80, 0, 255]);
  const long = encodeOptions(new Map([[80, new Uint8Array(256).fill(7)]]));
  expect([long[1], long[257], long[258], long.length]).toEqual([255, 80, 1, 261]);
});

test("names of messages", () => {
  expect([typeName(1), typeName(5), typeName(6), typeName(99)]).toEqual([
    "DISCOVER",
    "ACK",
    "NAK",
    "message of type 99",
  ]);
});
