import { runInProcess } from "@tscni/test-support";
import { expect, test } from "vitest";
import widget from "./widget.ts";

const conf = (ipam: object) => ({ cniVersion: "1.1.0", name: "widget-net", type: "bridge", ipam });

const call = (command: string, stdin: object) =>
  runInProcess(widget, {
    env: {
      CNI_COMMAND: command,
      CNI_CONTAINERID: "c1",
      CNI_NETNS: "/run/netns/none",
      CNI_IFNAME: "eth0",
    },
    stdin,
  });

test("ADD hands out the address, and the other verbs succeed", async () => {
  const good = conf({ type: "widget", address: "10.97.0.7/24", gateway: "10.97.0.1" });
  expect((await call("ADD", good)).json).toEqual({
    cniVersion: "1.1.0",
    ips: [{ address: "10.97.0.7/24", gateway: "10.97.0.1" }],
  });
  for (const command of ["CHECK", "DEL", "STATUS", "GC"])
    expect(await call(command, good), command).toMatchObject({ status: 0, stdout: "" });
});

test.each([{ address: "10.97.0.300/24" }, {}])(
  "%j fails ADD and names the key, but not DEL",
  async (ipam) => {
    const bad = conf({ type: "widget", ...ipam });
    const { status, json } = await call("ADD", bad);
    expect([status, json.msg]).toEqual([1, expect.stringContaining("ipam.address")]);
    expect(await call("DEL", bad)).toMatchObject({ status: 0, stdout: "" });
  },
);
