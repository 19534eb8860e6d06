import { ip } from "@tscni/test-support";
import { describe, expect, test } from "vitest";
import { NetlinkError } from "./error.ts";
import {
  addAltName,
  addLink,
  createLink,
  deleteAltName,
  deleteLink,
  deleteLinkIfPresent,
  getLink,
  listLinks,
  type NewLink,
  setLink,
} from "./links.ts";
import { expectMade, newPlace, type Place, thrownBy } from "./testing.ts";

/** What iproute2 says of a link. */
const shown = ({ ns }: Place, name: string) => ip(ns, "link", "show", "dev", name)[0];
const namesIn = ({ ns }: Place) => ip(ns, "link").map((link) => link.ifname);

describe("createLink", () => {
  test("makes, enslaves and brings up a veth and puts its peer into another namespace, in one message", () => {
    const [host, box] = [newPlace(), newPlace()];
    const bridge = createLink(host.netlink, { name: "br0", kind: "bridge", up: true });
    const link = createLink(host.netlink, {
      name: "h0",
      kind: "veth",
      up: true,
      master: bridge.index,
      mtu: 1400,
      address: "02:00:00:00:00:01",
      veth: { peer: { name: "eth0", mtu: 1400, address: "02:00:00:00:00:02", netNsFd: box.fd } },
    });
    expect(link).toMatchObject({ name: "h0", kind: "veth", mtu: 1400, address: "02:00:00:00:00:01" });
    const [h0, eth0] = [shown(host, "h0"), shown(box, "eth0")];
    expect(h0).toMatchObject({ ifindex: link.index, master: "br0", mtu: 1400, address: "02:00:00:00:00:01" });
    expect(h0.flags).toContain("UP");
    expect(h0.linkinfo).toMatchObject({ info_kind: "veth", info_slave_kind: "bridge" });
    expect(eth0).toMatchObject({ mtu: 1400, address: "02:00:00:00:00:02", link_index: link.index });
    expect(eth0.flags).not.toContain("UP");
    expect(namesIn(host)).not.toContain("eth0");
  });

  test("the reverse: from inside the container's namespace, with the peer in the host's", () => {
    const [host, box] = [newPlace(), newPlace()];
    const link = createLink(box.netlink, {
      name: "eth0",
      kind: "veth",
      up: true,
      mtu: 1300,
      veth: { peer: { name: "h0", mtu: 1300, address: "02:00:00:00:00:03", netNsFd: host.fd } },
    });
    expect(shown(box, "eth0")).toMatchObject({ ifindex: link.index, mtu: 1300 });
    expect(shown(box, "eth0").flags).toContain("UP");
    expect(shown(host, "h0")).toMatchObject({ mtu: 1300, address: "02:00:00:00:00:03" });
  });

  test("addLink puts the link itself into another namespace, up", () => {
    const [host, box] = [newPlace(), newPlace()];
    addLink(host.netlink, {
      name: "eth0",
      kind: "veth",
      up: true,
      netNsFd: box.fd,
      veth: { peer: { name: "h0" } },
    });
    expect(shown(box, "eth0").flags).toContain("UP");
    expect(namesIn(host)).toContain("h0");
    expect(namesIn(host)).not.toContain("eth0");
  });

  // What the doc comment of NewLink promises about this kernel. Where one of these fails, a newer kernel has
  // learned something that would save a message.
  test("what the kernel does not do at creation", () => {
    const { netlink, ...host } = newPlace();
    const bridge = createLink(netlink, { name: "br0", kind: "bridge", mtu: 1400 });
    const alias = { alias: "label" } as object;
    const veth: NewLink = { name: "h0", kind: "veth", veth: { peer: { name: "p0", master: bridge.index } } };
    createLink(netlink, { ...veth, ...alias });
    expect(shown({ netlink, ...host }, "h0").ifalias).toBeUndefined();
    expect(shown({ netlink, ...host }, "p0").master).toBeUndefined();
    const upPeer = { name: "p1", flags: 1, change: 1 };
    expect(
      thrownBy(() => createLink(netlink, { name: "h1", kind: "veth", veth: { peer: upPeer } })),
    ).toMatchObject({ code: "ENOTCONN" });
    setLink(netlink, { name: "h0" }, { master: bridge.index });
    expect(getLink(netlink, bridge)!.mtu).toBe(1500);
  });

  test("a bridge's MTU that was set stays when a port comes", () => {
    const { netlink } = newPlace();
    const bridge = createLink(netlink, { name: "br0", kind: "bridge" });
    setLink(netlink, bridge, { mtu: 1400 });
    createLink(netlink, { name: "h0", kind: "veth", master: bridge.index });
    expect(getLink(netlink, bridge)!.mtu).toBe(1400);
  });

  test("bridge options, and a chosen index", () => {
    const place = newPlace();
    const link = createLink(place.netlink, {
      name: "br0",
      kind: "bridge",
      index: 4711,
      promisc: true,
      bridge: { multicastSnooping: false, ageingTime: 1000, groupFwdMask: 8 },
    });
    expect(link.index).toBe(4711);
    const found = shown(place, "br0");
    expect(found.linkinfo.info_data).toMatchObject({ mcast_snooping: 0, ageing_time: 1000 });
    expect(found.linkinfo.info_data.group_fwd_mask).toBe("0x8");
    expect(found.flags).toContain("PROMISC");
    expect(getLink(place.netlink, link)).toMatchObject({ promisc: true, bridge: { ageingTime: 1000 } });
  });

  const others: [NewLink, object][] = [
    [
      { name: "k0", kind: "macvlan", macvlan: { mode: 4, bcQueueLen: 500 } },
      { mode: "bridge", bcqueuelen: 500 },
    ],
    [
      { name: "k0", kind: "vxlan", vxlan: { id: 42, port: 4789, ttl: 7 } },
      { id: 42, port: 4789, ttl: 7 },
    ],
    [{ name: "k0", kind: "ifb" }, {}],
  ];
  test.each(others)("kind %o", expectMade);

  test("a tun device made by ip is read", ({ skip }) => {
    const place = newPlace();
    try {
      place.ns.run("ip", "tuntap", "add", "dev", "tap0", "mode", "tap", "user", "12");
    } catch {
      skip("this kernel has no tun");
    }
    expect(getLink(place.netlink, { name: "tap0" })).toMatchObject({
      kind: "tun",
      tun: { type: 2, owner: 12, persist: true },
    });
  });
});

