import { createHash } from "node:crypto";
import { type Conf, ip, makeNode, type TestNamespace, type TestNode } from "@tscni/test-support";

/** A node with a container "c1" that has a veth to the host, made by our bridge plugin, with addresses. */
export interface Lab {
  node: TestNode;
  container: TestNamespace;
  /** The result of the bridge plugin. */
  prevResult: { interfaces: { name: string }[] };
  /** The host's end of the veth. */
  port: string;
  conf(more?: object): Conf;
  /** What tc says of the host. */
  // biome-ignore lint/suspicious/noExplicitAny: tests look into it as they please
  tc(...args: string[]): any[];
  /** The ifbs on the host, by name. */
  ifbs(): string[];
}

export async function makeLab(cniVersion = "1.1.0"): Promise<Lab> {
  const node = makeNode();
  const container = node.container();
  const bridge = node.bridgeConf({ cniVersion, isGateway: true });
  const prevResult = await node.ok("ADD", bridge, { netns: container });
  const port = prevResult.interfaces[1].name;
  return {
    node,
    container,
    prevResult,
    port,
    conf: (more = {}) => ({ cniVersion, name: "testnet", type: "bandwidth", prevResult, ...more }),
    tc: (...args) => JSON.parse(node.host.run("tc", "-j", ...args) || "[]"),
    ifbs: () =>
      ip(node.host, "link", "show", "type", "ifb")
        .map((link) => link.ifname)
        .sort(),
  };
}

/** The name that the reference gives an ifb. */
export const referenceName = (network: string, containerId: string): string =>
  `bwp${createHash("sha512").update(`${network}${containerId}`).digest("hex").slice(0, 12)}`;

/** A name of ours for the ifb of a second interface. */
export const ownName = (network: string, containerId: string, ifName: string): string =>
  `bwp${createHash("sha512").update(`${network}/${containerId}/${ifName}`).digest("hex").slice(0, 12)}`;
