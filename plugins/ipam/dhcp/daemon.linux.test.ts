import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { distBin, runPlugin } from "@tscni/test-support";
import { afterEach, beforeEach, expect, test } from "vitest";
import { type Lab, makeLab, until } from "./testing.ts";

let lab: Lab;
beforeEach(() => {
  lab = makeLab();
});
afterEach(() => lab.close());

const dhcp = join(distBin, "dhcp");
const socket = () => join(lab.folder, "dhcp.sock");

test("one daemon at a time: for a socket, and for a folder of leases", async () => {
  await lab.daemon();
  const other = lab.start(
    "other",
    dhcp,
    "daemon",
    "-socketpath",
    join(lab.folder, "b"),
    "-leasedir",
    lab.leaseDir,
  );
  await until("it says why", () => other.log().includes("another DHCP daemon keeps its leases"));
  const third = lab.start(
    "third",
    dhcp,
    "daemon",
    "-socketpath",
    socket(),
    "-leasedir",
    join(lab.folder, "l2"),
  );
  await until("it says why", () => third.log().includes("another DHCP daemon listens at"));
  expect(await lab.call("STATUS", {})).toMatchObject({ status: 0 });
});

test("its socket and its files are its owner's alone; pid file and socket go with it", async () => {
  const pidfile = join(lab.folder, "pid");
  const daemon = await lab.daemon("-pidfile", pidfile);
  expect(statSync(socket()).mode & 0o077).toBe(0);
  expect(statSync(lab.leaseDir).mode & 0o777).toBe(0o700);
  expect(existsSync(`/proc/${readFileSync(pidfile, "utf8")}`)).toBe(true);
  expect(await daemon.kill("SIGINT")).toBe(0);
  expect([existsSync(pidfile), existsSync(socket())]).toEqual([false, false]);
});

test("a socket that systemd hands over is used, and stays", async () => {
  // As systemd does it: descriptor 3, and LISTEN_PID is the process that then becomes the daemon.
  const script = `import os, socket, sys
s = socket.socket(socket.AF_UNIX); s.bind(sys.argv[1]); s.listen()
os.dup2(s.fileno(), 3); os.set_inheritable(3, True)
os.environ.update(LISTEN_PID=str(os.getpid()), LISTEN_FDS=sys.argv[2])
os.execv(sys.argv[3], sys.argv[3:])`;
  const by = (count: string) =>
    lab.start(
      "activated",
      "python3",
      "-c",
      script,
      socket(),
      count,
      dhcp,
      "daemon",
      "-leasedir",
      lab.leaseDir,
      "-socketpath",
      "/nowhere/s",
    );
  const daemon = by("1");
  await until("it listens", () => daemon.log().includes("listening"));
  expect(await lab.call("STATUS", {})).toMatchObject({ status: 0 });
  expect(existsSync("/nowhere")).toBe(false);
  expect(await daemon.kill()).toBe(0);
  expect(existsSync(socket())).toBe(true);
  await Bun.spawn(["rm", socket()]).exited;
  const many = by("2");
  await until("it says why", () => many.log().includes("Too many (2) FDs passed through socket activation"));
});

test("a path in the eyes of the host: -hostprefix", async () => {
  const root = join(lab.folder, "root");
  mkdirSync(root);
  const daemon = lab.start(
    "prefixed",
    dhcp,
    "daemon",
    "-hostprefix",
    root,
    "-socketpath",
    "/s",
    "-leasedir",
    "/l",
  );
  await until("it listens", () => daemon.log().includes(`listening at ${root}/s`));
  expect(readdirSync(join(root, "l"))).toEqual(["lock"]);
});

test("records that can't be read are said and left alone", async () => {
  mkdirSync(join(lab.leaseDir, "lan"), { recursive: true, mode: 0o700 });
  writeFileSync(join(lab.leaseDir, "lan/c1:eth0.json"), '{"version":1');
  writeFileSync(join(lab.leaseDir, "lan/c2:eth0.json"), "null");
  const daemon = await lab.daemon();
  expect(daemon.log()).toMatch(/ignoring .*c1:eth0\.json/);
  expect(daemon.log()).toMatch(/ignoring .*c2:eth0\.json: it is no record of a lease/);
  expect(readdirSync(join(lab.leaseDir, "lan"))).toHaveLength(2);
});

test("an ADD that can't work says why", async () => {
  await lab.daemon();
  const ns = lab.container();
  const nowhere = { ...ns, path: join(lab.folder, "none") };
  expect(await lab.call("ADD", { ns: nowhere })).toMatchObject({
    code: 8,
    msg: expect.stringContaining("none"),
  });
  ns.run("ip", "link", "set", "eth0", "name", "other0");
  expect(await lab.call("ADD", { ns })).toMatchObject({
    msg: expect.stringContaining('error looking up "eth0"'),
  });
  expect(await lab.call("ADD", { ns, ipam: { daemonSocketPath: "/nowhere/s" } })).toMatchObject({
    code: 11,
    msg: expect.stringContaining("error dialing DHCP daemon"),
  });
});

test("whoever talks nonsense gets an answer, and keeps nobody from the daemon", async () => {
  await lab.daemon();
  const script = `import socket, sys
def say(data, wait=True):
    s = socket.socket(socket.AF_UNIX); s.connect(sys.argv[1]); s.sendall(data)
    return s.recv(4096).decode() if wait else s
held = [say(b'{"verb":', False) for _ in range(50)]
print(say(b'junk\\n') + say(b'{"verb":"DANCE"}\\n') + say(b'{}\\n'))`;
  const child = Bun.spawn(["python3", "-c", script, socket()], { stdout: "pipe" });
  const text = await new Response(child.stdout).text();
  expect(text).toContain("the request is not JSON");
  expect(text).toContain('does not know the verb \\"DANCE\\"');
  expect(await lab.call("STATUS", {})).toMatchObject({ status: 0 });
});

test("the command line: help, what is wrong, and status without a daemon", async () => {
  const run = (...args: string[]) => runPlugin({ bin: dhcp, args, env: {} });
  expect(await run("--help")).toMatchObject({ status: 0, stdout: expect.stringContaining("dhcp daemon") });
  expect(await run("daemon", "-nosuch")).toMatchObject({
    status: 2,
    stderr: expect.stringContaining("not defined: -nosuch"),
  });
  expect(await run("dance")).toMatchObject({ status: 2 });
  expect(await run("status", "-socketpath", socket())).toMatchObject({
    status: 1,
    stderr: expect.stringContaining("is `dhcp daemon` running?"),
  });
  await lab.daemon();
  expect(await run("status", "-socketpath", socket())).toMatchObject({ status: 0, stdout: "no leases\n" });
});
