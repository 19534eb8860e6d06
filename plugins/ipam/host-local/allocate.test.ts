import { type Ip, ipText, parseIp } from "@tscni/addr";
import { CniError } from "@tscni/types";
import fc from "fast-check";
import { expect, test } from "vitest";
import { allocate, type Reservations } from "./allocate.ts";
import { type RangeSet, rangeContains, rangeSetsOf } from "./ranges.ts";

const ip = (text: string): Ip => parseIp(text)!;
const setsOf = (...ranges: object[][]) =>
  rangeSetsOf({ ipam: { ranges } } as Parameters<typeof rangeSetsOf>[0], "1.0.0");

/** A store in memory. */
class Memory implements Reservations {
  readonly taken = new Map<string, string>();
  readonly cooling = new Set<string>();
  readonly last = new Map<number, Ip>();
  own: Ip[] = [];

  isTaken = (address: Ip) => this.taken.has(ipText(address));
  isCooling = (address: Ip) => this.cooling.has(ipText(address));
  lastReserved = (set: number) => this.last.get(set);

  add(sets: readonly RangeSet[], id: string, requested: Ip[] = []): string[] {
    this.own = [...this.taken].filter(([, owner]) => owner === id).map(([text]) => ip(text));
    return allocate(sets, requested, this, id).map((pick) => {
      const text = ipText(pick.ip);
      expect(this.taken.has(text)).toBe(false);
      this.taken.set(text, id);
      this.last.set(pick.set, pick.ip);
      return text;
    });
  }
}

const failure = (work: () => unknown): CniError => {
  try {
    work();
  } catch (error) {
    if (error instanceof CniError) return error;
    throw error;
  }
  throw new Error("no failure");
};

test("goes round the whole set and tries the last reserved address last", () => {
  const sets = setsOf([
    { subnet: "10.1.0.0/24", rangeStart: "10.1.0.1", rangeEnd: "10.1.0.3" },
    { subnet: "10.2.0.0/24", rangeStart: "10.2.0.8", rangeEnd: "10.2.0.9" },
  ]);
  const store = new Memory();
  const handed = () => {
    const [address] = store.add(sets, `c${store.taken.size}`);
    return address;
  };
  expect([handed(), handed(), handed()]).toEqual(["10.1.0.2", "10.1.0.3", "10.2.0.8"]);
  store.taken.clear();
  expect([handed(), handed(), handed(), handed()]).toEqual(["10.2.0.9", "10.1.0.2", "10.1.0.3", "10.2.0.8"]);
  expect(failure(handed)).toMatchObject({
    code: 11,
    msg: "failed to allocate for range 0: no IP addresses available in range set: 10.1.0.1-10.1.0.3,10.2.0.8-10.2.0.9",
  });
});

test("a last reserved address from another configuration starts at the beginning", () => {
  const store = new Memory();
  store.last.set(0, ip("192.168.0.9"));
  expect(store.add(setsOf([{ subnet: "10.1.0.0/24" }]), "c")).toEqual(["10.1.0.2"]);
});

test("requested addresses are given from the set they lie in", () => {
  const sets = setsOf([{ subnet: "10.1.0.0/24" }], [{ subnet: "fd00::/64" }]);
  const store = new Memory();
  expect(store.add(sets, "a", [ip("fd00::9"), ip("10.1.0.7")])).toEqual(["10.1.0.7", "fd00::9"]);
  const fails = (...requested: string[]) => failure(() => store.add(sets, "b", requested.map(ip))).msg;
  expect(fails("10.1.0.1")).toBe("failed to allocate for range 0: requested ip 10.1.0.1 is subnet's gateway");
  expect(fails("fd00::9")).toBe(
    "failed to allocate for range 1: requested IP address fd00::9 is not available in range set fd00::1-fd00::ffff:ffff:ffff:ffff",
  );
  expect(fails("10.9.0.1", "10.1.0.8", "10.1.0.9")).toBe(
    "failed to allocate all requested IPs: 10.9.0.1 10.1.0.9",
  );
});

