import { needs } from "@tscni/test-support";
import { test } from "vitest";
import { expectMade } from "./testing.ts";

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
