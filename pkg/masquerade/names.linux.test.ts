import { parseCidr } from "@tscni/addr";
import { identifier, quoted } from "@tscni/nftables";
import { expect, test } from "vitest";
import { chainOf, iptablesCommentOf, nftCommentOf, ownerHash, subnetChain } from "./names.ts";

const owner = { network: "net", containerId: "c1", ifName: "eth0" };

test("names are those of the Go plugins", () => {
  // printf netc1 | sha512sum; printf net | sha512sum; printf eth0:c1 | sha512sum
  expect(chainOf(owner)).toMatch(/^CNI-[0-9a-f]{24}$/);
  expect(chainOf({ network: "ne", containerId: "tc1" })).toBe(chainOf(owner));
  expect(iptablesCommentOf(owner)).toBe('name: "net" id: "c1"');
  expect(nftCommentOf(owner)).toBe(`${ownerHash(owner)}, net: net, if: eth0, id: c1`);
  expect(ownerHash(owner)).toMatch(/^[0-9a-f]{16}-[0-9a-f]{16}$/);
});

test("another interface is another owner, and the same chain", () => {
  const second = { ...owner, ifName: "eth1" };
  expect(ownerHash(second)).not.toBe(ownerHash(owner));
  expect(chainOf(second)).toBe(chainOf(owner));
});

test("comments hold what nft can write, whatever the names", () => {
  for (const ifName of ['a"b', "a\\b", "a\u0001b", "ünï", "a;b#"])
    for (const containerId of ["c", "c".repeat(300)]) {
      const comment = nftCommentOf({ ...owner, ifName, containerId });
      expect(String(quoted(comment))).toBe(`"${comment}"`);
    }
});

test.each([
  ["10.1.2.3/24", "net4-10.1.2.0-24"],
  ["fd00:22::5/64", "net6-fd00.22..-64"],
  ["::1/0", "net6-..-0"],
])("%s has the chain %s", (text, chain) => {
  expect(subnetChain(parseCidr(text)!)).toBe(chain);
  expect(String(identifier(chain))).toBe(chain);
});
