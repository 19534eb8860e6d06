import { bool, cString, ip, u8, u16, u32 } from "../codecs.ts";
import { format } from "../message.ts";
import { Attributes, pad, Struct } from "../table.ts";

const range32 = new Struct({ start: u32, end: u32 });
const range16 = new Struct({ start: u16, end: u16 });

/** RTM_{NEW,DEL,GET}RULE, linux/fib_rules.h. The header's table has 8 bits, the attribute 32. */
export const ruleFormat = format(
  "RULE",
  32,
  new Struct({
    family: u8,
    destinationPrefix: u8,
    sourcePrefix: u8,
    tos: u8,
    table: u8,
    pad: pad(2),
    action: u8,
    flags: u32,
  }),
  new Attributes(() => ({
    destination: [1, ip],
    source: [2, ip],
    inName: [3, cString],
    goto: [4, u32],
    priority: [6, u32],
    mark: [10, u32],
    flow: [11, u32],
    suppressGroup: [13, u32],
    suppressPrefix: [14, u32],
    table: [15, u32],
    markMask: [16, u32],
    outName: [17, cString],
    l3mdev: [19, bool],
    uidRange: [20, range32],
    protocol: [21, u8],
    ipProtocol: [22, u8],
    sourcePorts: [23, range16],
    destinationPorts: [24, range16],
  })),
);
