import { mismatch, requirePrevResult } from "@tscni/ip";
import { getLink, openRoute, setLink } from "@tscni/netlink";
import { openNamespace } from "@tscni/ns";
import { definePlugin } from "@tscni/skel";
import { WidgetConf } from "./conf.ts";

/** Changes the MTU of the interface that the plugins before it made, and hands their result on. */
export default definePlugin({
  name: "widget",
  about: "sets the MTU of a container's interface",
  conf: WidgetConf,

  add(call) {
    const result = requirePrevResult(call.prevResult);
    using sandbox = openNamespace(call.netns);
    using container = sandbox.enter(openRoute);
    setLink(container, { name: call.ifName }, { mtu: call.conf.mtu });
    const isOurs = (i: { name: string; sandbox?: string }) =>
      i.name === call.ifName && i.sandbox === call.netns;
    return {
      ...result,
      interfaces: result.interfaces.map((i) => (isOurs(i) ? { ...i, mtu: call.conf.mtu } : i)),
    };
  },

  /** Nothing to do: the MTU goes with the interface. */
  del() {},

  check(call) {
    using sandbox = openNamespace(call.netns);
    using container = sandbox.enter(openRoute);
    const link = getLink(container, { name: call.ifName });
    if (link?.mtu !== call.conf.mtu)
      throw mismatch(`interface ${call.ifName} has MTU ${link?.mtu}, not ${call.conf.mtu}`);
  },

  /** Always ready: it needs nothing of the host. */
  status() {},

  /** Nothing to collect: the MTU goes with the interface. */
  gc() {},
});
