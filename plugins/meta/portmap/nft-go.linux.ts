import { hasNftChain, listNftRules, type Netlink, type NftFamily, openNetfilter } from "@tscni/netlink";
import { identifier, listNft, type NftObject, type NftText, nft, runNft } from "@tscni/nftables";
import { keyOf, type Mapping, type Target } from "./mapping.ts";

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

/**
 * The container whose port the Go plugin's rules lead elsewhere than to this one's; undefined without one. In most calls
 * there are no such rules, which a look by netlink tells; where there are, they are listed.
 */
export function goOwnerOf(
  netlink: Netlink,
  containerId: string,
  family: 4 | 6,
  mappings: readonly Mapping[],
) {
  const kernelFamily = family === 4 ? "ip" : "ip6";
  const others = listNftRules(netlink, kernelFamily, table, "hostports").filter(
    ({ comment }) => comment !== containerId,
  );
  if (others.length === 0) return undefined;
  const listing = listNft(nft`chain ${identifier(kernelFamily)} ${identifier(table)} hostports`) ?? [];
  for (const { rule } of listing) {
    if (rule === undefined || rule.comment === containerId) continue;
    const key = portOf(rule.expr);
    const mapping = mappings.find((each) => keyOf(each) === key);
    if (mapping !== undefined) return { mapping, containerId: String(rule.comment) };
  }
  return undefined;
}

/** What a rule of theirs matches, as {@link keyOf} has it. `nft -n` shows numbers. */
function portOf(expressions: readonly NftObject[]): string {
  let [protocol, address, number] = ["", "*", ""];
  for (const { match } of expressions) {
    const payload = match?.left?.payload;
    if (payload?.field === "daddr") address = String(match.right);
    if (payload?.field === "dport") [protocol, number] = [String(payload.protocol), String(match.right)];
  }
  return `${protocol} ${address} ${number}`;
}
