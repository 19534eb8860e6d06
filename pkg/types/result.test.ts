import { type Cidr, cidrText, ipText } from "@tscni/addr";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  CniError,
  decodePrevResult,
  decodeResult,
  encodeResult,
  isIpv6Cidr,
  type Result,
  resultText,
  shapeFamilies,
  specVersions,
} from "./index.ts";

const cidr: fc.Arbitrary<string> = fc
  .oneof(
    fc.record({ family: fc.constant(4 as const), value: fc.bigInt({ min: 0n, max: (1n << 32n) - 1n }) }),
    // Not the IPv4-mapped ones, which are IPv4 when read again.
    fc.record({
      family: fc.constant(6 as const),
      value: fc.bigInt({ min: 1n << 64n, max: (1n << 128n) - 1n }),
    }),
  )
  .chain((ip) =>
    fc.integer({ min: 0, max: ip.family === 4 ? 32 : 128 }).map((prefix): Cidr => ({ ip, prefix })),
  )
  .map(cidrText);
const ip = cidr.map((text) => text.slice(0, text.indexOf("/")));
const word = fc.string({ minLength: 1, maxLength: 12 });
const positive = fc.integer({ min: 1, max: 65535 });
const words = fc.array(word, { minLength: 1, maxLength: 3 });
const dns = fc.record(
  { nameservers: words, domain: word, search: words, options: words },
  { requiredKeys: [] },
);
const route = fc.record(
  {
    dst: cidr,
    gw: ip,
    mtu: positive,
    advmss: positive,
    priority: positive,
    table: fc.nat(),
    scope: fc.nat(255),
  },
  { requiredKeys: ["dst"] },
);
const result: fc.Arbitrary<Result> = fc.record({
  interfaces: fc.array(
    fc.record(
      { name: word, mac: word, mtu: positive, sandbox: word, socketPath: word, pciID: word },
      { requiredKeys: ["name"] },
    ),
    { maxLength: 3 },
  ),
  ips: fc.array(
    fc.record({ interface: fc.nat(3), address: cidr, gateway: ip }, { requiredKeys: ["address"] }),
    {
      maxLength: 4,
    },
  ),
  routes: fc.array(route, { maxLength: 4 }),
  dns,
});

/** What a version can hold of a result. */
function heldBy(version: string, r: Result): Result {
  if (version >= "1.0.0") return r;
  if (version >= "0.3.0")
    return {
      ...r,
      interfaces: r.interfaces.map(({ name, mac, sandbox }) => ({
        name,
        ...(mac && { mac }),
        ...(sandbox && { sandbox }),
      })),
    };
  const ofFamily = (six: boolean) => r.ips.find((i) => isIpv6Cidr(i.address) === six);
  const families = [false, true].filter((six) => ofFamily(six) !== undefined);
  return {
    interfaces: [],
    ips: families.map((six) => {
      const { address, gateway } = ofFamily(six)!;
      return { address, ...(gateway && { gateway }) };
    }),
    routes: families.flatMap((six) =>
      r.routes
        .filter(({ dst }) => isIpv6Cidr(dst) === six)
        .map(({ dst, gw }) => ({ dst, ...(gw && { gw }) })),
    ),
    dns: r.dns,
  };
}

