import { ipText, parseCidr } from "@tscni/addr";
import type { Family } from "@tscni/iptables";
import { CniError, ErrorCode, interfaceNameProblem, type Result } from "@tscni/types";
import type { BackendName, FirewallConf } from "./conf.ts";

/** A policy beyond "open", which belongs to a bridge and to all containers on it. */
export interface Policy {
  name: "same-bridge" | "isolated";
  bridge: string;
}

/** What the firewall is to do for one attachment. As {@link Protection}, what it was made to do, and where. */
export interface Wanted {
  /** Without prefix length. */
  addresses: string[];
  /** Where administrators of iptables have their own rules. */
  adminChain: string;
  /** Of firewalld. */
  zone: string;
  policy?: Policy;
}

/** What is recorded of an attachment before anything is done for it. */
export interface Protection extends Wanted {
  backend: BackendName;
  /** What keeps the policy: the backend, or another one where that is firewalld. */
  policyBackend?: "iptables" | "nftables";
}

/** What a config asks for a result's addresses: all of them, the host's too, as the reference has it. */
export function wantedOf(conf: FirewallConf, result: Result): Wanted {
  const policy = policyOf(conf, result);
  return {
    addresses: addressesOf(result),
    adminChain: conf.iptablesAdminChainName || "CNI-ADMIN",
    zone: conf.firewalldZone || "trusted",
    ...(policy ? { policy } : {}),
  };
}

function addressesOf(result: Result): string[] {
  const found = new Set<string>();
  for (const { address } of result.ips) {
    const cidr = parseCidr(address);
    if (cidr !== undefined) found.add(ipText(cidr.ip));
  }
  return [...found];
}

/** The bridge is the first interface of the result, as the reference has it. */
function policyOf({ ingressPolicy }: FirewallConf, { interfaces }: Result): Policy | undefined {
  if (ingressPolicy !== "same-bridge" && ingressPolicy !== "isolated") return undefined;
  const bridge = interfaces[0]?.name;
  if (bridge === undefined)
    throw wrong(
      `interface needs to be set for ingress policy "${ingressPolicy}", make sure to chain "firewall" plugin with "bridge"`,
    );
  if (bridge === "") throw wrong("got empty bridge name");
  // A "+" at the end would match every name that begins so; "-" and "!" begin something else.
  if (interfaceNameProblem(bridge) || bridge.endsWith("+") || "-!".includes(bridge[0]!))
    throw wrong(`ingressPolicy: rules can't name the interface ${JSON.stringify(bridge)}`);
  return { name: ingressPolicy, bridge };
}

const wrong = (msg: string): CniError => new CniError(ErrorCode.InvalidNetworkConfig, msg);

const families = [4, 6] as const;

export const familyOf = (address: string): Family => (address.includes(":") ? 6 : 4);

export const ofFamily = (addresses: readonly string[], family: Family): string[] =>
  addresses.filter((address) => familyOf(address) === family);

/** The families of some addresses: nobody needs ip6tables for IPv4 alone, or iptables for IPv6. */
export const familiesOf = (addresses: readonly string[]): Family[] =>
  families.filter((family) => addresses.some((address) => familyOf(address) === family));

/** An address as firewalld and iptables-save write it: 10.1.0.5/32. */
export const withPrefix = (address: string): string => `${address}/${familyOf(address) === 4 ? 32 : 128}`;
