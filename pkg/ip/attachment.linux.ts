/** What a link on the host belongs to: one interface of one container on one network. */
export interface Attachment {
  network: string;
  containerId: string;
  ifName: string;
}

const hexHash = (text: string): string => new Bun.CryptoHasher("sha256").update(text).digest("hex");

/**
 * The name of an attachment's host interface: "veth" and 11 hexadecimal digits out of the attachment, 15
 * characters in all. Known before the link is made, so that whoever comes after a kill can find it.
 */
export function hostInterfaceName({ network, containerId, ifName }: Attachment): string {
  return `veth${hexHash(`${network}/${containerId}/${ifName}`).slice(0, 11)}`;
}

/** Names as {@link hostInterfaceName} makes them; the Go plugins' random ones have 8 digits. */
export const isHostInterfaceName = (name: string): boolean => /^veth[0-9a-f]{11}$/.test(name);

/** The text that an attachment's host interface carries as IFLA_IFALIAS: `tscni NETWORK CONTAINER IFNAME`. */
export function aliasOf({ network, containerId, ifName }: Attachment): string {
  return `tscni ${aliasPart(network)} ${aliasPart(containerId)} ${aliasPart(ifName)}`;
}

/** Whether an alias names this attachment's network. */
export const aliasHasNetwork = (alias: string, network: string): boolean =>
  alias.startsWith(`tscni ${aliasPart(network)} `);

/** An alias holds 255 bytes, names may be longer: such a one is told by "#" (which no name has) and its hash. */
const aliasPart = (name: string): string => (name.length <= 80 ? name : `#${hexHash(name).slice(0, 32)}`);
