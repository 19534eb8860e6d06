import {
  bringUp,
  containerResult,
  createContainerLink,
  deleteContainerLink,
  mismatch,
  requireKind,
  requirePrevResult,
  verifyInterface,
} from "@tscni/ip";
import { addLease, checkLease, gcLeases, ipamStatus, releaseLease } from "@tscni/ipam";
import { openRoute } from "@tscni/netlink";
import { openNamespace } from "@tscni/ns";
import { attemptAll, definePlugin } from "@tscni/skel";
import { DummyConf } from "./conf.ts";

/** An interface in the container that leads nowhere: a place for addresses. */
export default definePlugin({
  name: "dummy",
  about: "gives a container an interface that leads nowhere, for addresses",
  conf: DummyConf,

  async add(call, undo) {
    using sandbox = openNamespace(call.netns);
    using container = sandbox.enter(openRoute);
    const link = createContainerLink(container, sandbox, container, { kind: "dummy", name: call.ifName });
    undo.defer(() => deleteContainerLink(call));

    const lease = await addLease(call, undo);
    undo.defer(() => deleteContainerLink(call)); // before the lease, as in DEL: no interface keeps a free address
    bringUp(sandbox, container, link, lease);
    return containerResult(call, link, lease);
  },

  async del(call) {
    await attemptAll(
      () => deleteContainerLink(call),
      () => releaseLease(call),
    );
  },

  async check(call) {
    await checkLease(call);
    const result = requirePrevResult(call.prevResult);
    using sandbox = openNamespace(call.netns);
    using container = sandbox.enter(openRoute);
    const link = verifyInterface(container, result, call, "dummy");
    if (!link.up) throw mismatch(`Interface ${link.name} is down`);
  },

  async status(call) {
    using host = openRoute();
    requireKind(host, "dummy");
    await ipamStatus(call);
  },

  /** The link goes with its namespace. */
  async gc(call) {
    await gcLeases(call);
  },
});
