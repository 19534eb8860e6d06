import { makeLan } from "@tscni/test-support";
import { describeHandOver } from "./handover.ts";

describeHandOver(
  "ipvlan",
  [
    ["dual stack", { master: "eth0" }, ["10.88.0.0/24", "fd88::/64"], ["1.1.0"]],
    ["every option", { master: "eth0", mode: "l3", mtu: 1400 }, ["10.88.0.0/24"], ["0.2.0", "0.4.0"]],
  ],
  { needs: "ipvlan", prepare: (node) => void makeLan(node) },
);
