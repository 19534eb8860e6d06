import {
  announceAddresses,
  configureInterface,
  createVeth,
  deleteAttachmentLink,
  gcAttachmentLinks,
  interfaceOf,
  ipv6Of,
  prepareInterface,
  requirePrevResult,
  verifyInterface,
  waitUntilUp,
  waitUntilUsable,
} from "@tscni/ip";
import { addLease, checkLease, gcLeases, ipamStatus, releaseLease } from "@tscni/ipam";
import { openRoute, setLink } from "@tscni/netlink";
import { openNamespace } from "@tscni/ns";
import { attemptAll, type Call, definePlugin } from "@tscni/skel";
import { emptyResult } from "@tscni/types";
import { WidgetConf } from "./conf.ts";

/** A veth pair between host and container. Its own idea takes the place of createVeth and deleteAttachmentLink. */
export default definePlugin({
  name: "widget",
  about: "connects a container to the host by a veth pair",
  conf: WidgetConf,

  async add(call, undo) {
    using sandbox = openNamespace(call.netns);
    using host = openRoute();
    using container = sandbox.enter(openRoute);
    const veth = createVeth(host, sandbox, container, call, { mtu: call.conf.mtu });
    undo.defer(() => removeLink(call));

    const lease = await addLease(call, undo);
    const { index } = veth.container;
    if (lease) {
      undo.defer(() => removeLink(call)); // before the lease, as in DEL: no interface keeps a free address
      sandbox.enter(() => prepareInterface(call.ifName, lease));
      configureInterface(container, index, lease);
    } else {
      setLink(container, { index }, { up: true });
    }
    waitUntilUp(host, veth.host.index);
    if (lease) {
      waitUntilUsable(container, index, ipv6Of(lease));
      announceAddresses(sandbox, container, veth.container, lease);
    }
    const { ips, ...rest } = lease ?? emptyResult();
    return {
      ...rest,
      interfaces: [interfaceOf(veth.host), { ...interfaceOf(veth.container), sandbox: call.netns }],
      ips: ips.map((ip) => ({ ...ip, interface: 1 })),
    };
  },

  async del(call) {
    await attemptAll(
      () => removeLink(call),
      () => releaseLease(call),
    );
  },

  async check(call) {
    await checkLease(call);
    const result = requirePrevResult(call.prevResult);
    using sandbox = openNamespace(call.netns);
    using container = sandbox.enter(openRoute);
    verifyInterface(container, result, call, "veth");
  },

  async status(call) {
    await ipamStatus(call);
  },

  async gc(call) {
    if (call.validAttachments === undefined) return;
    using host = openRoute();
    await attemptAll(
      () => gcAttachmentLinks(host, call, () => false),
      () => gcLeases(call),
    );
  },
});

/** With a socket of its own: an ADD is taken back when those that it opened are closed. */
function removeLink(call: Call<WidgetConf>): void {
  using host = openRoute();
  deleteAttachmentLink(host, call, call.netns);
}
