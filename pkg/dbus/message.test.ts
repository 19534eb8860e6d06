import { describe, expect, test } from "vitest";
import { socketPathOf } from "./address.ts";
import { Writer } from "./marshal.ts";
import { decodeMessage, encodeCall, messageBytes } from "./message.ts";

test.each([
  ["unix:path=/run/dbus/system_bus_socket", "/run/dbus/system_bus_socket"],
  ["unix:guid=12,path=/a%2cb%20c", "/a,b c"],
  ["tcp:host=x;unix:abstract=/a;unix:path=/b", "/b"],
  ["unix:abstract=/a", undefined],
  ["", undefined],
])("the socket of %j is %j", (address, path) => expect(socketPathOf(address)).toBe(path));

describe("messages", () => {
  const call = { destination: "a.b", path: "/a", interface: "c.d", member: "M", args: ["x", "é"] };

  test("a call's length is what its header says", () => {
    const bytes = encodeCall(7, call);
    expect(messageBytes(bytes)).toBe(bytes.length);
    expect(messageBytes(bytes.subarray(0, 15))).toBeUndefined();
    expect(bytes.length % 4).not.toBe(1);
  });

  /** A reply to call 7 as a bus writes it. */
  function reply(signature: string, body: (writer: Writer) => void): Uint8Array {
    const [head, tail] = [new Writer(), new Writer()];
    body(tail);
    for (const byte of [0x6c, 2, 1, 1]) head.byte(byte);
    for (const number of [tail.length, 1, 0]) head.uint32(number);
    for (const [code, type, write] of [
      [5, "u", () => head.uint32(7)],
      [8, "g", () => head.signature(signature)],
    ] as const) {
      head.align(8);
      head.byte(code);
      head.signature(type);
      write();
    }
    head.uint32At(12, head.length - 16);
    head.align(8);
    return Uint8Array.from([...head.bytes, ...tail.bytes]);
  }

  test("a reply's values of every type that we know", () => {
    const bytes = reply("sbuasi", (w) => {
      w.string("ü");
      w.uint32(1);
      w.uint32(4_000_000_000);
      w.uint32(4 + 2 + 2 + 4 + 2);
      w.string("p");
      w.string("q");
      w.uint32(0xffff_fffe);
    });
    expect(decodeMessage(bytes)).toEqual({
      type: 2,
      replySerial: 7,
      errorName: "",
      body: ["ü", true, 4_000_000_000, ["p", "q"], -2],
    });
  });

  test("a reply that ends too early, or of a type that nobody asked for, is an error", () => {
    expect(() => decodeMessage(reply("s", (w) => w.uint32(1000)))).toThrow("ends within a text");
    expect(() => decodeMessage(reply("ss", (w) => w.string("one")))).toThrow(RangeError);
    expect(() => decodeMessage(reply("h", (w) => w.uint32(0)))).toThrow('type "h"');
  });
});