test("one address a set for one container and interface", () => {
  const store = new Memory();
  const sets = setsOf([{ subnet: "10.1.0.0/24" }]);
  store.add(sets, "a");
  expect(failure(() => store.add(sets, "a")).msg).toBe(
    "failed to allocate for range 0: 10.1.0.2 has been allocated to a, duplicate allocation is not allowed",
  );
});

test("cooling addresses are passed over, and counted when nothing else is left", () => {
  const sets = setsOf([{ subnet: "10.1.0.0/29" }]);
  const store = new Memory();
  for (const last of [2, 3, 4]) store.cooling.add(`10.1.0.${last}`);
  expect([store.add(sets, "a"), store.add(sets, "b")]).toEqual([["10.1.0.5"], ["10.1.0.6"]]);
  expect(failure(() => store.add(sets, "c"))).toMatchObject({
    code: 11,
    details: "3 released addresses still cool down (ipam.cooldown)",
  });
  expect(failure(() => store.add(sets, "c", [ip("10.1.0.3")]))).toMatchObject({ code: 11 });
});

test("the end of all addresses is an end", () => {
  const sets = setsOf([{ subnet: "ffff:ffff:ffff:ffff:ffff:ffff:ffff:fff8/125" }]);
  const store = new Memory();
  for (let i = 0; i < 6; i++) store.add(sets, `c${i}`);
  expect(failure(() => store.add(sets, "x")).msg).toContain("no IP addresses available");
});

test("a nearly full /16 gives its last address quickly", () => {
  const sets = setsOf([{ subnet: "10.0.0.0/16" }]);
  const store = new Memory();
  for (let i = 1; i < 65535; i++) store.taken.set(`10.0.${i >> 8}.${i & 255}`, "x");
  store.taken.delete("10.0.0.2");
  store.last.set(0, ip("10.0.0.2"));
  const start = performance.now();
  expect(store.add(sets, "c")).toEqual(["10.0.0.2"]);
  expect(performance.now() - start).toBeLessThan(2000);
});

/** Sets of small ranges that don't overlap: each range has a /24 of its own. */
const arbitrarySets = fc
  .array(
    fc.array(
      fc.tuple(
        fc.integer({ min: 1, max: 200 }),
        fc.integer({ min: 0, max: 12 }),
        fc.integer({ min: 0, max: 254 }),
      ),
      { minLength: 1, maxLength: 3 },
    ),
    { minLength: 1, maxLength: 3 },
  )
  .map((sets) =>
    setsOf(
      ...sets.map((ranges, i) =>
        ranges.map(([start, length, gateway], j) => ({
          subnet: `10.${i}.${j}.0/24`,
          rangeStart: `10.${i}.${j}.${start}`,
          rangeEnd: `10.${i}.${j}.${start + length}`,
          gateway: `10.${i}.${j}.${gateway}`,
        })),
      ),
    ),
  );

test("property: every address is handed out once, in its set, never a gateway, until none is left", () => {
  fc.assert(
    fc.property(arbitrarySets, fc.array(fc.nat(40), { maxLength: 30 }), (sets, releases) => {
      const store = new Memory();
      const free = (set: RangeSet) =>
        set.flatMap((r) => {
          const all: string[] = [];
          for (let value = r.first.value; value <= r.last.value; value++)
            if (value !== r.gateway.value) all.push(ipText({ family: 4, value }));
          return all.filter((text) => !store.taken.has(text));
        }).length;
      for (let i = 0; i < 50; i++) {
        const release = releases[i];
        if (release !== undefined) {
          const id = `c${release}`;
          for (const [text, owner] of [...store.taken]) if (owner === id) store.taken.delete(text);
        }
        const before = sets.map(free);
        if (before.every((n) => n > 0)) {
          const given = store.add(sets, `c${i + 100}`);
          given.forEach((text, set) => {
            const range = sets[set]!.find((r) => rangeContains(r, ip(text)))!;
            expect(ipText(range.gateway)).not.toBe(text);
          });
          expect(sets.map(free)).toEqual(before.map((n) => n - 1));
        } else {
          expect(failure(() => store.add(sets, "late")).code).toBe(11);
          expect(sets.map(free)).toEqual(before);
        }
      }
    }),
    { numRuns: 60 },
  );
});
