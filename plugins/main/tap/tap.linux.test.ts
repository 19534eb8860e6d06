import { ipBytes, parseIp } from "@tscni/addr";
import { openNamespace } from "@tscni/ns";
import { close, ioctl, O, open, read, waitReadable, writeAll } from "@tscni/sys";
import {
  type Conf,
  ip,
  makeNode,
  namesIn,
  pings,
  type TestNamespace,
  type TestNode,
} from "@tscni/test-support";
import { atLeast, specVersions } from "@tscni/types";
import { afterEach, beforeEach, describe, expect, test } from "vitest";

let node: TestNode;
let c: TestNamespace;
beforeEach(() => {
  node = makeNode();
  c = node.container();
});
afterEach(() => node.close());

const conf = (more: object = {}, subnets?: readonly string[]): Conf => node.conf("tap", more, subnets);
const linkOf = (ns: TestNamespace, name = "eth0") => ip(ns, "link", "show", "dev", name)[0];
const tunOf = (ns: TestNamespace) => linkOf(ns).linkinfo.info_data;

describe.each(specVersions)("cniVersion %s", (cniVersion) => {
  test("ADD, CHECK where there is one, DEL; nothing stays", async () => {
    const added = await node.ok("ADD", conf({ cniVersion }), { netns: c });
    const { address, flags } = linkOf(c);
    expect(flags).toContain("UP");
    expect(tunOf(c)).toMatchObject({
      type: "tap",
      pi: false,
      vnet_hdr: false,
      persist: true,
      multi_queue: false,
    });
    if (atLeast(cniVersion, "0.3.0"))
      expect(added.interfaces).toEqual([
        {
          name: "eth0",
          mac: address,
          sandbox: c.path,
          ...(atLeast(cniVersion, "1.0.0") ? { mtu: 1500 } : {}),
        },
      ]);
    const later = conf({ cniVersion, prevResult: added });
    if (atLeast(cniVersion, "0.4.0")) await node.ok("CHECK", later, { netns: c });
    for (let i = 0; i < 2; i++) await node.ok("DEL", later, { netns: c });
    expect([namesIn(c), node.leases()]).toEqual([["lo"], []]);
  });
});

/** A machine behind the tap: sends frames and reads those that it is sent. */
function attach(ns: TestNamespace, name = "eth0") {
  using sandbox = openNamespace(ns.path);
  const fd = sandbox.enter(() => open("/dev/net/tun", O.RDWR));
  const request = new Uint8Array(40);
  request.set(new TextEncoder().encode(name));
  request.set([0x02, 0x10], 16); // IFF_TAP, IFF_NO_PI
  ioctl(fd, 0x400454ca, request, name);
  const buffer = new Uint8Array(2048);
  return {
    send: (frame: readonly number[]) => writeAll(fd, Uint8Array.from(frame)),
    /** The next frame that `wanted` accepts, or undefined when none comes within 300 ms. */
    next(wanted: (frame: Uint8Array) => boolean): Uint8Array | undefined {
      while (waitReadable(fd, 300)) {
        const frame = buffer.slice(0, read(fd, buffer));
        if (wanted(frame)) return frame;
      }
      return undefined;
    },
    [Symbol.dispose]: () => close(fd),
  };
}

const bytesOf = (address: string): number[] => [...ipBytes(parseIp(address)!)];
const machine = [2, 0, 0, 0, 0, 9];
/** Who has `address`? (RFC 826) */
const arpRequest = (address: string): number[] => [
  ...[255, 255, 255, 255, 255, 255, ...machine, 8, 6, 0, 1, 8, 0, 6, 4, 0, 1],
  ...[...machine, ...bytesOf("10.88.0.9"), 0, 0, 0, 0, 0, 0, ...bytesOf(address)],
];
const isArpReply = (frame: Uint8Array): boolean => frame[12] === 8 && frame[13] === 6 && frame[21] === 2;

