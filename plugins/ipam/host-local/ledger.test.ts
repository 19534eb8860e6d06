import fc from "fast-check";
import { expect, test } from "vitest";
import { coolingIn, coolingText } from "./cooling.ts";
import { Ledger, ownerOf, reservationText, unknownOwner } from "./ledger.ts";
import { rangeSetsOf } from "./ranges.ts";
import { poolsOf, poolText } from "./usage.ts";

test("reads what the reference writes and wrote, and tells blank files from odd ones", () => {
  expect(ownerOf("c1\r\neth0")).toEqual({ containerId: "c1", ifName: "eth0" });
  expect(ownerOf(" c1\r\neth0 \n")).toEqual({ containerId: "c1", ifName: "eth0" });
  expect(ownerOf("c1")).toEqual({ containerId: "c1", ifName: "" });
  for (const blank of ["", "\r\n", "\0\0\0\0"]) expect(ownerOf(blank)).toBeUndefined();
  for (const odd of ["a b", "a\nb", "a\r\nb\r\nc", "a\r\n b c"]) expect(ownerOf(odd)).toEqual(unknownOwner);
  expect(reservationText({ containerId: "c1", ifName: "eth0" })).toBe("c1\r\neth0");
});

const owner = fc.record({
  containerId: fc.constantFrom("a", "b", "ab", "10.0.0.1"),
  ifName: fc.constantFrom("eth0", "eth1", "", "b"),
});
const address = fc.constantFrom("10.0.0.1", "10.0.0.10", "0.0.0.1", "fd00::1", "fd00::10", "10.0.0.11");

test("property: a ledger is a map from address to owner", () => {
  fc.assert(
    fc.property(fc.array(fc.tuple(fc.boolean(), address, owner), { maxLength: 40 }), (steps) => {
      let ledger = new Ledger();
      const model = new Map<string, { containerId: string; ifName: string }>();
      for (const [add, ip, who] of steps) {
        if (add && !model.has(ip)) {
          ledger.add(ip, who);
          model.set(ip, who);
        } else if (!add) {
          ledger.remove(ip);
          model.delete(ip);
        }
        expect(ledger.has(ip)).toBe(model.has(ip));
        expect(ledger.ipsOf(who).sort()).toEqual(
          [...model]
            .filter(([, o]) => o.containerId === who.containerId && o.ifName === who.ifName)
            .map(([i]) => i)
            .sort(),
        );
        if (ip === "fd00::1") ledger = new Ledger(ledger.text);
      }
      expect(new Map(ledger.entries().map(({ ip, ...o }) => [ip, o]))).toEqual(model);
    }),
  );
});

test("cooling lasts its time, and no longer when the clock is set", () => {
  const text = coolingText(
    new Map([
      ["10.0.0.2", 100_000],
      ["10.0.0.3", 95_000],
    ]),
  );
  expect([...coolingIn(text, 10, 101_000).keys()]).toEqual(["10.0.0.2", "10.0.0.3"]);
  expect([...coolingIn(text, 10, 105_000).keys()]).toEqual(["10.0.0.2"]);
  expect([...coolingIn(text, 10, 110_000).keys()]).toEqual([]);
  expect([...coolingIn(text, 10, 20_000).keys()]).toEqual([]);
  expect([...coolingIn("torn li\nx\ty\n\t5\n", 10, 0).keys()]).toEqual([]);
});

test("a pool says how full it is and who has most of it", () => {
  const sets = rangeSetsOf({ ipam: { subnet: "10.0.0.0/29" } } as Parameters<typeof rangeSetsOf>[0], "1.0.0");
  const ledger = new Ledger();
  ledger.add("10.0.0.2", { containerId: "one", ifName: "eth0" });
  ledger.add("10.0.0.3", { containerId: "two", ifName: "eth0" });
  ledger.add("10.0.0.4", { containerId: "two", ifName: "eth1" });
  ledger.add("10.0.0.1", { containerId: "gateway", ifName: "x" });
  ledger.add("10.9.0.1", { containerId: "elsewhere", ifName: "x" });
  const [pool] = poolsOf(
    sets,
    ledger,
    new Map([
      ["10.0.0.6", 1],
      ["10.0.0.2", 1],
    ]),
  );
  expect(pool).toMatchObject({
    size: 5n,
    free: 1n,
    cooling: 1,
    users: [
      ["two", 2],
      ["one", 1],
    ],
  });
  expect(poolText(pool!, "/d")).toMatch(
    /^range set 0 \(10.0.0.1-10.0.0.6\): 1 of 5 addresses free, 3 in use by 2 containers: two \(2\), one \(1\); 1 cooling down; /,
  );
});
