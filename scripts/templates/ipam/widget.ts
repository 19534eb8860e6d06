import { definePlugin } from "@tscni/skel";
import { CniError, ErrorCode, emptyResult } from "@tscni/types";
import { WidgetConf } from "./conf.ts";

/** Hands out the address that the config names. */
export default definePlugin({
  name: "widget",
  about: "hands out the address that the config names",
  conf: WidgetConf,

  add({ conf }) {
    const { address, gateway } = conf.ipam ?? {};
    if (address === undefined)
      throw new CniError(
        ErrorCode.InvalidNetworkConfig,
        "ipam.address: missing; it is the address to hand out",
      );
    return { ...emptyResult(), ips: [{ address, ...(gateway ? { gateway } : {}) }] };
  },

  /** Nothing to release: nothing is remembered. */
  del() {},

  /** Nothing to look at: nothing is remembered. */
  check() {},

  /** Always ready: it needs nothing of the host. */
  status() {},

  /** Nothing to collect: nothing is remembered. */
  gc() {},
});
