import { makeLan } from "@tscni/test-support";
import { describeHandOver } from "./handover.ts";

describeHandOver(
  "ipvlan",
  [
    ["dual stack", { master: "eth0" }, ["10.88.0.0/24", "fd88::/64"]],
    ["every option", { master: "eth0", mode: "l3", mtu: 1400 }, ["10.88.0.0/24"]],
  ],
  { needs: "ipvlan", prepare: (node) => void makeLan(node) },
);
