import { cidrText, networkOf, parseCidr } from "@tscni/addr";

/** What flanneld says of its network and of this node's part in it. Addresses are canonical, without host bits. */
export interface SubnetEnv {
  /** Of the whole cluster, IPv4 then IPv6. */
  networks: string[];
  /** This node's, one of each family at most. */
  subnets: string[];
  /** Bytes. */
  mtu: number;
  /** Whether flanneld masquerades, so that nobody else has to. */
  ipMasq: boolean;
}

/** Reads the lines of subnet.env. Throws with a message that begins with the file's name. */
export function parseSubnetEnv(text: string, file: string): SubnetEnv {
  const values = new Map<string, string>();
  for (const line of text.split("\n")) {
    const equals = line.indexOf("=");
    if (equals > 0) values.set(line.slice(0, equals).trim(), line.slice(equals + 1).trim());
  }
  const networks = [...cidrs("FLANNEL_NETWORK"), ...cidrs("FLANNEL_IPV6_NETWORK")];
  const subnets = [...cidrs("FLANNEL_SUBNET").slice(0, 1), ...cidrs("FLANNEL_IPV6_SUBNET").slice(0, 1)];
  const missing = [
    ...(networks.length > 0 ? [] : ["FLANNEL_NETWORK", "FLANNEL_IPV6_NETWORK"]),
    ...(subnets.length > 0 ? [] : ["FLANNEL_SUBNET", "FLANNEL_IPV6_SUBNET"]),
    ...["FLANNEL_MTU", "FLANNEL_IPMASQ"].filter((name) => !values.get(name)),
  ];
  if (missing.length > 0) throw new Error(`${file} is missing ${missing.join(", ")}`);
  const mtu = Number(values.get("FLANNEL_MTU"));
  if (!Number.isInteger(mtu) || mtu < 0 || mtu > 0xffffffff)
    throw new Error(`${file}: FLANNEL_MTU=${values.get("FLANNEL_MTU")} is not a number of bytes`);
  return { networks, subnets, mtu, ipMasq: values.get("FLANNEL_IPMASQ") === "true" };

  /** A list with commas between; each block once. */
  function cidrs(name: string): string[] {
    const found: string[] = [];
    for (const item of (values.get(name) ?? "").split(",")) {
      if (item === "") continue;
      const cidr = parseCidr(item.trim());
      if (cidr === undefined) throw new Error(`${file}: ${name} has "${item}", which is not a CIDR address`);
      const block = cidrText(networkOf(cidr));
      if (!found.includes(block)) found.push(block);
    }
    return found;
  }
}
