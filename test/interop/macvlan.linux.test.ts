import { makeLan } from "@tscni/test-support";
import { describeHandOver } from "./handover.ts";

const every = { mode: "private", mtu: 1400, mac: "02:00:00:00:00:01", bcqueuelen: 99 };
describeHandOver(
  "macvlan",
  [
    ["dual stack", { master: "eth0" }, ["10.88.0.0/24", "fd88::/64"]],
    ["every option", { master: "eth0", ...every }, ["10.88.0.0/24"]],
    ["IPv4", { master: "eth0" }, ["10.88.0.0/24"]],
    ["layer 2", { master: "eth0", mode: "vepa" }, []],
  ],
  { prepare: (node) => void makeLan(node) },
);