describe("errors", () => {
  test.each<[string, Partial<NewLink>, string]>([
    ["a taken name", { name: "taken" }, "EEXIST"],
    ["a peer's taken name", { veth: { peer: { name: "taken" } } } as Partial<NewLink>, "EEXIST"],
    ["a master that is not there", { master: 999 }, "EINVAL"],
    ["an MTU that is too large", { mtu: 70_000 }, "EINVAL"],
    ["a multicast address", { address: "01:00:00:00:00:00" }, "EADDRNOTAVAIL"],
    ["a name with a slash", { name: "a/b" }, "EINVAL"],
    ["a name that is too long", { name: "sixteen-bytes-or" }, "ERANGE"],
  ])("%s is refused and leaves nothing", (_, wrong, code) => {
    const place = newPlace();
    createLink(place.netlink, { name: "taken", kind: "veth", veth: { peer: { name: "other" } } });
    const before = namesIn(place);
    const link = { name: "h0", kind: "veth", ...wrong } as NewLink;
    const error = thrownBy(() => createLink(place.netlink, link));
    expect(error).toBeInstanceOf(NetlinkError);
    expect(error).toMatchObject({ code, call: "RTM_NEWLINK", subject: link.name });
    expect(namesIn(place)).toEqual(before);
  });

  test("the kernel's own words are in the error", () => {
    const { netlink } = newPlace();
    const error = thrownBy(() => createLink(netlink, { name: "x", kind: "nosuch" as "dummy" }));
    expect(error).toMatchObject({
      code: "EOPNOTSUPP",
      extended: { message: "Unknown device type" },
      message: "RTM_NEWLINK x: EOPNOTSUPP: Unknown device type",
    });
  });

  test("a value that its attribute can't hold is refused with its key", () => {
    const { netlink } = newPlace();
    const make = (link: object) => () =>
      createLink(netlink, { name: "x", kind: "bridge", ...link } as NewLink);
    expect(make({ mtu: -1 })).toThrow("mtu: -1 is not a u32");
    expect(make({ address: "02:00:00:00:00" + ":0g" })).toThrow('address: "02:00:00:00:00:0g" is not');
    expect(make({ bridge: { vlanDefaultPvid: 70_000 } })).toThrow(
      "linkInfo: data: vlanDefaultPvid: 70000 is not a u16",
    );
    expect(make({ name: "a\0b" })).toThrow("name:");
    // Nothing of the message that was given up is left in the buffer.
    expect(createLink(netlink, { name: "x", kind: "bridge" }).name).toBe("x");
  });
});

