import { mkdtempSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const programs = ["iptables", "ip6tables"].flatMap((name) =>
  ["", "-save", "-restore"].map((suffix) => [name, suffix] as const),
);

/** The variants of iptables that this machine has. */
export const variants = (["nft", "legacy"] as const).filter((variant) =>
  Bun.which(variant === "nft" ? "iptables-nft" : "iptables-legacy", {
    PATH: "/usr/sbin:/sbin:/usr/bin",
  }),
);

/** A folder in which `iptables` and its kin are of one variant, for the front of PATH. */
export function variantFolder(variant: "nft" | "legacy"): string {
  const folder = mkdtempSync(join(tmpdir(), `tscni-${variant}-`));
  for (const [name, suffix] of programs)
    symlinkSync(`/usr/sbin/xtables-${variant}-multi`, join(folder, `${name}${suffix}`));
  return folder;
}
