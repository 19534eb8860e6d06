import { hasNftChain, listNftRules, type NftFamily, openNetfilter } from "@tscni/netlink";
import { identifier, type NftText, nft, runNft } from "@tscni/nftables";
import type { Target } from "./mapping.ts";

/*
 * What the Go plugin (1.6 and later) makes under nftables: a table for each family with a rule for each port, whose
 * comment is the container's id and nothing else.
 */

const table = "cni_hostport";
const chains = ["hostports", "hostip_hostports", "masquerading"];

/**
 * Removes the Go plugin's rules for a container, in one transaction. Looking for them starts no process. As theirs do,
 * it takes those of all of the container's networks: nothing in a rule tells which it is of.
 */
export function removeGoRules(containerId: string): void {
  using netlink = openNetfilter();
  const statements: NftText[] = [];
  for (const family of ["ip", "ip6"] satisfies NftFamily[]) {
    if (!hasNftChain(netlink, family, table, chains[0]!)) continue;
    for (const chain of chains)
      for (const { handle, comment } of listNftRules(netlink, family, table, chain))
        if (comment === containerId)
          statements.push(
            nft`delete rule ${identifier(family)} ${identifier(table)} ${identifier(chain)} handle ${Number(handle)}`,
          );
  }
  runNft(statements);
}

/**
 * Whether the Go plugin's rules for a container's targets are there, as far as its own CHECK would tell: by their
 * number.
 */
export function hasGoRules(containerId: string, targets: readonly Target[], snat: boolean): boolean {
  using netlink = openNetfilter();
  return targets.every(({ family, mappings }) => {
    const count = (chain: string) =>
      listNftRules(netlink, family === 4 ? "ip" : "ip6", table, chain).filter(
        ({ comment }) => comment === containerId,
      ).length;
    const masquerading = !snat ? 0 : family === 4 ? 2 : 1;
    return (
      count("hostports") + count("hostip_hostports") >= mappings.length &&
      count("masquerading") >= masquerading
    );
  });
}
