import { makeLan } from "@tscni/test-support";
import { describeHandOver } from "./handover.ts";

describeHandOver(
  "vlan",
  [
    ["dual stack", { master: "eth0", vlanId: 5 }, ["10.88.0.0/24", "fd88::/64"], ["1.1.0"]],
    ["every option", { master: "eth0", vlanId: 4094, mtu: 1400 }, ["10.88.0.0/24"], ["0.2.0", "0.4.0"]],
  ],
  { needs: "vlan", ownSysctls: ["arp_notify"], prepare: (node) => void makeLan(node) },
);
