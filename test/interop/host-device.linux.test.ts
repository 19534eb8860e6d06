import { makeLan } from "@tscni/test-support";
import { describeHandOver } from "./handover.ts";

describeHandOver(
  "host-device",
  [
    ["dual stack", { device: "eth0" }, ["10.88.0.0/24", "fd88::/64"]],
    ["IPv4", { device: "eth0" }, ["10.88.0.0/24"]],
    ["layer 2", { device: "eth0" }, []],
  ],
  // Either leaves it down on the host, so it is down before.
  {
    ownSysctls: ["arp_notify"],
    prepare(node) {
      makeLan(node);
      node.host.run("ip", "link", "set", "eth0", "down");
    },
  },
);
