import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { assign, isUp, type Lab, makeLab, type Running, until } from "./testing.ts";

const kea = Bun.which("kea-dhcp4") ?? ["/usr/sbin/kea-dhcp4"].find((path) => existsSync(path));

let lab: Lab;
beforeEach((context) => {
  if (!kea) context.skip("no kea-dhcp4 (Debian: kea-dhcp4-server)");
  lab = makeLab();
});
afterEach(() => lab?.close());

const serverLeases = () => readFileSync(join(lab.folder, "kea.csv"), "utf8");

/** Kea, whose leases may be as short as a test needs them. Seconds. */
async function startKea(times: { valid: number; renew?: number; rebind?: number }): Promise<Running> {
  const path = join(lab.folder, "kea.json");
  const run = join(lab.folder, "kea");
  mkdirSync(run, { recursive: true });
  const conf = {
    Dhcp4: {
      "interfaces-config": { interfaces: ["br0"], "dhcp-socket-type": "raw" },
      "lease-database": {
        type: "memfile",
        persist: true,
        name: join(lab.folder, "kea.csv"),
        "lfc-interval": 0,
      },
      "valid-lifetime": times.valid,
      ...(times.renew ? { "renew-timer": times.renew } : {}),
      ...(times.rebind ? { "rebind-timer": times.rebind } : {}),
      "multi-threading": { "enable-multi-threading": false },
      subnet4: [
        {
          id: 1,
          subnet: "10.55.0.0/24",
          pools: [{ pool: "10.55.0.100 - 10.55.0.200" }],
          "option-data": [
            { name: "routers", data: "10.55.0.1" },
            { name: "domain-name-servers", data: "10.55.0.53" },
            { name: "domain-name", data: "example.net" },
            { name: "domain-search", data: "a.example.net, b.example.net" },
            { name: "classless-static-route", code: 121, "csv-format": false, data: "20A9FEA9FE00000000" },
          ],
        },
      ],
      "option-def": [{ name: "classless-static-route", code: 121, type: "binary" }],
      loggers: [{ name: "kea-dhcp4", severity: "INFO", output_options: [{ output: "stdout" }] }],
    },
  };
  writeFileSync(path, JSON.stringify(conf));
  const env = [`KEA_PIDFILE_DIR=${run}`, `KEA_LOCKFILE_DIR=${run}`, `KEA_DHCP_DATA_DIR=${run}`];
  const server = lab.start("kea", "env", ...env, kea!, "-c", path);
  await until("Kea serves", () => server.log().includes("DHCP4_STARTED"));
  return server;
}

test("ADD with DNS and a classless route on the link; DEL is heard of", async () => {
  await startKea({ valid: 600 });
  await lab.daemon();
  const ns = lab.container();
  const result = await lab.call("ADD", { ns, ipam: { request: [{ option: "121" }] } });
  expect(result).toMatchObject({
    status: 0,
    ips: [{ gateway: "10.55.0.1" }],
    routes: [{ dst: "169.254.169.254/32", gw: "0.0.0.0", scope: 253 }],
    dns: { nameservers: ["10.55.0.53"], domain: "example.net", search: ["a.example.net", "b.example.net"] },
  });
  expect(await lab.leases()).toMatchObject([{ expiresIn: expect.any(Number), renewsIn: expect.any(Number) }]);
  const [lease] = await lab.leases();
  expect(lease.expiresIn).toBeGreaterThan(590);
  expect(lease.renewsIn).toBeGreaterThan(290);
  const address = result.ips[0].address.split("/")[0];
  expect(serverLeases()).toContain(address);
  await lab.call("DEL", { ns });
  // Its file is a journal: a lease that is given back gets a line with a lifetime of 0.
  const released = new RegExp(`^${address},[^,]*,[^,]*,0,`, "m");
  await until("Kea has the release", () => released.test(serverLeases()));
});

// It goes by the seconds of leases, which a busy machine can miss: once more then.
test("the server vanishes: renewing, rebinding, bound again by the next server; it vanishes for good: down", {
  retry: 1,
}, async () => {
  const server = await startKea({ valid: 12, renew: 1, rebind: 3 });
  const daemon = await lab.daemon();
  const ns = lab.container();
  const result = await lab.call("ADD", { ns });
  assign(ns, result);
  await until("it is renewed", () => daemon.log().split("bound to").length > 2);
  expect(daemon.log()).toContain("sent REQUEST to 10.55.0.1");
  await server.kill("SIGKILL");
  await until("it asks all", async () => (await lab.leases())[0].state === "rebinding");
  expect(daemon.log()).toContain("sent REQUEST to all");
  const next = await startKea({ valid: 4, renew: 1, rebind: 2 });
  const bound = daemon.log().split("bound to").length;
  await until("it is bound again", () => daemon.log().split("bound to").length > bound);
  expect((await lab.leases())[0]).toMatchObject({ address: result.ips[0].address });
  expect(isUp(ns)).toBe(true);
  await next.kill("SIGKILL");
  await until("it is lost", () => daemon.log().includes("is lost"));
  expect(isUp(ns)).toBe(false);
  expect(await lab.call("CHECK", { ns })).toMatchObject({
    status: 1,
    msg: expect.stringContaining("is lost"),
  });
  expect((await lab.leases())[0].state).toBe("expired");
  expect(daemon.log().split("DISCOVER")).toHaveLength(2); // the first

  // Lost it stays over a restart, until there is a server and a new ADD.
  await daemon.kill();
  await lab.daemon();
  expect((await lab.leases())[0].state).toBe("expired");
  await startKea({ valid: 60 });
  expect((await lab.call("ADD", { ns })).ips).toEqual(result.ips);
  expect(isUp(ns)).toBe(true);
});

test("a lease that expires while there is no daemon is asked for anew", async () => {
  await startKea({ valid: 3 });
  const daemon = await lab.daemon();
  const ns = lab.container();
  const result = await lab.call("ADD", { ns });
  assign(ns, result);
  await daemon.kill("SIGKILL");
  await Bun.sleep(3500);
  const next = await lab.daemon();
  await until("it is bound again", () => next.log().includes("bound to"));
  expect(next.log()).toContain("anew");
  expect((await lab.leases())[0]).toMatchObject({ address: result.ips[0].address });
  expect(isUp(ns)).toBe(true);
});
