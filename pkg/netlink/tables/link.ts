import { bytes, cString, u8, u16, u32 } from "../codecs.ts";
import { format } from "../message.ts";
import { Attributes, chosenBy, each, Struct } from "../table.ts";
import { kinds, slaveKinds } from "./kinds.ts";
import { flatLink, ifinfomsg } from "./link-flat.ts";

/** IFLA_LINKINFO */
const linkInfo = new Attributes(() => ({
  kind: [1, cString],
  data: [2, chosenBy("kind", kinds)],
  slaveKind: [4, cString],
  slaveData: [5, chosenBy("slaveKind", slaveKinds)],
}));

/** IFLA_AF_SPEC by address family. addrGenMode: IN6_ADDR_GEN_MODE_* (0 EUI-64, 1 none, 2 stable privacy). */
const linkFamilies = new Attributes(() => ({
  inet6: [10, new Attributes(() => ({ flags: [1, u32], token: [7, bytes], addrGenMode: [8, u8] }))],
}));

/** RTM_{NEW,DEL,GET,SET}LINK, linux/if_link.h. */
export const linkFormat = format(
  "LINK",
  16,
  ifinfomsg,
  new Attributes(() => ({ ...flatLink.entries, linkInfo: [18, linkInfo], families: [26, linkFamilies] })),
);

/** struct bridge_vlan_info, linux/if_bridge.h. `flags`: BRIDGE_VLAN_INFO_*. */
const vlanInfo = new Struct({ flags: u16, vid: u16 });

/**
 * The same messages with family AF_BRIDGE, where IFLA_AF_SPEC holds IFLA_BRIDGE_* directly, linux/if_bridge.h.
 * `flags`: BRIDGE_FLAGS_MASTER 1, BRIDGE_FLAGS_SELF 2.
 */
export const bridgeLinkFormat = format(
  "LINK",
  16,
  ifinfomsg,
  new Attributes(() => ({
    name: [3, cString],
    master: [10, u32],
    bridge: [26, new Attributes(() => ({ flags: [0, u16], mode: [1, u16], vlans: [2, each(vlanInfo)] }))],
    extMask: [29, u32],
  })),
);

/** RTM_{NEW,DEL}LINKPROP: alternative names. */
export const linkPropFormat = format("LINKPROP", 108, ifinfomsg, linkFormat.attributes);
