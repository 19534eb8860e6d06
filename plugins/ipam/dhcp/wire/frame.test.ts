import fc from "fast-check";
import { expect, test } from "vitest";
import { decodeFrame, encodeFrame, type Frame } from "./frame.ts";
import { ipv4At, ipv4Bytes, ipv4Text, isHostAddress, maskOf, prefixOfMask } from "./ipv4.ts";
import { Malformed } from "./options.ts";

const mac = fc.uint8Array({ minLength: 6, maxLength: 6 });
const ip = fc.integer({ min: 0, max: 0xffffffff });
const port = fc.integer({ min: 0, max: 0xffff });
const frames: fc.Arbitrary<Frame> = fc.record({
  sourceMac: mac,
  targetMac: mac,
  source: ip,
  target: ip,
  sourcePort: port,
  targetPort: port,
  payload: fc.uint8Array({ maxLength: 1472 }),
});

test("a frame is read as it was written, padding behind it or not", () => {
  fc.assert(
    fc.property(frames, fc.uint8Array({ maxLength: 40 }), (frame, padding) => {
      const data = encodeFrame(frame);
      expect(decodeFrame(Uint8Array.from([...data, ...padding]), false)).toEqual(frame);
    }),
  );
});

test("one wrong byte in IP or UDP is noticed, unless its checksum is still to come", () => {
  const change = fc.integer({ min: 1, max: 255 });
  fc.assert(
    fc.property(frames, fc.nat(), change, (frame, where, difference) => {
      const data = encodeFrame(frame);
      const at = 14 + (where % (data.length - 14));
      data[at]! ^= difference;
      // A checksum that became 0 says that there is none.
      fc.pre(data[40] !== 0 || data[41] !== 0);
      expect(() => decodeFrame(data, false)).toThrow(Malformed);
    }),
  );
  const data = encodeFrame(fc.sample(frames, 1)[0]!);
  data[40]! ^= 1;
  expect(() => decodeFrame(data, false)).toThrow("UDP checksum is wrong");
  expect(decodeFrame(data, true).payload).toEqual(data.subarray(42));
});

test("whatever comes in is a frame or malformed", () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 100 }), fc.boolean(), (data, pending) => {
      try {
        decodeFrame(data, pending);
      } catch (error) {
        expect(error).toBeInstanceOf(Malformed);
      }
    }),
  );
});

test("a frame known by heart", () => {
  const data = encodeFrame({
    sourceMac: Uint8Array.of(2, 0, 0, 0, 0, 1),
    targetMac: Uint8Array.of(255, 255, 255, 255, 255, 255),
    source: 0,
    target: 0xffffffff,
    sourcePort: 68,
    targetPort: 67,
    payload: Uint8Array.of(1, 2, 3),
  });
  const text = [...data].map((byte) => byte.toString(16).padStart(2, "0")).join("");
  const ethernet = "ffffffffffff0200000000010800";
  const header = "4510001f000040004011" + "3abf" + "00000000ffffffff"; // the sums by another program
  expect(text).toBe(`${ethernet}${header}00440043000bfb4f010203`);
});

test("addresses and masks", () => {
  fc.assert(
    fc.property(ip, (value) => {
      expect(ipv4At(ipv4Bytes(value), 0)).toBe(value);
    }),
  );
  expect(ipv4Text(0xc0a8017f)).toBe("192.168.1.127");
  for (let prefix = 0; prefix <= 32; prefix++) expect(prefixOfMask(maskOf(prefix))).toBe(prefix);
  expect(prefixOfMask(0xff00ff00)).toBeUndefined();
  const hosts = ["10.0.0.1", "0.1.2.3", "127.0.0.1", "224.0.0.1", "255.255.255.255", "223.255.255.255"];
  const value = (text: string) => ipv4At(Uint8Array.from(text.split("."), Number), 0);
  expect(hosts.filter((text) => isHostAddress(value(text)))).toEqual(["10.0.0.1", "223.255.255.255"]);
});
