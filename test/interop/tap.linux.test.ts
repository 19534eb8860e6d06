import { describeHandOver } from "./handover.ts";

describeHandOver("tap", [
  ["dual stack", {}, ["10.88.0.0/24", "fd88::/64"]],
  ["options", { multiQueue: true, owner: 1, mtu: 1400, mac: "02:00:00:00:00:01" }, ["10.88.0.0/24"]],
  ["IPv4", {}, ["10.88.0.0/24"]],
  ["layer 2", {}, []],
]);
