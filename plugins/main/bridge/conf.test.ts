import { decodeConf } from "@tscni/conf";
import { describe, expect, test } from "vitest";
import { BridgeConf } from "./conf.ts";
import { portVlans } from "./vlans.ts";

const parse = (own: object) => decodeConf(BridgeConf, { name: "n", type: "bridge", ...own });

test("defaults", () => {
  expect(parse({})).toMatchObject({
    bridge: "cni0",
    isGateway: false,
    isDefaultGateway: false,
    forceAddress: false,
    mtu: 0,
    hairpinMode: false,
    promiscMode: false,
    portIsolation: false,
    vlan: 0,
    vlanTrunk: [],
    preserveDefaultVlan: false,
    enabledad: false,
    disableContainerInterface: false,
  });
});

test("keys in any case; unknown ones and null are ignored", () => {
  const conf = parse({
    BRIDGE: "br7",
    IsGateWay: true,
    mtu: null,
    VlanTrunk: [{ MinId: 2, MAXID: 3 }],
    nonsense: 1,
  });
  expect(conf).toMatchObject({ bridge: "br7", isGateway: true, mtu: 0, vlanTrunk: [{ minID: 2, maxID: 3 }] });
});

describe("what is refused, with code and message", () => {
  test.each([
    [
      { ipMasqBackend: "ipchains" },
      7,
      'ipMasqBackend: unknown ipmasq backend "ipchains": it can be iptables or nftables',
    ],
    [{ ipMasq: "yes" }, 6, 'ipMasq: "yes" is not true or false'],
    [{ macspoofchk: 1 }, 6, "macspoofchk: 1 is not true or false"],
    [{ bridge: "" }, 7, 'bridge: "" is not an interface name'],
    [{ bridge: "../../x" }, 7, 'bridge: "../../x" is not an interface name'],
    [{ mtu: "big" }, 6, 'mtu: "big" is not a number'],
    [{ mtu: -1 }, 7, "mtu: -1 is not between 0 and 65535"],
    [{ mtu: 1.5 }, 7, "mtu: 1.5 is not a whole number"],
    [{ mtu: 70000 }, 7, "mtu: 70000 is not between 0 and 65535"],
    [{ isGateway: "yes" }, 6, 'isGateway: "yes" is not true or false'],
    [{ vlan: 4095 }, 7, "vlan: invalid VLAN ID 4095 (must be between 0 and 4094)"],
    [{ vlanTrunk: [{ id: 1 }, { id: 0 }] }, 7, "vlanTrunk[1].id: 0 is not between 1 and 4094"],
    [{ vlanTrunk: [{ minID: 5 }] }, 7, 'vlanTrunk[0]: {"minID":5} must have minID and maxID together'],
    [
      { vlanTrunk: [{ minID: 5, maxID: 4 }] },
      7,
      'vlanTrunk[0]: {"minID":5,"maxID":4} has a minID above its maxID',
    ],
    [{ vlanTrunk: [{}] }, 7, "vlanTrunk[0]: {} has neither id nor minID and maxID"],
    [{ runtimeConfig: { mac: "02:zz" } }, 7, 'runtimeConfig.mac: "02:zz" is not a MAC address'],
    [
      { hairpinMode: true, promiscMode: true },
      7,
      "cannot set hairpin mode and promiscuous mode at the same time",
    ],
    [
      { disableContainerInterface: true, ipam: { type: "host-local" } },
      7,
      "cannot use IPAM when DisableContainerInterface flag is set",
    ],
  ])("%j", (own, code, msg) => {
    expect(() => parse(own)).toThrow(expect.objectContaining({ code, msg }));
  });
});

test("DEL takes any of these, and says what it ignores", () => {
  const ignored: string[] = [];
  const wrong = {
    mtu: "big",
    vlan: 9999,
    hairpinMode: 1,
    vlanTrunk: 5,
    bridge: [],
    runtimeConfig: 3,
  };
  const lenient = ({ path }: { path: string }) => ignored.push(path);
  const conf = decodeConf(BridgeConf, { name: "n", type: "bridge", ...wrong }, { lenient });
  expect(conf).toMatchObject({ bridge: "cni0", mtu: 0, vlan: 0, hairpinMode: false });
  expect(ignored.toSorted()).toEqual(["bridge", "hairpinMode", "mtu", "runtimeConfig", "vlan", "vlanTrunk"]);
});

describe("the VLANs of a port", () => {
  const untagged = (id: number) => ({ first: id, last: id, pvid: true, untagged: true });
  test.each([
    ["vlan", { vlan: 100 }, [untagged(100)]],
    [
      "a trunk has VLAN 1 for untagged frames",
      { vlanTrunk: [{ id: 7 }] },
      [{ first: 7, last: 7 }, untagged(1)],
    ],
    [
      "a range and an id in one entry, beside vlan",
      { vlan: 100, vlanTrunk: [{ minID: 10, maxID: 20, id: 30 }] },
      [{ first: 10, last: 20 }, { first: 30, last: 30 }, untagged(100)],
    ],
    [
      "vlan within the trunk's range stays untagged: it comes last",
      { vlan: 15, vlanTrunk: [{ minID: 10, maxID: 20 }] },
      [{ first: 10, last: 20 }, untagged(15)],
    ],
  ])("%s", (_, own, vlans) => {
    expect(portVlans(parse(own))).toEqual(vlans);
  });
});
