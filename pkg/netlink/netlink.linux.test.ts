import { ip as shownBy } from "@tscni/test-support";
import { describe, expect, test } from "vitest";
import { addAddress, listAddresses } from "./addresses.ts";
import { type Codec, ip } from "./codecs.ts";
import { addAltName, addLink, createLink, deleteLink, getLink, listLinks, setLink } from "./links.ts";
import { Netlink } from "./netlink.ts";
import { addRoute, listRoutes } from "./routes.ts";
import { Attributes } from "./table.ts";
import { addressFormat } from "./tables/address.ts";
import { routeFormat } from "./tables/route.ts";
import { cidrOf, newPlace, type Place, thrownBy } from "./testing.ts";

/** A link with IPv4 addresses. A datagram holds some 500 of them, and the kernel prepares three in advance. */
function manyAddresses({ netlink }: Place, count: number): number {
  const { index } = createLink(netlink, { name: "many", kind: "ifb" });
  const errors = netlink.batch((requests) => {
    for (let i = 0; i < count; i++)
      addAddress(requests, { index, cidr: cidrOf(`10.${i >> 8}.${i & 255}.1/32`) });
  });
  expect(errors).toEqual(new Array(count).fill(undefined));
  return index;
}

/** The format of addresses with something done at each address that is decoded. */
function addressesWith(action: () => void): typeof addressFormat {
  const local: Codec<ReturnType<typeof ip.get>> = {
    put: ip.put,
    get(...place) {
      action();
      return ip.get(...place);
    },
  };
  const attributes = new Attributes(() => ({ ...addressFormat.attributes.entries, local: [2, local] }));
  return { ...addressFormat, attributes } as unknown as typeof addressFormat;
}

describe("dumps", () => {
  test("of 600 links, addresses and routes are complete", () => {
    const place = newPlace();
    const { netlink, ns } = place;
    const errors = netlink.batch((requests) => {
      for (let i = 0; i < 600; i++) addLink(requests, { name: `ifb-${i}`, kind: "ifb" });
    });
    expect(errors).toEqual(new Array(600).fill(undefined));
    const names = listLinks(netlink).map((link) => link.name);
    expect(names.sort()).toEqual(
      shownBy(ns, "link")
        .map((link) => link.ifname)
        .sort(),
    );
    expect(names.length).toBeGreaterThanOrEqual(601);

    const index = manyAddresses(place, 2000);
    expect(new Set(listAddresses(netlink, { index }).map(({ cidr }) => cidr.ip.value)).size).toBe(2000);

    setLink(netlink, { index }, { up: true });
    netlink.batch((requests) => {
      for (let i = 0; i < 3000; i++)
        addRoute(requests, { destination: cidrOf(`172.16.${i >> 8}.${i & 255}/32`), index, table: 7000 });
    });
    expect(new Set(listRoutes(netlink, { table: 7000 }).map((r) => r.destination.ip.value)).size).toBe(3000);
  });

  test("one that a change interrupts is begun anew and is right", () => {
    const place = newPlace();
    manyAddresses(place, 4000);
    let decoded = 0;
    const format = addressesWith(() => {
      if (++decoded === 1) place.ns.run("ip", "addr", "add", "192.168.0.1/32", "dev", "many");
    });
    const found = place.netlink.dump(format, {}, {}, "addresses");
    expect(decoded).toBeGreaterThan(found.length);
    expect(new Set(found.map((m) => m.attributes.local?.value)).size).toBe(4001);
    expect(found.length).toBe(4001);
  });

  test("one that is interrupted every time ends with EINTR, and the socket goes on working", () => {
    const place = newPlace();
    const index = manyAddresses(place, 4000);
    let decoded = 0;
    const changing = addressesWith(() => {
      if (decoded++ % 1000 === 0)
        place.ns.run("ip", "addr", decoded % 2000 === 1 ? "add" : "del", "192.168.0.1/32", "dev", "many");
    });
    expect(thrownBy(() => place.netlink.dump(changing, {}, {}, "addresses"))).toMatchObject({
      code: "EINTR",
      message: expect.stringContaining("others changed the list"),
    });
    expect(listAddresses(place.netlink, { index }).length).toBeGreaterThanOrEqual(4000);
  });

  test("concurrent changes: each dump is of one moment", async () => {
    const place = newPlace();
    manyAddresses(place, 1000);
    // Two addresses that are always exchanged for one another, add first: never is none of them there.
    const script = [...Array(200).keys()].flatMap((i) => {
      const [on, off] = i % 2 === 0 ? [2, 1] : [1, 2];
      return [`addr add 192.168.0.${on}/32 dev many`, `addr del 192.168.0.${off}/32 dev many`];
    });
    place.ns.run("ip", "addr", "add", "192.168.0.1/32", "dev", "many");
    const command = ["nsenter", `--net=${place.ns.path}`, "ip", "-batch", "-"];
    const child = Bun.spawn(command, {
      stdin: new Blob([script.join("\n")]),
      stderr: "pipe",
      timeout: 20_000,
    });
    let dumps = 0;
    do {
      const found = listAddresses(place.netlink, { family: 4 });
      const extra = found.length - 1000;
      expect([1, 2]).toContain(extra);
      expect(new Set(found.map((a) => a.cidr.ip.value)).size).toBe(found.length);
      dumps++;
      await Bun.sleep(0);
    } while (child.exitCode === null);
    expect(await new Response(child.stderr).text()).toBe("");
    expect(child.exitCode).toBe(0);
    expect(dumps).toBeGreaterThan(1);
  });

  test("an error that comes at the end of a dump is thrown", () => {
    const { netlink } = newPlace();
    const dump = () => netlink.dump(routeFormat, { family: 2 }, { table: 4242 }, "routes");
    expect(thrownBy(dump)).toMatchObject({
      code: "ENOENT",
      call: "RTM_GETROUTE",
      extended: { message: expect.stringContaining("FIB table does not exist") },
    });
  });

  test("a failure to decode is thrown, and the next dump is not disturbed", () => {
    const place = newPlace();
    const index = manyAddresses(place, 1000);
    const broken = addressesWith(() => {
      throw new RangeError("broken");
    });
    expect(() => place.netlink.dump(broken, {}, {}, "addresses")).toThrow("broken");
    expect(listAddresses(place.netlink, { index, family: 4 }).length).toBe(1000);
  });
});

