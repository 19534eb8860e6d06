import { cString, i32, u8, u16, u16be, u32, u32be, u64 } from "../codecs.ts";
import { format } from "../message.ts";
import { Attributes, chosenBy, numbered, pad, Struct } from "../table.ts";

/** struct tcmsg, linux/rtnetlink.h. `info` of a filter: its priority in the high half, its protocol in the low. */
const tcmsg = new Struct({
  family: u8,
  pad1: pad(1),
  pad2: pad(2),
  index: i32,
  handle: u32,
  parent: u32,
  info: u32,
});

/** struct tc_ratespec, linux/pkt_sched.h. `rate` in bytes a second. */
const rateSpec = new Struct({
  cellLog: u8,
  linkLayer: u8,
  overhead: u16,
  cellAlign: u16,
  mpu: u16,
  rate: u32,
});

/** struct tc_tbf_qopt. `limit` in bytes, `buffer` and `mtu` in ticks of 64 ns. */
const tbfParms = new Struct({ rate: rateSpec, peakRate: rateSpec, limit: u32, buffer: u32, mtu: u32 });

/** TCA_OPTIONS by TCA_KIND of a queueing discipline, linux/pkt_sched.h. */
const qdiscKinds = {
  /** TCA_TBF_*: the 64-bit rates count where those of the struct are 0xffffffff. */
  tbf: new Attributes(() => ({
    parms: [1, tbfParms],
    rate64: [4, u64],
    peakRate64: [5, u64],
    burst: [6, u32],
    peakBurst: [7, u32],
  })),
} as const;

/** RTM_{NEW,DEL,GET}QDISC. */
export const qdiscFormat = format(
  "QDISC",
  36,
  tcmsg,
  new Attributes(() => ({ kind: [1, cString], options: [2, chosenBy("kind", qdiscKinds)] })),
);

/** struct tc_mirred, linux/tc_act/tc_mirred.h. `action`: TC_ACT_*; `direction`: TCA_EGRESS_REDIR and such. */
const mirred = new Struct({
  index: u32,
  capabilities: u32,
  action: i32,
  references: i32,
  bindings: i32,
  direction: i32,
  ifIndex: u32,
});

/** TCA_ACT_OPTIONS by TCA_ACT_KIND, linux/pkt_cls.h. */
const actionKinds = { mirred: new Attributes(() => ({ parms: [2, mirred] })) } as const;

const action = new Attributes(() => ({ kind: [1, cString], options: [2, chosenBy("kind", actionKinds)] }));

/** struct tc_u32_sel with its first key (struct tc_u32_key), linux/pkt_cls.h. */
const selector = new Struct({
  flags: u8,
  offsetShift: u8,
  keys: u8,
  pad: pad(1),
  offsetMask: u16be,
  offset: u16,
  offsetOffset: u16,
  hashOffset: u16,
  hashMask: u32be,
  keyMask: u32be,
  keyValue: u32be,
  keyOffset: i32,
  keyOffsetMask: i32,
});

/** TCA_OPTIONS by TCA_KIND of a filter. */
const filterKinds = {
  u32: new Attributes(() => ({
    classId: [1, u32],
    selector: [5, selector],
    actions: [7, numbered(action)],
  })),
} as const;

/** RTM_{NEW,DEL,GET}TFILTER. */
export const filterFormat = format(
  "TFILTER",
  44,
  tcmsg,
  new Attributes(() => ({ kind: [1, cString], options: [2, chosenBy("kind", filterKinds)] })),
);

/** The tables of what depends on a kind, for the tests. */
export const trafficKinds = {
  qdisc: qdiscKinds,
  action: actionKinds,
  filter: filterKinds,
  actionTable: action,
};
