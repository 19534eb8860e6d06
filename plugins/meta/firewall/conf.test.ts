import { decodeConf } from "@tscni/conf";
import { describe, expect, test } from "vitest";
import { backendOf, FirewallConf } from "./conf.ts";
import { wantedOf } from "./protection.ts";

const parse = (own: object) => decodeConf(FirewallConf, { name: "n", type: "firewall", ...own });

test("nothing given: the reference's defaults", () => {
  const conf = parse({ BACKEND: "", ingressPolicy: null });
  expect(backendOf(conf)).toBeUndefined();
  const ips = [{ address: "10.1.0.5/24" }, { address: "FD00::5/64" }, { address: "10.1.0.5/16" }];
  expect(wantedOf(conf, { interfaces: [], ips, routes: [], dns: {} })).toEqual({
    addresses: ["10.1.0.5", "fd00::5"],
    adminChain: "CNI-ADMIN",
    zone: "trusted",
  });
});

describe("refused, naming key and value", () => {
  test.each<[object, number, string]>([
    [
      { backend: "ebpf" },
      7,
      'backend: unrecognized backend "ebpf": it can be iptables, nftables or firewalld',
    ],
    [{ backend: 1 }, 6, "backend: 1 is not a string"],
    [
      { ingressPolicy: "closed" },
      7,
      'ingressPolicy: unknown ingress policy: "closed": it can be open, same-bridge or isolated',
    ],
    ...[
      "A B",
      "-A",
      "!A",
      "x".repeat(29),
      'a"b',
      "a\nCOMMIT\n*nat",
      "a#b",
      "ACCEPT",
      "FORWARD",
      "CNI-FORWARD",
      "ä",
      "a\\b",
    ].map((name): [object, number, string] => [
      { iptablesAdminChainName: name },
      7,
      `iptablesAdminChainName: ${JSON.stringify(name)} is not a name that a chain of the administrator's can have in iptables`,
    ]),
  ])("%j", (own, code, msg) => {
    expect(() => parse(own)).toThrow(expect.objectContaining({ code, msg }));
  });

  test.each(["", "br+", "-br", "!br", "a b", "a/b", "x".repeat(16)])("a policy for the bridge %j", (name) => {
    const result = { interfaces: [{ name }], ips: [], routes: [], dns: {} };
    expect(() => wantedOf(parse({ ingressPolicy: "isolated" }), result)).toThrow(
      expect.objectContaining({ code: 7 }),
    );
  });

  test("a policy without any interface, as the reference words it", () => {
    const result = { interfaces: [], ips: [], routes: [], dns: {} };
    expect(() => wantedOf(parse({ ingressPolicy: "same-bridge" }), result)).toThrow(
      'interface needs to be set for ingress policy "same-bridge", make sure to chain "firewall" plugin with "bridge"',
    );
  });
});
