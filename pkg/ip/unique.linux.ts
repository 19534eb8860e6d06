import { ipText } from "@tscni/addr";
import { type Address, IFA_F_DADFAILED, IFA_F_TENTATIVE, listAddresses, type Netlink } from "@tscni/netlink";
import { CniError, ErrorCode } from "@tscni/types";

/**
 * Waits until duplicate address detection (RFC 4862, 5.4) has passed the global IPv6 addresses of a link, which
 * takes one to two seconds. Throws CniError when somebody else has one, or after five seconds.
 */
export function waitUntilUnique(netlink: Netlink, index: number): void {
  const has = (flag: number) => (address: Address) => ((address.flags ?? 0) & flag) !== 0;
  const deadline = Bun.nanoseconds() + 5e9;
  for (;;) {
    const addresses = listAddresses(netlink, { index, family: 6 }).filter(({ scope }) => scope === 0);
    const duplicate = addresses.find(has(IFA_F_DADFAILED));
    if (duplicate)
      throw new CniError(ErrorCode.Internal, `${ipText(duplicate.cidr.ip)} is a duplicate address`);
    const tentative = addresses.find(has(IFA_F_TENTATIVE));
    if (tentative === undefined) return;
    if (Bun.nanoseconds() > deadline)
      throw new CniError(
        ErrorCode.Internal,
        `${ipText(tentative.cidr.ip)} is still tentative after 5 seconds`,
        {
          details: "duplicate address detection did not end",
        },
      );
    Bun.sleepSync(20);
  }
}
