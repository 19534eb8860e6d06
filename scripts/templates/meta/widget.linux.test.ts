import { ip, makeNamespace, runInProcess } from "@tscni/test-support";
import { expect, test } from "vitest";
import widget from "./widget.ts";

test("ADD sets the MTU and tells it, CHECK compares it", async () => {
  const ns = makeNamespace();
  ns.run("ip", "link", "add", "eth0", "type", "veth", "peer", "name", "other");
  const call = (command: string, more: object = {}) => {
    const prevResult = { cniVersion: "1.1.0", interfaces: [{ name: "eth0", sandbox: ns.path, mtu: 1500 }] };
    const conf = { cniVersion: "1.1.0", name: "widget-net", type: "widget", mtu: 1400, prevResult, ...more };
    const env = {
      CNI_COMMAND: command,
      CNI_CONTAINERID: "c1",
      CNI_NETNS: ns.path,
      CNI_IFNAME: "eth0",
    };
    return runInProcess(widget, { env, stdin: conf });
  };
  expect((await call("ADD")).json.interfaces).toEqual([{ name: "eth0", sandbox: ns.path, mtu: 1400 }]);
  expect(ip(ns, "link", "show", "dev", "eth0")).toMatchObject([{ mtu: 1400 }]);
  expect(await call("CHECK")).toMatchObject({ status: 0 });
  expect((await call("CHECK", { mtu: 1300 })).json.msg).toBe("interface eth0 has MTU 1400, not 1300");
  expect((await call("ADD", { mtu: "big" })).json.msg).toContain("mtu");
  for (const command of ["DEL", "STATUS", "GC"])
    expect(await call(command), command).toMatchObject({ status: 0 });
  ns.close();
});
