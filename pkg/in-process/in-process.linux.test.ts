import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import bridge from "@tscni/plugin-bridge";
import hostLocal from "@tscni/plugin-host-local";
import loopback from "@tscni/plugin-loopback";
import { Networking } from "@tscni/runtime";
import { distBin, makeNamespace, run, type TestNamespace, temporaryFolder } from "@tscni/test-support";
import { afterEach, beforeEach, expect, test } from "vitest";
import { inProcess } from "./index.ts";

/* In the namespace that the test was started in, as a program would: it is what the plugins take for the host. */

let folder: ReturnType<typeof temporaryFolder>;
let container: TestNamespace;
beforeEach(() => {
  folder = temporaryFolder();
  container = makeNamespace("in-process");
});
afterEach(() => {
  container.close();
  Bun.spawnSync(["ip", "link", "del", "inproc0"]);
  folder.remove();
});

function networking(how: "here" | "as processes", extra: Record<string, unknown> = {}): Networking {
  const configDir = join(folder.path, "net.d");
  mkdirSync(configDir, { recursive: true });
  const ipam = {
    type: "host-local",
    dataDir: join(folder.path, "leases"),
    ranges: [[{ subnet: "10.45.0.0/24" }], [{ subnet: "fd45::/64" }]],
  };
  const plugins = [{ type: "bridge", bridge: "inproc0", isGateway: true, ipam, ...extra }];
  writeFileSync(
    join(configDir, "n.conflist"),
    JSON.stringify({ cniVersion: "1.1.0", name: "inproc", plugins }),
  );
  const made = new Networking({
    // Without our executable, the plugin and its delegate can only be those of this process.
    pluginDirs: [how === "here" ? join(folder.path, "none") : distBin],
    configDir,
    cacheDir: join(folder.path, "cache"),
    ...(how === "here" ? { exec: inProcess([bridge, hostLocal, loopback]) } : {}),
  });
  made.load("loopback", "directory");
  return made;
}

const addresses = () =>
  JSON.parse(container.run("ip", "-j", "addr", "show", "dev", "eth0"))[0].addr_info.map(
    ({ local }: { local: string }) => local,
  );

/** The links of ours where this process is; other tests may be at work there, too. */
const links = (): string[] =>
  JSON.parse(run("ip", "-j", "link"))
    .filter(
      ({ ifname, ifalias }: { ifname: string; ifalias?: string }) =>
        ifname === "inproc0" || ifalias?.startsWith("tscni inproc "),
    )
    .map(({ ifname }: { ifname: string }) => ifname);

/** What differs from one attachment to the next: MAC addresses and the address itself. */
const shape = (value: unknown) =>
  JSON.parse(
    JSON.stringify(value)
      .replaceAll(/([0-9a-f]{2}:){5}[0-9a-f]{2}/g, "MAC")
      .replaceAll(/"(10\.45\.0\.|fd45::)\d+\//g, '"$1N/'),
  );

test("attach, check, detach as by processes: the same result, the same kernel", async () => {
  const here = networking("here");
  const result = await here.setup("c1", container.path);
  expect(addresses()).toEqual(expect.arrayContaining(["10.45.0.2", "fd45::2"]));
  await here.check("c1", container.path);
  await here.status();
  await here.remove("c1", container.path);
  expect(existsSync(join(folder.path, "leases/inproc/10.45.0.2"))).toBe(false);

  const apart = networking("as processes");
  expect(shape(await apart.setup("c1", container.path))).toEqual(shape(result));
  // What one made, the other takes away.
  await here.remove("c1", container.path);
  expect(here.attachments().attachments).toEqual([]);
});

test("errors are those of the process", async () => {
  const messageOf = async (made: Networking) => {
    const error = await made.setup("c1", container.path).catch((reason: unknown) => reason);
    const { failures } = error as { failures: { error: { code: number; msg: string } }[] };
    return failures.map(({ error: { code, msg } }) => [code, msg]);
  };
  const wrong = { vlan: 5000 };
  const here = await messageOf(networking("here", wrong));
  expect(here).toEqual(await messageOf(networking("as processes", wrong)));
  expect(here).toMatchObject([[7, expect.stringContaining("vlan")]]);
});

test("many at once, one after the other: distinct addresses, and this process is where it was", async () => {
  const here = networking("here");
  const containers = Array.from({ length: 20 }, (_, i) => ({
    id: `many${i}`,
    namespace: makeNamespace(`many${i}`),
  }));
  const results = await Promise.all(containers.map(({ id, namespace }) => here.setup(id, namespace.path)));
  const all = results.map(({ interfaces }) => interfaces.eth0!.addresses[0]!.address);
  expect(new Set(all).size).toBe(20);
  expect(links()).toHaveLength(21);
  await Promise.all(containers.map(({ id, namespace }) => here.remove(id, namespace.path)));
  for (const { namespace } of containers) namespace.close();
  expect(links()).toEqual(["inproc0"]);
});

test("plugins that are not ours run as processes", async () => {
  writeFileSync(join(folder.path, "foreign"), `#!/bin/sh\necho '{"cniVersion":"1.1.0"}'\n`, { mode: 0o755 });
  const made = new Networking({
    pluginDirs: [folder.path],
    cacheDir: join(folder.path, "cache"),
    exec: inProcess([bridge, hostLocal]),
  });
  made.load({ list: JSON.stringify({ cniVersion: "1.1.0", name: "f", plugins: [{ type: "foreign" }] }) });
  expect((await made.setup("c", container.path)).interfaces).toEqual({ eth0: { addresses: [] } });
});
