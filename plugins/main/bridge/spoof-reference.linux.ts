import { hasNftChain, listNftRules, type Netlink } from "@tscni/netlink";
import { identifier, listNft, type NftText, nft } from "@tscni/nftables";
import type { Owner } from "@tscni/record";

/*
 * What the Go plugin makes for macspoofchk, pkg/link/spoofcheck.go there: in table nat of the bridge family, which
 * ebtables-nft has, too, a rule of PREROUTING and two chains for each attachment. The network is not in their names.
 */

const table = "nat";
const hook = "PREROUTING";

const idOf = ({ containerId, ifName }: Owner): string => `${containerId}-${ifName}`;
const chainsOf = (owner: Owner): string[] => {
  const chain = `cni-br-iface-${idOf(owner)}`;
  return [chain, `${chain}-mac`];
};
const jumps = (netfilter: Netlink, owner: Owner) =>
  listNftRules(netfilter, "bridge", table, hook).filter(
    ({ comment }) => comment === `macspoofchk-${idOf(owner)}`,
  );

/** Whether an attachment's rules are there. */
export const isThere = (netfilter: Netlink, owner: Owner): boolean =>
  jumps(netfilter, owner).length > 0 &&
  chainsOf(owner).every((chain) => listNftRules(netfilter, "bridge", table, chain).length > 0);

/** What has to be done to delete them, and with the last ones the chain and table that Go made for them. */
export function deletions(netfilter: Netlink, owner: Owner): NftText[] {
  const rules = jumps(netfilter, owner);
  const chains = chainsOf(owner).filter((chain) => hasNftChain(netfilter, "bridge", table, chain));
  if (rules.length === 0 && chains.length === 0) return [];
  const statements = [
    ...rules.map(({ handle }) => nft`delete rule bridge nat PREROUTING handle ${Number(handle)}`),
    ...chains.map((chain) => nft`flush chain bridge nat ${identifier(chain)}`),
    ...chains.map((chain) => nft`delete chain bridge nat ${identifier(chain)}`),
  ];
  return isAlone(rules.length, chains) ? [...statements, nft`delete table bridge nat`] : statements;
}

/** Whether the table holds nothing else: no rule or chain of another container, and nothing of ebtables'. */
function isAlone(rules: number, chains: readonly string[]): boolean {
  const objects = listNft(nft`table bridge nat`) ?? [];
  return objects.every(({ metainfo, table: itself, chain, rule }) => {
    if (metainfo !== undefined || itself !== undefined) return true;
    if (chain !== undefined) return chain.name === hook || chains.includes(chain.name);
    return rule !== undefined && (chains.includes(rule.chain) || (rule.chain === hook && rules-- > 0));
  });
}
