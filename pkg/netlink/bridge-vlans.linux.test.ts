import { needs } from "@tscni/test-support";
import { expect, test } from "vitest";
import { addPortVlans, deletePortVlans, listPortVlans } from "./bridge-vlans.ts";
import { createLink } from "./links.ts";
import { newPlace, thrownBy } from "./testing.ts";

const vlans = [
  { first: 5, last: 5, pvid: true, untagged: true },
  { first: 100, last: 200, pvid: false, untagged: false },
];

test("added, listed and deleted", (t) => {
  needs(t, "bridge VLAN filtering");
  const { netlink, ns } = newPlace();
  const bridge = createLink(netlink, { name: "br0", kind: "bridge", bridge: { vlanFiltering: true } });
  const { index } = createLink(netlink, { name: "h0", kind: "veth", master: bridge.index });
  addPortVlans(netlink, { index }, vlans);
  deletePortVlans(netlink, { index }, [{ first: 1, last: 1 }]);
  expect(listPortVlans(netlink).get(index)).toEqual(vlans);
  const [shown] = JSON.parse(ns.run("bridge", "-j", "vlan", "show", "dev", "h0"));
  expect(shown.vlans[0]).toMatchObject({ vlan: 5, flags: ["PVID", "Egress Untagged"] });
  const hundredAndOne = Array.from({ length: 101 }, (_, i) => ({ vlan: 100 + i }));
  expect(shown.vlans.slice(1)).toEqual(hundredAndOne);
  addPortVlans(netlink, { index: bridge.index, self: true }, [{ first: 7, last: 7 }]);
  const seven = { first: 7, last: 7, pvid: false, untagged: false };
  expect(listPortVlans(netlink).get(bridge.index)).toContainEqual(seven);
});

test("refused for a link that is no port", () => {
  const { netlink } = newPlace();
  const { index } = createLink(netlink, { name: "h0", kind: "veth" });
  expect(thrownBy(() => addPortVlans(netlink, { index }, vlans))).toMatchObject({ code: "EOPNOTSUPP" });
  expect(listPortVlans(netlink)).toEqual(new Map());
});
