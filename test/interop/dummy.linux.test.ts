import { describeHandOver } from "./handover.ts";

describeHandOver(
  "dummy",
  [
    ["dual stack", {}, ["10.88.0.0/24", "fd88::/64"], ["1.1.0"]],
    ["IPv4", {}, ["10.88.0.0/24"], ["0.2.0", "0.4.0"]],
  ],
  { needs: "dummy", ownSysctls: ["arp_notify"] },
);