describe("getLink and listLinks", () => {
  test("find by index, name and alternative name; undefined when there is none", () => {
    const { netlink } = newPlace();
    const { index } = createLink(netlink, { name: "br0", kind: "bridge" });
    const long = "an-alternative-name-that-is-longer-than-fifteen-bytes";
    addAltName(netlink, index, long);
    addAltName(netlink, index, "alt0");
    for (const key of [{ index }, { name: "br0" }, { name: "alt0" }, { name: long }])
      expect(getLink(netlink, key)).toMatchObject({ index, name: "br0", altNames: [long, "alt0"] });
    expect(thrownBy(() => addAltName(netlink, index, "alt0"))).toMatchObject({ code: "EEXIST" });
    deleteAltName(netlink, index, "alt0");
    for (const key of [{ index: 999 }, { name: "nosuch" }, { name: `${long}-nosuch` }, { name: "alt0" }])
      expect(getLink(netlink, key)).toBeUndefined();
  });

  test("list all, by master, by kind", () => {
    const place = newPlace();
    const { netlink } = place;
    const bridge = createLink(netlink, { name: "br0", kind: "bridge" });
    createLink(netlink, { name: "h0", kind: "veth", master: bridge.index, veth: { peer: { name: "p0" } } });
    const names = (filter?: Parameters<typeof listLinks>[1]) =>
      listLinks(netlink, filter).map((link) => link.name);
    expect(names().sort()).toEqual(namesIn(place).sort());
    expect(names({ master: bridge.index })).toEqual(["h0"]);
    expect(names({ kind: "veth" }).sort()).toEqual(["h0", "p0"]);
    expect(names({ kind: "bridge", master: bridge.index })).toEqual([]);
  });
});

describe("setLink", () => {
  test("alias and port options in one message", () => {
    const place = newPlace();
    const { netlink } = place;
    const { index: master } = createLink(netlink, { name: "br0", kind: "bridge" });
    const link = createLink(netlink, { name: "h0", kind: "veth", master });
    setLink(netlink, link, { alias: "tscni ü", port: { hairpin: true, isolated: true, learning: false } });
    expect(shown(place, "h0").ifalias).toBe("tscni ü");
    expect(shown(place, "h0").linkinfo.info_slave_data).toMatchObject({
      hairpin: true,
      isolated: true,
      learning: false,
    });
    expect(getLink(netlink, link)).toMatchObject({
      alias: "tscni ü",
      slaveKind: "bridge",
      port: { hairpin: true, isolated: true, learning: false, protect: false },
    });
    setLink(netlink, { name: "h0" }, { port: { hairpin: false } });
    expect(getLink(netlink, link)!.port).toMatchObject({ hairpin: false, isolated: true });
  });

  test("port options of a link that is no port are refused", () => {
    const { netlink } = newPlace();
    createLink(netlink, { name: "h0", kind: "veth" });
    expect(thrownBy(() => setLink(netlink, { name: "h0" }, { port: { hairpin: true } }))).toMatchObject({
      code: "EOPNOTSUPP",
      subject: "h0",
    });
  });

  test("up, down, promiscuous, renamed, released, moved", () => {
    const [place, box] = [newPlace(), newPlace()];
    const { netlink } = place;
    const { index: master } = createLink(netlink, { name: "br0", kind: "bridge" });
    const { index } = createLink(netlink, { name: "h0", kind: "veth", up: true, master });
    setLink(netlink, { index }, { name: "h1", up: false, promisc: true, master: 0, addrGenMode: 1 });
    expect(getLink(netlink, { index })).toMatchObject({ promisc: true, allMulticast: false });
    setLink(netlink, { index }, { allMulticast: true });
    const found = shown(place, "h1");
    expect(found.flags).toContain("ALLMULTI");
    expect(found).toMatchObject({ ifindex: index, inet6_addr_gen_mode: "none" });
    expect(found.master).toBeUndefined();
    expect(found.flags).toContain("PROMISC");
    expect(found.flags).not.toContain("UP");
    expect(getLink(netlink, { index })).toMatchObject({ up: false, promisc: true, addrGenMode: 1 });
    setLink(netlink, { index }, { netNsFd: box.fd, name: "eth7" });
    expect(namesIn(box)).toContain("eth7");
    expect(namesIn(place)).not.toContain("h1");
    expect(thrownBy(() => setLink(netlink, { index }, { up: true }))).toMatchObject({
      code: "ENODEV",
      subject: `index ${index}`,
    });
  });
});

test("deleting: by index, if present, and what is not there", () => {
  const place = newPlace();
  const { netlink } = place;
  const first = createLink(netlink, { name: "h0", kind: "veth", veth: { peer: { name: "p0" } } });
  deleteLink(netlink, first.index);
  expect(namesIn(place)).not.toContain("p0");
  expect(thrownBy(() => deleteLink(netlink, first.index))).toMatchObject({ code: "ENODEV" });
  createLink(netlink, { name: "h0", kind: "veth" });
  expect(deleteLinkIfPresent(netlink, "h0")).toBe(true);
  expect(deleteLinkIfPresent(netlink, "h0")).toBe(false);
  expect(thrownBy(() => deleteLinkIfPresent(netlink, "lo"))).toMatchObject({ code: "EOPNOTSUPP" });
});
