import { describeHandOver } from "./handover.ts";

describeHandOver("dummy", [["dual stack", {}, ["10.88.0.0/24", "fd88::/64"]]], {
  needs: "dummy",
  ownSysctls: ["arp_notify"],
});
