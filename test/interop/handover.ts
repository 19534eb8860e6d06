import { dirname } from "node:path";
import {
  goBin,
  type KernelFeature,
  makeNode,
  namesIn,
  needs,
  type TestNamespace,
  type TestNode,
} from "@tscni/test-support";
import { atLeast, specVersions } from "@tscni/types";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { interfaceState, withoutRandom } from "./state.ts";

/**
 * A config's name, its own keys, and the subnets that host-local hands out addresses of. Versions if not all: one of
 * each shape where it takes long.
 */
export type HandOverConfig = [name: string, own: object, subnets: string[], versions?: readonly string[]];

const oneOfEachShape = ["0.2.0", "0.4.0", "1.1.0"];

export interface HandOverOptions {
  /** What the plugin wants of the kernel. */
  needs?: KernelFeature;
  /** Makes what the plugin wants of the host. */
  prepare?: (node: TestNode, container: TestNamespace) => void;
  /** Whether Go can CHECK what it made; true by default. */
  goChecks?: (config: HandOverConfig) => boolean;
  /** Sysctls of the interface that only we set, such as "arp_notify". */
  ownSysctls?: string[];
  /** More of the state that both have to leave. */
  state?: (node: TestNode, container: TestNamespace) => unknown;
}

const versionsOf = ([, , subnets, versions]: HandOverConfig): readonly string[] =>
  versions ?? (subnets.some((subnet) => subnet.includes(":")) ? oneOfEachShape : specVersions);

/**
 * Tests of a plugin that makes one interface in a container, beside Go's: what either adds the other CHECKs and
 * DELs, nothing is left, and both give the same result and interface. In every version; dual stack in three, since Go
 * waits one to two seconds for an IPv6 address.
 */
export function describeHandOver(
  type: string,
  configs: HandOverConfig[],
  options: HandOverOptions = {},
): void {
  let node: TestNode;
  /** The folder of the Go plugins. */
  let go: string;
  let c: TestNamespace;
  beforeEach((test) => {
    if (options.needs) needs(test, options.needs);
    node = makeNode();
    go = dirname(goBin(type, test));
    c = node.container();
    options.prepare?.(node, c);
  });
  afterEach(() => node?.close());

  const cases = configs.flatMap((config) =>
    specVersions
      // Without an address there is no result in the oldest shape.
      .filter((cniVersion) => config[2].length > 0 || atLeast(cniVersion, "0.3.0"))
      .filter((cniVersion) => versionsOf(config).includes(cniVersion))
      .map((cniVersion) => [config[0], cniVersion, config] as const),
  );

  describe.each(cases)(`${type} with the Go plugins: %s, cniVersion %s`, (_, cniVersion, config) => {
    const [, own, subnets] = config;
    const confOf = (prevResult?: object) => node.conf(type, { cniVersion, ...own, prevResult }, subnets);

    test.each([
      ["Go adds, we CHECK and DEL", true],
      ["we add, Go CHECKs and DELs", false],
    ])("%s", async (_, goAdds) => {
      const before = node.state().links;
      const names = namesIn(c);
      const [by, then] = [goAdds, !goAdds].map((isGo) => ({ netns: c, ...(isGo ? { bin: go } : {}) }));
      const conf = confOf(await node.ok("ADD", confOf(), by));
      const checks = goAdds || (options.goChecks?.(config) ?? true);
      if (checks && atLeast(cniVersion, "0.4.0")) await node.ok("CHECK", conf, then);
      await node.ok("DEL", conf, then);
      expect([node.leases(), namesIn(c), node.state().links]).toEqual([[], names, before]);
    });

    test("the same input gives the same result and interface", async () => {
      const state = () => [
        subnets.length > 0 ? interfaceState(c, "eth0", options.ownSysctls) : {},
        options.state?.(node, c),
      ];
      const theirs = await node.ok("ADD", confOf(), { netns: c, bin: go });
      const theirState = state();
      await node.ok("DEL", confOf(), { netns: c, bin: go });
      if (subnets.length > 0) node.resetLeases();
      const ours = await node.ok("ADD", confOf(), { netns: c });
      expect(withoutRandom(ours)).toEqual(withoutRandom(theirs));
      expect(state()).toEqual(theirState);
    });
  });
}