describe("packets", () => {
  test("what a machine sends arrives at the container's address, and at no other", async () => {
    const added = await node.ok("ADD", conf(), { netns: c });
    using tap = attach(c);
    // The interface sends a moment after the machine has given it a carrier.
    const answer = () => {
      tap.send(arpRequest("10.88.0.2"));
      const reply = tap.next(isArpReply) ?? [];
      return [...reply.slice(22, 28)].map((byte) => byte.toString(16).padStart(2, "0")).join(":");
    };
    await expect.poll(answer).toBe(added.interfaces[0].mac);
    tap.send(arpRequest("10.88.0.3"));
    expect(tap.next((frame) => isArpReply(frame) && frame[31] === 3)).toBeUndefined();
  });

  test("what the container sends arrives at the machine", async () => {
    await node.ok("ADD", conf(), { netns: c });
    using tap = attach(c);
    expect(pings(c, "10.88.0.1"), "nobody answers there").toBe(false);
    const asked = tap.next((frame) => frame[12] === 8 && frame[13] === 6);
    expect([...asked!.slice(38, 42)]).toEqual(bytesOf("10.88.0.1"));
  });

  test("as a port of a bridge: frames go to the bridge's other ports", async () => {
    c.run("ip", "link", "add", "br0", "up", "type", "bridge");
    c.run("ip", "link", "set", "lo", "up");
    const prevResult = await node.ok("ADD", conf({ bridge: "br0" }, []), { netns: c });
    expect(linkOf(c).master).toBe("br0");
    await node.ok("ADD", conf({ bridge: "br0" }, []), { netns: c, ifName: "eth1" });
    using a = attach(c);
    using b = attach(c, "eth1");
    const request = arpRequest("10.88.0.7");
    // The bridge's ports forward a moment after their carrier is there.
    const passed = () => {
      a.send(request);
      return b.next((frame) => frame[11] === 9 && frame[13] === 6)?.slice(0, request.length);
    };
    await expect.poll(passed).toEqual(Uint8Array.from(request));
    await node.ok("CHECK", conf({ bridge: "br0", prevResult }, []), { netns: c });
    c.run("ip", "link", "set", "eth0", "nomaster");
    const { msg } = await node.error("CHECK", conf({ bridge: "br0", prevResult }, []), { netns: c });
    expect(msg).toBe("interface eth0 is not a port of br0");
  });
});

describe("options", () => {
  test("multiQueue, owner, group and mtu, which CHECK compares", async () => {
    const wanted = { multiQueue: true, owner: 1234, group: 0, mtu: 9000 };
    const prevResult = await node.ok("ADD", conf(wanted), { netns: c });
    expect(tunOf(c)).toMatchObject({ multi_queue: true, user: 1234, group: "root" });
    expect([linkOf(c).mtu, prevResult.interfaces[0].mtu]).toEqual([9000, 9000]);
    await node.ok("CHECK", conf({ ...wanted, prevResult }), { netns: c });
    for (const [more, msg] of [
      [{ owner: 5 }, "interface eth0 has owner 1234, not 5"],
      [{ group: 7 }, "interface eth0 has group 0, not 7"],
      [{ multiQueue: false }, "interface eth0 has multiQueue true, not false"],
    ] as const)
      expect((await node.error("CHECK", conf({ ...wanted, ...more, prevResult }), { netns: c })).msg).toBe(
        msg,
      );
  });

  const [fromConf, fromEnv, fromRuntime] = ["02:00:00:00:00:01", "02:00:00:00:00:02", "02:00:00:00:00:03"];
  test.each([
    ["of the config", { mac: fromConf }, "", fromConf],
    [
      "of the config, with owner and group, where Go ignores it",
      { mac: fromConf, owner: 1, group: 1 },
      "",
      fromConf,
    ],
    ["of CNI_ARGS over that", { mac: fromConf }, `IgnoreUnknown=1;MAC=${fromEnv}`, fromEnv],
    [
      "of the capability over both",
      { mac: fromConf, runtimeConfig: { mac: fromRuntime } },
      `IgnoreUnknown=1;MAC=${fromEnv}`,
      fromRuntime,
    ],
  ])("MAC address %s", async (_, more, args, expected) => {
    const added = await node.ok("ADD", conf(more), { netns: c, args });
    expect([linkOf(c).address, added.interfaces[0].mac]).toEqual([expected, expected]);
  });

  test("selinuxContext without SELinux is an error that says so, and leaves nothing", async (t) => {
    const outcome = await node.call("ADD", conf({ selinuxContext: "system_u:system_r:container_t:s0" }), {
      netns: c,
    });
    if (outcome.status === 0) t.skip("this kernel has SELinux");
    expect(outcome.json.msg).toMatch(/^selinuxContext: "system_u.*": failed set socket label/);
    expect([namesIn(c), node.leases()]).toEqual([["lo"], []]);
  });

  test("without IPAM: layer 2 only, and dns of the config", async () => {
    const dns = { nameservers: ["10.0.0.1"] };
    const prevResult = await node.ok("ADD", conf({ dns }, []), { netns: c });
    expect(prevResult).toMatchObject({ interfaces: [{ name: "eth0" }], dns });
    expect(linkOf(c).flags).toContain("UP");
    await node.ok("CHECK", conf({ prevResult }, []), { netns: c });
  });
});

