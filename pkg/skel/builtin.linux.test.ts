import { CniError } from "@tscni/types";
import { expect, test } from "vitest";
import { builtin } from "./index.ts";
import { conf, probe, type Seen } from "./testing.ts";

const delegateCall = (stdin: object, warnings: string[] = []) => ({
  containerId: "c1",
  netns: "/run/netns/c1",
  ifName: "eth0",
  args: "IP=10.1.2.3",
  path: "/opt/cni/bin",
  network: "net",
  cniVersion: "1.1.0",
  stdin: JSON.stringify(stdin),
  warn: (message: string) => void warnings.push(message),
});

test("a plugin in this process is told what its own process would be", async () => {
  const seen: Seen[] = [];
  const call = builtin(() => probe(seen));
  const result = await call("ADD", delegateCall(conf("0.2.0", { mtu: 3 })));
  expect(result).toMatchObject({ ips: [{ address: "10.1.2.3/24" }] });
  expect(seen).toMatchObject([
    {
      verb: "ADD",
      call: {
        containerId: "c1",
        netns: "/run/netns/c1",
        ifName: "eth0",
        args: "IP=10.1.2.3",
        cniVersion: "0.2.0",
      },
    },
  ]);
  expect(seen[0]!.call.conf).toMatchObject({ mtu: 3 });
  expect(await call("DEL", delegateCall(conf("1.1.0")))).toBeUndefined();
});

test("and goes through the same checks", async () => {
  const seen: Seen[] = [];
  const call = builtin(() => probe(seen));
  await expect(call("ADD", delegateCall(conf("9.0.0")))).rejects.toMatchObject({ code: 1 });
  await expect(call("CHECK", delegateCall(conf("0.3.1")))).rejects.toMatchObject({ code: 1 });
  await expect(call("ADD", delegateCall(conf("1.1.0", { mtu: "x" })))).rejects.toMatchObject({ code: 6 });
  expect(seen).toEqual([]);

  const warnings: string[] = [];
  await call("DEL", delegateCall(conf("1.1.0", { mtu: "x" }), warnings));
  expect(warnings).toEqual(['ignoring mtu: "x" is not a number']);
});

test("a failing ADD is taken back before the caller hears of it", async () => {
  const done: string[] = [];
  const call = builtin(() =>
    probe([], {
      add(_, undo) {
        undo.defer(() => void done.push("lease"));
        throw new CniError(11, "busy");
      },
    }),
  );
  await expect(call("ADD", delegateCall(conf("1.1.0")))).rejects.toMatchObject({ code: 11, msg: "busy" });
  expect(done).toEqual(["lease"]);
});
