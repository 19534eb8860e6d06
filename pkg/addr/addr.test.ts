import { BlockList, isIP } from "node:net";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  bitsOf,
  type Cidr,
  cidrContains,
  cidrsOverlap,
  cidrText,
  compareIps,
  type Ip,
  ipBytes,
  ipEquals,
  ipOfBytes,
  ipPlus,
  ipText,
  lastIpOf,
  maskText,
  networkOf,
  parseCidr,
  parseIp,
} from "./index.ts";

// The second opinion is the runtime's own: URL (which prints RFC 5952), net.isIP and net.BlockList.
const v4 = fc.bigInt({ min: 0n, max: (1n << 32n) - 1n }).map((value): Ip => ({ family: 4, value }));
const groups = fc
  .array(fc.oneof(fc.constant(0n), fc.constant(0n), fc.bigInt({ min: 0n, max: 0xffffn })), {
    minLength: 8,
    maxLength: 8,
  })
  .map((g): Ip => ({ family: 6, value: g.reduce((a, b) => (a << 16n) | b, 0n) }));
const v6 = groups.filter(({ value }) => value >> 32n !== 0xffffn);
const ip = fc.oneof(v4, v6);
const cidr = ip.chain((i) =>
  fc.integer({ min: 0, max: bitsOf(i.family) }).map((prefix): Cidr => ({ ip: i, prefix })),
);

describe("addresses", () => {
  test("text and back", () => {
    fc.assert(
      fc.property(ip, (i) => {
        expect(parseIp(ipText(i))).toEqual(i);
      }),
    );
  });

  test("IPv6 text is what URL prints", () => {
    fc.assert(
      fc.property(v6, (i) => {
        expect(`[${ipText(i)}]`).toBe(new URL(`http://[${ipText(i)}]/`).hostname);
      }),
    );
  });

  test("every way to write an address is read alike", () => {
    const hex = (value: bigint) =>
      Array.from({ length: 8 }, (_, i) =>
        ((value >> BigInt(112 - 16 * i)) & 0xffffn).toString(16).padStart(4, "0"),
      );
    fc.assert(
      fc.property(v6, (i) => {
        const full = hex(i.value).join(":");
        const low = i.value & 0xffffffffn;
        const dotted = `${hex(i.value).slice(0, 6).join(":")}:${ipText({ family: 4, value: low })}`;
        for (const text of [full, full.toUpperCase(), dotted]) expect(parseIp(text)).toEqual(i);
      }),
    );
  });

  test("agrees with the runtime on what an address is", () => {
    const alphabet = fc.string({ unit: fc.constantFrom(..."0123456789af:.::"), maxLength: 24 });
    fc.assert(
      fc.property(fc.oneof(alphabet, fc.string()), (text) => {
        // Zones are the one thing that the runtime takes and we don't.
        if (!text.includes("%")) expect(parseIp(text) !== undefined, text).toBe(isIP(text) !== 0);
      }),
      { numRuns: 3000 },
    );
  });

  test.each([
    ["01.2.3.4", undefined],
    ["1.2.3", undefined],
    ["1.2.3.256", undefined],
    ["fe80::1%eth0", undefined],
    ["::1::", undefined],
    ["1:2:3:4:5:6:7", undefined],
    ["1:2:3:4:5:6:7::", "1:2:3:4:5:6:7:0"],
    ["1:2:3:4:5:6:7:8::", undefined],
    ["::ffff:10.0.0.1", "10.0.0.1"],
    ["::FFFF:A00:1", "10.0.0.1"],
    ["::", "::"],
    ["2001:db8:0:0:1:0:0:1", "2001:db8::1:0:0:1"],
    ["", undefined],
    [" ::1", undefined],
  ])("%j is %j", (text, canonical) => {
    const parsed = parseIp(text);
    expect(parsed && ipText(parsed)).toBe(canonical);
  });

  test("bytes and back", () => {
    fc.assert(
      fc.property(fc.oneof(v4, groups), (i) => {
        expect(ipOfBytes(ipBytes(i))).toEqual(i);
      }),
    );
    expect(() => ipOfBytes(new Uint8Array(5))).toThrow(RangeError);
  });

  test("order and steps are those of numbers", () => {
    fc.assert(
      fc.property(ip, fc.bigInt({ min: -1000n, max: 1000n }), (i, n) => {
        expect(ipEquals(ipPlus(ipPlus(i, n), -n), i)).toBe(true);
        const next = ipPlus(i, 1n);
        if (next.value !== 0n) expect(compareIps(i, next)).toBeLessThan(0);
        expect(compareIps(i, i)).toBe(0);
      }),
    );
    expect(compareIps(parseIp("255.255.255.255")!, parseIp("::")!)).toBeLessThan(0);
  });
});