describe.each(specVersions)("a %s result", (version) => {
  const legacy = version < "0.3.0";

  test("keeps all that the version can hold, and says its version", () => {
    fc.assert(
      fc.property(result, (r) => {
        fc.pre(!legacy || r.ips.length > 0);
        const text = resultText(r, version);
        expect(JSON.parse(text).cniVersion).toBe(version);
        expect(decodeResult(JSON.parse(text), "")).toEqual(heldBy(version, r));
      }),
    );
  });

  test("is the same text once it has been through its version", () => {
    fc.assert(
      fc.property(result, (r) => {
        fc.pre(!legacy || r.ips.length > 0);
        const text = resultText(r, version);
        expect(resultText(decodeResult(JSON.parse(text), ""), version)).toBe(text);
      }),
    );
  });

  test("is read with its keys in any case", () => {
    fc.assert(
      fc.property(result, (r) => {
        fc.pre(!legacy || r.ips.length > 0);
        const shout = (value: unknown): unknown => {
          if (Array.isArray(value)) return value.map(shout);
          if (typeof value !== "object" || value === null) return value;
          return Object.fromEntries(Object.entries(value).map(([k, v]) => [k.toUpperCase(), shout(v)]));
        };
        const encoded = encodeResult(r, version);
        expect(decodeResult(shout(encoded), version)).toEqual(decodeResult(encoded, version));
      }),
    );
  });

  test("may stand in as prevResult within its family alone", () => {
    const family = shapeFamilies.find((f) => f.includes(version))!;
    const r = encodeResult(
      { interfaces: [], ips: [{ address: "10.0.0.1/8" }], routes: [], dns: {} },
      version,
    );
    for (const config of specVersions)
      if (family.includes(config)) expect(decodePrevResult(r, config).ips).toHaveLength(1);
      else
        expect(() => decodePrevResult(r, config)).toThrow(
          `could not parse prevResult: result type supports [${shapeFamilies.find((f) => f.includes(config))!.join(" ")}] but unmarshalled CNIVersion is "${version}"`,
        );
  });
});

test("any JSON is a result or a CniError that names what is wrong", () => {
  const near = fc.record(
    Object.fromEntries(
      ["interfaces", "ips", "routes", "dns", "ip4", "ip6"].map((key) => [
        key,
        fc.oneof(fc.jsonValue(), fc.array(fc.record({ address: fc.jsonValue(), dst: fc.jsonValue() }))),
      ]),
    ),
    { requiredKeys: [] },
  );
  fc.assert(
    fc.property(fc.oneof(fc.jsonValue(), near), fc.constantFrom(...specVersions), (json, version) => {
      try {
        const { ips } = decodeResult(json, version);
        expect(Array.isArray(ips)).toBe(true);
      } catch (error) {
        expect(error).toBeInstanceOf(CniError);
        expect((error as CniError).message).toMatch(/result|CNI/);
      }
    }),
  );
});

test("a result without an address can't be one of 0.2.0", () => {
  const r = decodeResult({ cniVersion: "1.0.0", routes: [{ dst: "10.0.0.0/8" }] }, "");
  expect(() => encodeResult(r, "0.2.0")).toThrow("cannot convert: no valid IP addresses");
});

test("an explicit zero of table and scope survives, other zeros are absent", () => {
  const routes = [{ dst: "10.0.0.0/8", table: 0, scope: 0, mtu: 0, priority: 0, advmss: 0 }];
  expect(decodeResult({ cniVersion: "1.1.0", routes }, "").routes).toEqual([
    { dst: "10.0.0.0/8", table: 0, scope: 0 },
  ]);
});

test("1.x prints its keys in order with four spaces, 0.x those of Go's structs with an empty dns", () => {
  const r = decodeResult(
    {
      cniVersion: "1.0.0",
      ips: [{ gateway: "10.1.0.1", address: "10.1.0.5/24" }],
      interfaces: [{ name: "a", mac: "m" }],
    },
    "",
  );
  expect(resultText(r, "1.0.0")).toBe(`{
    "cniVersion": "1.0.0",
    "interfaces": [
        {
            "mac": "m",
            "name": "a"
        }
    ],
    "ips": [
        {
            "address": "10.1.0.5/24",
            "gateway": "10.1.0.1"
        }
    ]
}`);
  expect(JSON.stringify(encodeResult(r, "0.4.0"))).toBe(
    '{"cniVersion":"0.4.0","interfaces":[{"name":"a","mac":"m"}],"ips":[{"version":"4","address":"10.1.0.5/24","gateway":"10.1.0.1"}],"dns":{}}',
  );
  expect(JSON.stringify(encodeResult(r, "0.2.0"))).toBe(
    '{"cniVersion":"0.2.0","ip4":{"ip":"10.1.0.5/24","gateway":"10.1.0.1"},"dns":{}}',
  );
});

test("an IPv4-mapped address counts as IPv4", () => {
  const r = decodeResult({ cniVersion: "1.0.0", ips: [{ address: "::ffff:10.1.0.5/120" }] }, "");
  expect(encodeResult(r, "0.4.0").ips).toEqual([{ version: "4", address: "10.1.0.5/24" }]);
  expect(ipText({ family: 4, value: 0x0a010005n })).toBe("10.1.0.5");
});