describe("an ADD that fails leaves nothing", () => {
  test.each<[string, () => Conf, RegExp]>([
    ["the bridge missing", () => conf({ bridge: "br0" }), /^failed to get bridge br0: Link not found$/],
    ["a bridge that is none", () => conf({ bridge: "lo" }), /^failed to get bridge lo: it is of kind none$/],
    ["an MTU that the kernel refuses", () => conf({ mtu: 10 }), /EINVAL/],
    ["the IPAM plugin missing", () => conf({ ipam: { type: "nonesuch" } }), /nonesuch/],
    [
      "a route that the kernel refuses",
      () => conf({ ipam: { ...conf().ipam, routes: [{ dst: "10.77.0.0/16", gw: "172.31.0.1" }] } }),
      /10\.77\.0\.0\/16 via 172\.31\.0\.1/,
    ],
  ])("%s", async (_, bad, message) => {
    const error = await node.error("ADD", bad(), { netns: c });
    expect(error.msg).toMatch(message);
    expect(error.details ?? "").not.toContain("could not be taken back");
    expect([namesIn(c), node.leases()]).toEqual([["lo"], []]);
    await node.ok("ADD", conf(), { netns: c });
  });

  test.each([
    ["a tap", (name: string) => ["ip", "tuntap", "add", name, "mode", "tap"]],
    ["another link", (name: string) => ["ip", "link", "add", name, "type", "veth"]],
  ])("the name is that of %s, which stays as it is", async (_, make) => {
    c.run(...make("eth0"));
    const before = c.run("ip", "link");
    const { msg } = await node.error("ADD", conf({ mac: "02:00:00:00:00:01" }), { netns: c });
    expect(msg).toBe('interface "eth0" already exists in the container');
    expect([c.run("ip", "link"), node.leases()]).toEqual([before, []]);
  });
});

test.each(["no netns", "netns gone", "link gone"])("DEL with %s", async (what) => {
  const prevResult = await node.ok("ADD", conf(), { netns: c });
  if (what === "netns gone") c.close();
  if (what === "link gone") c.run("ip", "link", "del", "eth0");
  await node.ok("DEL", conf({ prevResult }), { netns: what === "no netns" ? "" : c });
  expect(node.leases()).toEqual([]);
});

test.each([
  ["ip addr del 10.88.0.2/24 dev eth0", "lacks the address 10.88.0.2/24"],
  ["ip link set eth0 address 02:00:00:00:00:09", "02:00:00:00:00:09"],
  ["ip link del eth0", "eth0 is missing"],
])("CHECK after %s", async (command, message) => {
  const prevResult = await node.ok("ADD", conf(), { netns: c });
  c.run(...command.split(" "));
  expect((await node.error("CHECK", conf({ prevResult }), { netns: c })).msg).toContain(message);
});

test("STATUS wants /dev/net/tun, and asks IPAM", async () => {
  await node.ok("STATUS", conf());
  expect(
    (await node.error("STATUS", conf({ ipam: { ...conf().ipam, dataDir: "/proc/nowhere" } }))).code,
  ).toBe(50);
  const hide = 'mount -t tmpfs none /dev/net && exec "$@"';
  const command = ["unshare", "-m", "sh", "-c", hide, "sh", ...node.command("tap")];
  const child = Bun.spawn(command, {
    env: { PATH: process.env.PATH, CNI_COMMAND: "STATUS", CNI_PATH: "/nowhere" },
    stdin: new Blob([JSON.stringify(conf({}, []))]),
  });
  const error = JSON.parse(await new Response(child.stdout).text());
  expect(error).toMatchObject({ code: 50, details: '/dev/net/tun is the kernel module "tun"' });
});

test("GC gives back the addresses of containers that are gone", async () => {
  const gone = node.container();
  await node.ok("ADD", conf(), { netns: c });
  await node.ok("ADD", conf(), { netns: gone, id: "c2" });
  gone.close();
  await node.ok("GC", conf({ "cni.dev/valid-attachments": [{ containerID: "c1", ifname: "eth0" }] }));
  expect(node.leases()).toEqual(["10.88.0.2", "fd88::2"]);
});