describe("blocks", () => {
  test("text and back", () => {
    fc.assert(
      fc.property(cidr, (c) => {
        expect(parseCidr(cidrText(c))).toEqual(c);
      }),
    );
  });

  test("agree with BlockList on what lies in them", () => {
    fc.assert(
      fc.property(cidr, ip, fc.bigInt({ min: -300n, max: 300n }), (block, far, n) => {
        const list = new BlockList();
        const family = (i: Ip) => (i.family === 4 ? "ipv4" : "ipv6");
        list.addSubnet(ipText(networkOf(block).ip), block.prefix, family(block.ip));
        for (const i of [far, ipPlus(lastIpOf(block), n), ipPlus(networkOf(block).ip, n)]) {
          // BlockList also matches IPv4-mapped IPv6 addresses, which for us are IPv4 from the start.
          if (i.family === 6 && i.value >> 32n === 0xffffn) continue;
          if (i.family !== block.ip.family) expect(cidrContains(block, i)).toBe(false);
          else
            expect(cidrContains(block, i), `${cidrText(block)} ${ipText(i)}`).toBe(
              list.check(ipText(i), family(i)),
            );
        }
      }),
    );
  });

  test("first and last lie in them, and the neighbours do not", () => {
    fc.assert(
      fc.property(cidr, (c) => {
        const first = networkOf(c).ip;
        const last = lastIpOf(c);
        expect([first, c.ip, last].every((i) => cidrContains(c, i))).toBe(true);
        if (c.prefix > 0) {
          expect(cidrContains(c, ipPlus(first, -1n))).toBe(false);
          expect(cidrContains(c, ipPlus(last, 1n))).toBe(false);
        }
        expect(last.value - first.value + 1n).toBe(1n << BigInt(bitsOf(c.ip.family) - c.prefix));
      }),
    );
  });

  test("overlap is symmetric, and means a shared address", () => {
    fc.assert(
      fc.property(cidr, cidr, (a, b) => {
        const shared =
          a.ip.family === b.ip.family &&
          networkOf(a).ip.value <= lastIpOf(b).value &&
          networkOf(b).ip.value <= lastIpOf(a).value;
        expect(cidrsOverlap(a, b)).toBe(shared);
        expect(cidrsOverlap(b, a)).toBe(shared);
      }),
    );
  });

  test.each([
    ["10.1.0.5/24", "10.1.0.5/24"],
    ["::ffff:10.1.0.5/120", "10.1.0.5/24"],
    ["::ffff:10.1.0.5/95", undefined],
    ["10.1.0.5/33", undefined],
    ["10.1.0.5/024", undefined],
    ["10.1.0.5/", undefined],
    ["10.1.0.5", undefined],
    ["10.1.0.5/-1", undefined],
    ["fd00::/129", undefined],
    ["10.1.0.5/24/24", undefined],
  ])("%j is %j", (text, canonical) => {
    const parsed = parseCidr(text);
    expect(parsed && cidrText(parsed)).toBe(canonical);
  });

  test("masks", () => {
    expect([0, 8, 23, 32].map((n) => maskText(4, n))).toEqual([
      "0.0.0.0",
      "255.0.0.0",
      "255.255.254.0",
      "255.255.255.255",
    ]);
    expect(maskText(6, 64)).toBe("ffff:ffff:ffff:ffff::");
  });
});
