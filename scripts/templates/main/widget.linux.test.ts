import { ip, makeNamespace, runInProcess, temporaryFolder } from "@tscni/test-support";
import { afterEach, beforeEach, expect, test } from "vitest";
import widget from "./widget.ts";

let ns: ReturnType<typeof makeNamespace>;
let data: ReturnType<typeof temporaryFolder>;
beforeEach(() => {
  ns = makeNamespace();
  data = temporaryFolder();
});
afterEach(() => {
  ns.close();
  data.remove();
});

const conf = (more: object = {}) => ({ cniVersion: "1.1.0", name: "widget-net", type: "widget", ...more });

function call(command: string, stdin: object, containerId = "widget-c1") {
  const env = {
    CNI_COMMAND: command,
    CNI_CONTAINERID: containerId,
    CNI_NETNS: ns.path,
    CNI_IFNAME: "eth0",
  };
  return runInProcess(widget, { env, stdin });
}

/** The network's links on the host, where other tests make theirs at the same time. */
const hostLinks = (): string[] =>
  ip(undefined, "link", "show", "type", "veth")
    .filter((link) => link.ifalias?.startsWith("tscni widget-net "))
    .map((link) => link.ifname);

test("ADD, CHECK and DEL with addresses; nothing stays", async () => {
  const subnet = "10.97.0.0/24";
  const withIpam = conf({
    mtu: 1400,
    ipam: { type: "host-local", dataDir: data.path, ranges: [[{ subnet }]] },
  });
  const added = await call("ADD", withIpam);
  expect(added).toMatchObject({ status: 0, stderr: "" });
  expect(added.json.ips).toEqual([{ interface: 1, address: "10.97.0.2/24", gateway: "10.97.0.1" }]);
  const [eth0] = ip(ns, "addr", "show", "dev", "eth0");
  expect(eth0).toMatchObject({ mtu: 1400, operstate: "UP" });
  expect(eth0.addr_info).toMatchObject([{ local: "10.97.0.2", prefixlen: 24 }, { family: "inet6" }]);

  const later = { ...withIpam, prevResult: added.json };
  expect(hostLinks()).toHaveLength(1);
  expect(await call("CHECK", later)).toMatchObject({ status: 0, stdout: "" });
  ns.run("ip", "addr", "del", "10.97.0.2/24", "dev", "eth0");
  expect((await call("CHECK", later)).json).toMatchObject({
    msg: "interface eth0 lacks the address 10.97.0.2/24",
  });
  expect(await call("DEL", later)).toMatchObject({ status: 0, stdout: "" });
  expect(await call("DEL", later), "again").toMatchObject({ status: 0, stdout: "" });
  expect(hostLinks()).toEqual([]);
  expect(ip(ns, "link").map((link) => link.ifname)).toEqual(["lo"]);
});

test("an ADD that fails is taken back", async () => {
  const { status, json } = await call("ADD", conf({ ipam: { type: "no-such-ipam" } }));
  expect([status, json.msg]).toEqual([1, expect.stringContaining("no-such-ipam")]);
  expect(hostLinks()).toEqual([]);
});

test("GC removes what is not valid any more", async () => {
  await call("ADD", conf());
  const one = [{ containerID: "widget-c1", ifname: "eth0" }];
  expect(hostLinks()).toHaveLength(1);
  await call("GC", conf({ "cni.dev/valid-attachments": one }));
  expect(hostLinks()).toHaveLength(1);
  await call("GC", conf({ "cni.dev/valid-attachments": [] }));
  expect(hostLinks()).toEqual([]);
});

test("STATUS", async () => {
  expect(await call("STATUS", conf())).toMatchObject({ status: 0, stdout: "" });
});