test("one message larger than the buffer is received whole", () => {
  const { netlink } = newPlace();
  const { index } = createLink(netlink, { name: "h0", kind: "ifb" });
  const names = [...Array(400).keys()].map((i) => `${i}-`.padEnd(127, "x"));
  netlink.batch((requests) => {
    for (const name of names) addAltName(requests, index, name);
  });
  expect(getLink(netlink, { index })!.altNames).toEqual(names);
  expect(listLinks(netlink).find((link) => link.index === index)!.altNames).toEqual(names);
});

describe("strict checking", () => {
  test("is on: the kernel itself filters dumps", () => {
    const { netlink } = newPlace();
    const a = createLink(netlink, { name: "a", kind: "ifb" });
    const b = createLink(netlink, { name: "b", kind: "ifb" });
    addAddress(netlink, { index: a.index, cidr: cidrOf("10.0.0.1/24") });
    addAddress(netlink, { index: b.index, cidr: cidrOf("10.0.0.2/24") });
    const found = netlink.dump(addressFormat, { family: 2, index: b.index }, {}, "addresses");
    expect(found.map((m) => m.header.index)).toEqual([b.index]);
  });

  test("refuses a request with fields that mean nothing", () => {
    const { netlink } = newPlace();
    expect(
      thrownBy(() => netlink.dump(addressFormat, { family: 2, prefix: 7 }, {}, "addresses")),
    ).toMatchObject({
      code: "EINVAL",
      extended: { message: expect.stringContaining("Invalid values in header") },
    });
  });

  test("an attribute that means nothing in the request is refused", () => {
    const { netlink } = newPlace();
    const dump = () => netlink.dump(addressFormat, { family: 2 }, { label: "x" }, "addresses");
    expect(thrownBy(dump)).toMatchObject({
      code: "EINVAL",
      extended: { message: expect.stringContaining("Unsupported attribute") },
    });
  });

  test("the error says which attribute the kernel refuses", () => {
    const { netlink } = newPlace();
    const make = () => createLink(netlink, { name: "name-of-sixteen-", kind: "ifb" });
    // Behind struct nlmsghdr and struct ifinfomsg.
    expect(thrownBy(make)).toMatchObject({ code: "ERANGE", extended: { offset: 32 } });
  });
});

describe("batch", () => {
  test("runs all requests in order and reports each one's error", () => {
    const { netlink } = newPlace();
    const errors = netlink.batch((requests) => {
      addLink(requests, { name: "a", kind: "ifb" });
      addLink(requests, { name: "a", kind: "ifb" });
      setLink(requests, { name: "a" }, { mtu: 1234 });
      deleteLink(requests, 999);
      addLink(requests, { name: "b", kind: "ifb" });
    });
    expect(errors.map((error) => error?.code)).toEqual([undefined, "EEXIST", undefined, "ENODEV", undefined]);
    expect(errors[3]).toMatchObject({ call: "RTM_DELLINK", subject: "index 999" });
    expect(getLink(netlink, { name: "a" })!.mtu).toBe(1234);
    expect(getLink(netlink, { name: "b" })).toBeDefined();
  });

  test("of nothing, and of more than are sent at once, with other requests between", () => {
    const { netlink } = newPlace();
    expect(netlink.batch(() => {})).toEqual([]);
    const errors = netlink.batch((requests) => {
      for (let i = 0; i < 150; i++) {
        addLink(requests, { name: `l${i % 140}`, kind: "ifb" });
        if (i % 50 === 0) expect(getLink(netlink, { name: "lo" })).toBeDefined();
      }
    });
    expect(errors.map((error) => error?.code)).toEqual([
      ...new Array(140).fill(undefined),
      ...new Array(10).fill("EEXIST"),
    ]);
  });

  test("sends nothing of what was begun when a request can't be written", () => {
    const { netlink } = newPlace();
    const fill = () =>
      netlink.batch((requests) => {
        addLink(requests, { name: "a", kind: "ifb" });
        addLink(requests, { name: "b", kind: "ifb", mtu: -1 });
      });
    expect(fill).toThrow("mtu: -1");
    expect(getLink(netlink, { name: "a" })).toBeUndefined();
  });
});

test("a socket belongs to the namespace that it was opened in", () => {
  const [one, other] = [newPlace(), newPlace()];
  createLink(one.netlink, { name: "here", kind: "ifb" });
  expect(getLink(one.netlink, { name: "here" })).toBeDefined();
  expect(getLink(other.netlink, { name: "here" })).toBeUndefined();
});

test("after close, requests fail and another close does no harm", () => {
  const netlink = new Netlink();
  netlink.close();
  netlink.close();
  expect(thrownBy(() => getLink(netlink, { name: "lo" }))).toMatchObject({ code: "EBADF" });
});
