import {
  chmodSync,
  existsSync,
  mkdirSync,
  readFileSync,
  statSync,
  unlinkSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { setMtime, stat } from "@tscni/sys";
import { expect, test } from "vitest";
import { TestNetwork } from "./testing.ts";

const dual = { ranges: [[{ subnet: "10.1.0.0/24" }], [{ subnet: "fd00:9::/64" }]] };

test("ADD, CHECK, DEL: result, files and modes", async () => {
  using net = new TestNetwork({
    ...dual,
    routes: [{ dst: "0.0.0.0/0" }, { dst: "fd01::1:0:0/64", gw: "FD00:9::1", mtu: 1400, table: 0 }],
  });
  const added = await net.call("ADD");
  expect(added.error).toBeUndefined();
  expect(added.result).toEqual({
    interfaces: [],
    ips: [
      { address: "10.1.0.2/24", gateway: "10.1.0.1" },
      { address: "fd00:9::2/64", gateway: "fd00:9::1" },
    ],
    routes: [{ dst: "0.0.0.0/0" }, { dst: "fd01::1:0:0/64", gw: "fd00:9::1", mtu: 1400, table: 0 }],
    dns: {},
  });
  expect(net.files()).toEqual({
    "10.1.0.2": "c1\r\neth0",
    "fd00:9::2": "c1\r\neth0",
    "last_reserved_ip.0": "10.1.0.2",
    "last_reserved_ip.1": "fd00:9::2",
    lock: "",
  });
  const mode = (name: string) => statSync(join(net.dir, name)).mode & 0o777;
  expect([mode("."), mode("lock"), mode("10.1.0.2"), mode("last_reserved_ip.0")]).toEqual([
    0o755, 0o750, 0o600, 0o600,
  ]);
  expect((await net.call("CHECK")).error).toBeUndefined();
  expect((await net.call("CHECK", { ifName: "eth1" })).error?.msg).toBe(
    "host-local: Failed to find address added by container c1",
  );
  expect((await net.call("DEL")).error).toBeUndefined();
  expect((await net.call("DEL")).error).toBeUndefined();
  expect(net.addresses()).toEqual([]);
  expect((await net.call("CHECK")).error?.code).toBe(999);
});

test("DEL and CHECK of a network that was never used make no folder", async () => {
  using net = new TestNetwork();
  expect((await net.call("DEL")).error).toBeUndefined();
  expect((await net.call("CHECK")).error?.code).toBe(999);
  expect(existsSync(net.dir)).toBe(false);
});

test("DEL needs nothing of the config but the data folder", async () => {
  using net = new TestNetwork();
  await net.call("ADD");
  const ipam = { subnet: "nonsense", ranges: 7, routes: [{ dst: 1 }], cooldown: "x" };
  const wrong = await net.call("DEL", { ipam, args: "broken" });
  expect(wrong.error).toBeUndefined();
  expect(wrong.warnings.join("\n")).toContain('ignoring ipam.subnet: "nonsense" is not a CIDR address');
  expect(net.addresses()).toEqual([]);
  expect((await net.call("DEL", { ipam: { dataDir: 7 } })).error).toMatchObject({
    code: 6,
    msg: "ipam.dataDir: 7 is not a string",
  });
});

test("a set that has nothing to give takes the others' addresses back", async () => {
  using net = new TestNetwork({
    ranges: [[{ subnet: "10.1.0.0/24" }], [{ subnet: "10.2.0.0/30" }], [{ subnet: "fd00::/64" }]],
  });
  await net.call("ADD", { id: "a" });
  const full = await net.call("ADD", { id: "b" });
  expect(full.error?.msg).toBe(
    "failed to allocate for range 1: no IP addresses available in range set: 10.2.0.1-10.2.0.2",
  );
  expect(net.addresses()).toEqual(["10.1.0.2", "10.2.0.2", "fd00::2"]);
  expect((await net.call("ADD", { id: "b", args: "IP=10.1.0.9;IgnoreUnknown=1;X=y" })).error).toBeDefined();
  expect(net.addresses()).toHaveLength(3);
});

test("an exhausted pool names the reference's text and who has the addresses", async () => {
  using net = new TestNetwork({ subnet: "10.1.0.0/30" });
  await net.call("ADD", { id: "a" });
  const { error } = await net.call("ADD", { id: "b" });
  expect(error).toMatchObject({
    code: 11,
    msg: "failed to allocate for range 0: no IP addresses available in range set: 10.1.0.1-10.1.0.2",
  });
  expect(error?.details).toContain("0 of 1 addresses free, 1 in use by 1 containers: a (1)");
});

test("a result that cannot be handed over leaves no reservation", async () => {
  using net = new TestNetwork(dual);
  const deliver = () => {
    throw new Error("broken pipe");
  };
  expect((await net.call("ADD", { deliver })).error?.msg).toBe("broken pipe");
  expect(net.addresses()).toEqual([]);
  expect((await net.call("ADD")).ips).toEqual(["10.1.0.3/24", "fd00:9::3/64"]);
});

test("resolvConf becomes dns; one that is missing is named and nothing is reserved", async () => {
  using net = new TestNetwork();
  const resolvConf = join(net.dataDir, "resolv.conf");
  const ipam = { ...net.ipam, resolvConf };
  const missing = await net.call("ADD", { ipam });
  expect(missing.error).toMatchObject({ code: 5 });
  expect(missing.error?.msg).toContain(`ipam.resolvConf: open ${resolvConf}: no such file or directory`);
  expect(existsSync(net.dir)).toBe(false);
  writeFileSync(resolvConf, "nameserver 10.0.0.53\nsearch a b\n");
  expect((await net.call("ADD", { ipam })).result?.dns).toEqual({
    nameservers: ["10.0.0.53"],
    search: ["a", "b"],
  });
});

test("an empty reservation, which a killed Go plugin leaves, is given out again", async () => {
  using net = new TestNetwork({ subnet: "10.1.0.0/30" });
  mkdirSync(net.dir);
  for (const content of ["", "\0\0\0"]) {
    writeFileSync(join(net.dir, "10.1.0.2"), content);
    expect((await net.call("ADD")).ips).toEqual(["10.1.0.2/30"]);
    expect(net.files()["10.1.0.2"]).toBe("c1\r\neth0");
    await net.call("DEL");
  }
});

test("files of plugins that wrote the id alone are found and released", async () => {
  using net = new TestNetwork();
  mkdirSync(net.dir);
  writeFileSync(join(net.dir, "10.1.0.9"), "c1");
  expect((await net.call("CHECK")).error).toBeUndefined();
  expect((await net.call("ADD")).error?.msg).toContain("10.1.0.9 has been allocated to c1, duplicate");
  await net.call("DEL");
  expect(net.addresses()).toEqual([]);
});

test("a file that only looks like a reservation is in use, and nobody's to release", async () => {
  using net = new TestNetwork({ subnet: "10.1.0.0/29", rangeEnd: "10.1.0.4" });
  mkdirSync(join(net.dir, "10.1.0.2"), { recursive: true });
  writeFileSync(join(net.dir, "10.1.0.3"), "two words");
  expect((await net.call("ADD")).ips).toEqual(["10.1.0.4/29"]);
  await net.call("DEL");
  expect(net.addresses()).toEqual(["10.1.0.2", "10.1.0.3"]);
});

test("cooldown keeps a released address out of use, and says so when it is all there is", async () => {
  using net = new TestNetwork({ subnet: "10.1.0.0/29", rangeEnd: "10.1.0.3", cooldown: 3600 });
  await net.call("ADD", { id: "a" });
  await net.call("DEL", { id: "a" });
  expect((await net.call("ADD", { id: "b" })).ips).toEqual(["10.1.0.3/29"]);
  const { error } = await net.call("ADD", { id: "c" });
  expect(error?.code).toBe(11);
  expect(error?.details).toContain("1 released addresses still cool down (ipam.cooldown)");
  expect((await net.call("ADD", { id: "c", args: "IP=10.1.0.2" })).error?.code).toBe(11);
  expect((await net.call("ADD", { id: "c", ipam: { ...net.ipam, cooldown: 0 } })).ips).toEqual([
    "10.1.0.2/29",
  ]);
});

test("cooldown ends", async () => {
  using net = new TestNetwork({ subnet: "10.1.0.0/30", cooldown: 1 });
  await net.call("ADD", { id: "a" });
  await net.call("DEL", { id: "a" });
  expect((await net.call("ADD", { id: "b" })).error?.code).toBe(11);
  await Bun.sleep(1100);
  expect((await net.call("ADD", { id: "b" })).ips).toEqual(["10.1.0.2/30"]);
});

test("GC removes what is not valid and says so; without a list it does nothing", async () => {
  using net = new TestNetwork(dual);
  for (const id of ["a", "b"]) for (const ifName of ["eth0", "eth1"]) await net.call("ADD", { id, ifName });
  writeFileSync(join(net.dir, "10.1.0.77"), "a");
  writeFileSync(join(net.dir, "10.1.0.78"), "gone");
  writeFileSync(join(net.dir, "10.1.0.79"), "");
  const before = net.files();
  expect(await net.call("GC")).toMatchObject({ error: undefined, warnings: [] });
  expect(net.files()).toEqual(before);
  const valid = [
    { containerID: "a", ifname: "eth1" },
    { containerID: "zzz", ifname: "eth0" },
  ];
  const collected = await net.call("GC", { conf: { "cni.dev/valid-attachments": valid } });
  expect(collected.error).toBeUndefined();
  expect(collected.warnings).toContain("released 10.1.0.2 of a eth0");
  expect(collected.warnings).toContain("released 10.1.0.79 of nobody");
  expect(collected.warnings).toHaveLength(8);
  expect(Object.keys(net.files())).toEqual([
    "10.1.0.3",
    "10.1.0.77",
    "fd00:9::3",
    "last_reserved_ip.0",
    "last_reserved_ip.1",
    "lock",
  ]);
  expect((await net.call("CHECK", { id: "a", ifName: "eth1" })).error).toBeUndefined();
  await net.call("GC", { conf: { "cni.dev/attachments": null } });
  expect(net.addresses()).toEqual([]);
});

test("GC goes on past what it cannot remove", async () => {
  using net = new TestNetwork();
  mkdirSync(join(net.dir, "10.1.0.5"), { recursive: true });
  for (const ip of ["10.1.0.4", "10.1.0.6"]) writeFileSync(join(net.dir, ip), "gone\r\neth0");
  const { error } = await net.call("GC", { conf: { "cni.dev/valid-attachments": [] } });
  expect(error?.code).toBe(5);
  expect(error?.msg).toContain("10.1.0.5");
  expect(net.addresses()).toEqual(["10.1.0.5"]);
});

test("STATUS: a full pool is a warning, an error only when asked for; no ranges are no error", async () => {
  using net = new TestNetwork({ subnet: "10.1.0.0/30" });
  expect(await net.call("STATUS")).toMatchObject({ error: undefined, warnings: [] });
  await net.call("ADD", { id: "a" });
  const full = await net.call("STATUS");
  expect(full.error).toBeUndefined();
  expect(full.warnings[0]).toContain(
    "range set 0 (10.1.0.1-10.1.0.2): 0 of 1 addresses free, 1 in use by 1 containers: a (1)",
  );
  const strict = await net.call("STATUS", { ipam: { ...net.ipam, reportExhausted: true } });
  expect(strict.error).toMatchObject({ code: 50 });
  expect(strict.error?.details).toContain("a (1)");
  expect(await net.call("STATUS", { ipam: { ranges: [] } })).toMatchObject({
    error: undefined,
    warnings: [],
  });
  expect((await net.call("STATUS", { ipam: { subnet: "10.1.0.1/24" } })).error?.code).toBe(7);
});

test("STATUS: a data folder that cannot be used is 50", async () => {
  using net = new TestNetwork();
  const file = join(net.dataDir, "file");
  writeFileSync(file, "");
  const { error } = await net.call("STATUS", { ipam: { ...net.ipam, dataDir: file } });
  expect(error?.code).toBe(50);
  expect(error?.msg).toContain(file);
});

test.each([
  ["with a line break", "a\nb"],
  ["with other letters", "spaß und 空"],
  ["like an option", "-rf"],
  ["like a parent", "..a"],
  ["long", "x".repeat(200)],
])("a data folder named %s is one like any other", async (_, name) => {
  using net = new TestNetwork();
  const ipam = { ...net.ipam, dataDir: join(net.dataDir, name) };
  expect((await net.call("ADD", { ipam })).ips).toEqual(["10.1.0.2/24"]);
  expect(readFileSync(join(net.dataDir, name, "net/10.1.0.2"), "utf8")).toBe("c1\r\neth0");
  expect((await net.call("DEL", { ipam })).error).toBeUndefined();
});

test.each(["\0", "x\0y", "y".repeat(300), `/${"z/".repeat(3000)}`])(
  "data folder %j cannot be",
  async (name) => {
    using net = new TestNetwork();
    const ipam = { ...net.ipam, dataDir: `${net.dataDir}/${name}` };
    expect((await net.call("ADD", { ipam })).error?.code).toBe(5);
  },
);

test("reservations from before this boot are released once, newer ones never", async () => {
  using net = new TestNetwork();
  mkdirSync(net.dir);
  const old = (ip: string) => {
    writeFileSync(join(net.dir, ip), "gone\r\neth0");
    utimesSync(join(net.dir, ip), 1_000_000_000, 1_000_000_000);
  };
  old("10.1.0.2");
  old("10.1.0.3");
  writeFileSync(join(net.dir, "10.1.0.4"), "alive\r\neth0");
  const first = await net.call("ADD");
  expect(first.warnings).toEqual(["released 2 addresses reserved before the last boot: 10.1.0.2 10.1.0.3"]);
  expect(net.addresses()).toEqual(["10.1.0.2", "10.1.0.4"]);
  old("10.1.0.9");
  expect((await net.call("ADD", { id: "c2" })).warnings).toEqual([]);
  expect(net.addresses()).toContain("10.1.0.9");
});

test("the index is believed only while nobody else has changed the folder", async () => {
  using net = new TestNetwork({ subnet: "10.1.0.0/24" });
  for (const id of ["a", "b", "c"]) await net.call("ADD", { id });
  writeFileSync(join(net.dir, "10.1.0.5"), "foreign\r\neth0");
  expect((await net.call("CHECK", { id: "foreign" })).error).toBeUndefined();
  expect((await net.call("ADD", { id: "d" })).ips).toEqual(["10.1.0.6/24"]);
  await net.call("DEL", { id: "foreign" });
  expect(net.addresses()).not.toContain("10.1.0.5");
  // Changed in place, which leaves the folder's time as it was: found out before anything is released.
  writeFileSync(join(net.dir, "10.1.0.2"), "other\r\neth0");
  await net.call("DEL", { id: "a" });
  expect(net.files()["10.1.0.2"]).toBe("other\r\neth0");
});

test("an index that is wrong all the same is found out by the files", async () => {
  using net = new TestNetwork();
  await net.call("ADD", { id: "a" });
  const { mtimeNs } = stat(net.dir);
  writeFileSync(join(net.dir, "10.1.0.3"), "foreign\r\neth0");
  setMtime(net.dir, mtimeNs);
  expect((await net.call("ADD", { id: "b" })).ips).toEqual(["10.1.0.4/24"]);
  expect(net.files()["10.1.0.3"]).toBe("foreign\r\neth0");
  const later = stat(net.dir).mtimeNs;
  unlinkSync(join(net.dir, "10.1.0.2"));
  setMtime(net.dir, later);
  expect((await net.call("CHECK", { id: "a" })).error?.code).toBe(999);
  expect((await net.call("ADD", { id: "a" })).ips).toEqual(["10.1.0.5/24"]);
});

test("a torn or foreign index is written anew", async () => {
  using net = new TestNetwork();
  await net.call("ADD", { id: "a" });
  const index = join(net.dir, ".tscni-index");
  const text = readFileSync(index, "utf8");
  for (const damaged of ["", "x", text.slice(0, 20), text.slice(0, -3), text.replaceAll("\n", "\0")]) {
    writeFileSync(index, damaged);
    chmodSync(index, 0o600);
    expect((await net.call("CHECK", { id: "a" })).error).toBeUndefined();
    expect((await net.call("ADD", { id: "a" })).error?.msg).toContain("duplicate allocation");
    expect((await net.call("ADD", { id: "b" })).error).toBeUndefined();
    await net.call("DEL", { id: "b" });
    expect(net.addresses()).toEqual(["10.1.0.2"]);
  }
});
