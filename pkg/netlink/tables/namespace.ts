import { i32, u8, u32 } from "../codecs.ts";
import { format } from "../message.ts";
import { Attributes, Struct } from "../table.ts";

/** RTM_{NEW,DEL,GET}NSID, linux/net_namespace.h. */
export const namespaceFormat = format(
  "NSID",
  88,
  new Struct({ family: u8 }),
  new Attributes(() => ({
    id: [1, i32],
    pid: [2, u32],
    fd: [3, u32],
    targetId: [4, i32],
    currentId: [5, i32],
  })),
);
