import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { makeNamespace, makeNode, type TestNamespace } from "@tscni/test-support";
import { afterEach, beforeEach, expect, test } from "vitest";
import { bin, type Outcome, root, run } from "./executable.ts";

let dir: string;
let host: TestNamespace;
beforeEach(async () => {
  dir = mkdtempSync(join(tmpdir(), "tscni-install-"));
  host = makeNamespace();
  expect(await install(dir)).toMatchObject({ status: 0 });
});
afterEach(() => {
  host.close();
  rmSync(dir, { recursive: true });
});

const install = (...args: string[]): Promise<Outcome> =>
  run(["nsenter", `--net=${host.path}`, join(root, "scripts/install"), "--from", bin, ...args], {
    env: { PATH: "/usr/sbin:/usr/bin:/sbin:/bin" },
  });

/** A table with a map, and in it what the text says. */
const table = (name: string, elements: string): string =>
  `table inet ${name} { map any4 { type inet_proto . inet_service : ipv4_addr . inet_service; ${elements} }; }`;
const tables = (): string => host.run("nft", "list", "tables");

test("uninstall refuses while tables of ours hold containers, and names them", async () => {
  const of = (name: string, port: number) => `tcp . ${port} comment "net ${name} eth0" : 10.1.0.2 . 80`;
  const containers = Array.from({ length: 7 }, (_, i) => of(`c${i}`, 8080 + i)).join(", ");
  host.run("nft", table("tscni_portmap", `elements = { ${containers} }`));
  const refused = await install("--uninstall", dir);
  expect(refused.status).toBe(1);
  expect(refused.stderr).toContain("table inet tscni_portmap holds what belongs to:\n  net c0 eth0\n");
  expect(refused.stderr).toContain("  net c4 eth0\n  and others\n");
  expect(refused.stderr).toMatch(/cnitool gc.*--force\n$/);
  expect(existsSync(join(dir, "bridge"))).toBe(true);
  expect(tables()).toContain("tscni_portmap");

  const forced = await install("--uninstall", "--force", dir);
  expect(forced).toMatchObject({ status: 0, stderr: "" });
  expect(forced.stdout).toContain("deleted  table inet tscni_portmap\n");
  expect(existsSync(join(dir, "bridge"))).toBe(false);
  expect(tables()).toBe("");
});

test("a container with a port by the plugins themselves: refused, until cnitool gc has run", async () => {
  const node = makeNode();
  const plugins = [
    node.bridgeConf({ name: undefined, ipMasq: true, ipMasqBackend: "nftables" }),
    { type: "portmap", backend: "nftables", capabilities: { portMappings: true } },
  ];
  const conf = { cniVersion: "1.1.0", name: "uninstall", plugins };
  writeFileSync(join(node.dataDir, "net.conflist"), JSON.stringify(conf));
  const cnitool = (verb: string) =>
    run(
      [
        ...["nsenter", `--net=${host.path}`, join(dir, "cnitool"), verb, "uninstall", node.container().path],
        ...["--cache-dir", node.dataDir],
      ],
      {
        env: {
          PATH: "/usr/sbin:/usr/bin:/sbin:/bin",
          CNI_PATH: dir,
          NETCONFPATH: node.dataDir,
          CAP_ARGS: '{"portMappings":[{"hostPort":8080,"containerPort":80,"protocol":"tcp"}]}',
        },
      },
    );
  expect(await cnitool("add")).toMatchObject({ status: 0 });
  const { status, stderr } = await install("--uninstall", dir);
  expect(status).toBe(1);
  expect(stderr).toMatch(/table inet tscni_portmap holds what belongs to:\n {2}.*uninstall/);
  expect(stderr).toMatch(/table inet tscni_masquerade holds/);
  expect(await cnitool("gc")).toMatchObject({ status: 0 });
  expect(await install("--uninstall", dir)).toMatchObject({ status: 0, stderr: "" });
  expect(existsSync(join(dir, "bridge"))).toBe(false);
  node.close();
});

test("tables that hold nobody are no hindrance, nor are those of others", async () => {
  host.run("nft", table("tscni_portmap", ""));
  host.run("nft", table("theirs", 'elements = { tcp . 80 comment "x" : 10.1.0.2 . 80 }'));
  host.run("nft", table("not_tscni_portmap", "elements = { tcp . 80 : 10.1.0.2 . 80 }"));
  expect(await install("--uninstall", dir)).toMatchObject({ status: 0, stderr: "" });
  expect(existsSync(join(dir, "bridge"))).toBe(false);
  expect(tables().split("\n").filter(Boolean)).toHaveLength(3);
});

test("who can't see the tables is told so", async () => {
  const { status, stderr } = await run(
    [
      "setpriv",
      "--bounding-set=-net_admin",
      "--inh-caps=-all",
      join(root, "scripts/install"),
      "--uninstall",
      dir,
    ],
    { env: { PATH: "/usr/sbin:/usr/bin:/sbin:/bin" } },
  );
  expect(stderr).toMatch(/nftables' tables can't be seen/);
  expect(status).toBe(1);
  expect(existsSync(join(dir, "bridge"))).toBe(true);
});
