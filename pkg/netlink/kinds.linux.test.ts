import { namesIn, needs } from "@tscni/test-support";
import { expect, test } from "vitest";
import { hasLinkKind } from "./kinds.ts";
import { expectMade, newPlace } from "./testing.ts";

test("dummy", (t) => {
  needs(t, "dummy");
  expectMade({ name: "k0", kind: "dummy" }, {});
});

test("vlan", (t) => {
  needs(t, "vlan");
  expectMade({ name: "k0", kind: "vlan", vlan: { id: 5 } }, { id: 5 });
});

test("ipvlan", (t) => {
  needs(t, "ipvlan");
  expectMade({ name: "k0", kind: "ipvlan", ipvlan: { mode: 1 } }, { mode: "l3" });
});

test("vrf", (t) => {
  needs(t, "vrf");
  expectMade({ name: "k0", kind: "vrf", vrf: { table: 1000 } }, { table: 1000 });
});

test("the kernel is asked for each of them, and nothing stays", (t) => {
  needs(t, "dummy", "vlan", "ipvlan", "vrf");
  const { netlink, ns } = newPlace();
  for (const kind of ["dummy", "vlan", "ipvlan", "vrf"] as const)
    expect(hasLinkKind(netlink, kind), kind).toBe(true);
  expect(namesIn(ns)).toEqual(["lo"]);
});
