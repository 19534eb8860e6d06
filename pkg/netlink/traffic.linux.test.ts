import { run } from "@tscni/test-support";
import { expect, test } from "vitest";
import { createLink } from "./links.ts";
import { newPlace, type Place, thrownBy } from "./testing.ts";
import {
  addIngress,
  addRedirect,
  deleteQdisc,
  deleteRedirects,
  hasTokenBuckets,
  listQdiscs,
  listRedirects,
  maxBufferTicks,
  setTokenBucket,
  ticksOf,
} from "./traffic.ts";

/** A namespace with a veth and an ifb. */
function newLinks(): Place & { index: number; target: number } {
  const place = newPlace();
  const { index } = createLink(place.netlink, { name: "e0", kind: "veth", veth: { peer: { name: "p0" } } });
  const { index: target } = createLink(place.netlink, { name: "ifb7", kind: "ifb" });
  return { ...place, index, target };
}

// tc is the second opinion: node-netlink has no codecs for these messages.
const tc = ({ ns }: Place, ...args: string[]) => JSON.parse(ns.run("tc", "-j", ...args) || "[]");

test.each([
  [
    { rate: 1_250_000, buffer: ticksOf(100_000), limit: 156_250 },
    { rate: 1_250_000, burst: 125_000, lat: 25_000 },
  ],
  [{ rate: 1, buffer: ticksOf(1_000_000), limit: 1 }, { rate: 1 }],
  [{ rate: 0xfffffffe, buffer: ticksOf(10), limit: 5 }, { rate: 0xfffffffe }],
  [{ rate: 0xffffffff, buffer: ticksOf(10), limit: 5 }, { rate: 0xffffffff }],
  [{ rate: 50_000_000_000, buffer: ticksOf(10), limit: 0xffffffff }, { rate: 50_000_000_000 }],
  [{ rate: 1000, buffer: maxBufferTicks, limit: 4000 }, { rate: 1000 }],
])("a token bucket %j is what tc sees and we read", (bucket, shown) => {
  const place = newLinks();
  const { netlink, index } = place;
  setTokenBucket(netlink, index, { rate: 7777, buffer: 7_777_777, limit: 777 });
  setTokenBucket(netlink, index, bucket);
  const [found] = tc(place, "qdisc", "show", "dev", "e0");
  expect(found).toMatchObject({ kind: "tbf", handle: "1:", root: true, options: shown });
  expect(listQdiscs(netlink, index)).toEqual([{ index, kind: "tbf", isRoot: true, tokenBucket: bucket }]);
  deleteQdisc(netlink, index, "root");
  expect(JSON.stringify(tc(place, "qdisc", "show", "dev", "e0"))).not.toContain("tbf");
  deleteQdisc(netlink, index, "root");
});

test("what tc makes we read, and take for another when the figures differ", () => {
  const place = newLinks();
  const command = "qdisc add dev e0 root handle 1: tbf rate 10mbit burst 125000 latency 25ms";
  place.ns.run("tc", ...command.split(" "));
  expect(listQdiscs(place.netlink, place.index)).toEqual([
    {
      index: place.index,
      kind: "tbf",
      isRoot: true,
      tokenBucket: { rate: 1_250_000, buffer: ticksOf(100_000), limit: 156_250 },
    },
  ]);
});

test("a bucket that the kernel refuses", () => {
  const { netlink, index } = newLinks();
  const bucket = { rate: 0, buffer: 0, limit: 0 };
  expect(thrownBy(() => setTokenBucket(netlink, index, bucket))).toMatchObject({
    code: "EINVAL",
    call: "RTM_NEWQDISC",
    subject: `tbf on index ${index}`,
  });
});

test("what comes in is redirected by one filter with one action", () => {
  const place = newLinks();
  const { netlink, index, target } = place;
  addIngress(netlink, index);
  expect(thrownBy(() => addIngress(netlink, index))).toMatchObject({ code: "EEXIST" });
  addRedirect(netlink, index, target);
  expect(listRedirects(netlink, index)).toEqual([target]);
  expect(listQdiscs(netlink)).toContainEqual({
    index,
    kind: "ingress",
    isRoot: false,
    tokenBucket: undefined,
  });

  const filters = tc(place, "filter", "show", "dev", "e0", "ingress");
  expect(filters.every((f: object) => "protocol" in f)).toBe(true);
  expect(filters.map((f: { pref: number }) => f.pref)).toEqual(filters.map(() => 1));
  const actions = filters.flatMap((f: { options?: { actions?: object[] } }) => f.options?.actions ?? []);
  expect(actions).toMatchObject([
    { kind: "mirred", mirred_action: "redirect", direction: "egress", to_dev: "ifb7" },
  ]);
  expect(run("nsenter", `--net=${place.ns.path}`, "tc", "filter", "show", "dev", "e0", "ingress")).toContain(
    "match 00000000/00000000 at 0",
  );

  deleteRedirects(netlink, index);
  expect(listRedirects(netlink, index)).toEqual([]);
  deleteRedirects(netlink, index);
  addRedirect(netlink, index, target);
  deleteQdisc(netlink, index, "ingress");
  expect(tc(place, "filter", "show", "dev", "e0", "ingress")).toEqual([]);
  deleteQdisc(netlink, index, "ingress");
  deleteRedirects(netlink, index);
});

test("several actions of one filter are all read", () => {
  const place = newLinks();
  const { netlink, index, target } = place;
  const other = createLink(netlink, { name: "ifb8", kind: "ifb" }).index;
  addIngress(netlink, index);
  const filter = "filter add dev e0 parent ffff: protocol all prio 1 u32 match u32 0 0";
  const actions = "action mirred egress mirror dev ifb7 action mirred egress redirect dev ifb8";
  place.ns.run("tc", ...`${filter} ${actions}`.split(" "));
  expect(listRedirects(netlink, index)).toEqual([other]);
  expect(other).not.toBe(target);
});

test("asking whether there are token buckets makes none", () => {
  const place = newLinks();
  const before = tc(place, "qdisc");
  expect(hasTokenBuckets(place.netlink)).toBe(true);
  expect(tc(place, "qdisc")).toEqual(before);
});

test("a link that is gone", () => {
  const { netlink } = newLinks();
  deleteQdisc(netlink, 4711, "root");
  deleteRedirects(netlink, 4711);
  expect(listQdiscs(netlink, 4711)).toEqual([]);
});
