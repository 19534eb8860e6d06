import { dirname } from "node:path";
import { type Conf, goBin, makeNode, type TestNode } from "@tscni/test-support";
import { afterEach, beforeEach, describe, expect, test } from "vitest";

let node: TestNode;
/** The folder of the Go plugins. */
let go: string;
beforeEach((test) => {
  node = makeNode();
  go = dirname(goBin("firewall", test));
});
afterEach(() => node?.close());

const families: [string, string[]][] = [
  ["IPv4", ["10.204.0.5/24"]],
  ["IPv6", ["fd04::5/64"]],
  ["both families", ["10.204.0.5/24", "fd04::5/64"]],
];
const versions = ["0.4.0", "1.0.0", "1.1.0"];
const cases = ["open", "same-bridge", "isolated"].flatMap((policy) =>
  families.flatMap(([name, addresses], i) => [[policy, name, versions[i]!, addresses] as const]),
);

/** Without the counters and times that iptables-save shows. */
const filter = () =>
  ["iptables-save", "ip6tables-save"].map((name) =>
    node.host
      .run(name, "-t", "filter")
      .split("\n")
      .filter((line) => line.startsWith("-A ") || line.startsWith(":CNI"))
      .map((line) => line.split(" [")[0]),
  );
const ofContainer = () =>
  filter()
    .flat()
    .filter((line) => line!.includes("10.204.0.5") || line!.includes("fd04::5"));

describe.each(cases)(
  "firewall with the Go plugin: %s, %s, cniVersion %s",
  (ingressPolicy, _, cniVersion, addresses) => {
    const conf: Conf = {
      cniVersion,
      name: "fwinterop",
      type: "firewall",
      backend: "iptables",
      ingressPolicy,
      prevResult: {
        cniVersion,
        interfaces: [{ name: "brgo" }, { name: "eth0", sandbox: "/run/netns/c1" }],
        ips: addresses.map((address) => ({
          ...(cniVersion === "0.4.0" ? { version: address.includes(":") ? "6" : "4" } : {}),
          interface: 1,
          address,
        })),
      },
    };
    const call = { netns: "/run/netns/nowhere" };

    test("what Go adds we CHECK and DEL, and nothing of the container is left", async () => {
      await node.ok("ADD", conf, { ...call, bin: go });
      await node.ok("CHECK", conf, call);
      await node.ok("DEL", conf, call);
      expect(ofContainer()).toEqual([]);
    });

    test("what we add Go CHECKs and DELs, and nothing of the container is left", async () => {
      await node.ok("ADD", conf, call);
      await node.ok("CHECK", conf, { ...call, bin: go });
      await node.ok("DEL", conf, { ...call, bin: go });
      expect(ofContainer()).toEqual([]);
      await node.ok("DEL", conf, call);
    });

    test("both leave the same rules, after ADD and after DEL, on top of each other too", async () => {
      await node.ok("ADD", conf, { ...call, bin: go });
      const theirs = filter();
      await node.ok("ADD", conf, call);
      expect(filter()).toEqual(theirs);
      await node.ok("DEL", conf, { ...call, bin: go });
      const theirRest = filter();
      for (const name of ["iptables", "ip6tables"])
        for (const option of ["-F", "-X"]) node.host.run(name, option);

      await node.ok("ADD", conf, call);
      expect(filter()).toEqual(theirs);
      await node.ok("ADD", conf, { ...call, bin: go });
      expect(filter()).toEqual(theirs);
      await node.ok("DEL", conf, call);
      expect(filter()).toEqual(theirRest);
    });
  },
);
