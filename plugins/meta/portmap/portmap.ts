import { requirePrevResult } from "@tscni/ip";
import { hasRecord, readRecord } from "@tscni/record";
import { type Call, definePlugin } from "@tscni/skel";
import { CniError, ErrorCode } from "@tscni/types";
import { PortmapConf } from "./conf.ts";
import { forgetOldConnections, forgetOwnConnections } from "./connections.linux.ts";
import { check, collect, publish, repair, verifyUsable, withdraw, withdrawAll } from "./host-ports.linux.ts";
import { removeLeftovers } from "./leftovers.linux.ts";
import { routeLocalnet, verifyLocalnet } from "./localnet.linux.ts";
import { locked } from "./lock.linux.ts";
import { type Target, targetsOf } from "./mapping.ts";
import { kind, type Publication } from "./publication.ts";
import { settle } from "./settle.ts";

type PortmapCall = Call<PortmapConf>;

/** Publishes ports of a container on the addresses of its host. Chained behind the plugin that connects it. */
export default definePlugin({
  name: "portmap",
  about: "publishes ports of containers on the host's addresses",
  conf: PortmapConf,

  add(call, undo) {
    const { prevResult: result } = call;
    if (result === undefined)
      throw new CniError(ErrorCode.InvalidNetworkConfig, "must be called as chained plugin");
    const targets = targetsOf(portsOf(call), result, call.ifName, call.warn);
    const before = readRecord<Publication>(kind, call, call.warn);
    if (targets.length === 0 && before === undefined) return result;
    undo.defer(() => locked(() => withdraw(call)));
    locked(() => {
      if (before !== undefined) withdraw(call, before);
      if (targets.length > 0) publish(call, targets, result);
    });
    openLoopback(call, targets);
    forgetOldConnections(targets, call.warn);
    return result;
  },

  delNext: (call, next) => locked(() => withdrawAll(call, next)),

  del(call) {
    // One that never had ports has nothing to wait for.
    const asked = portsOf(call).length > 0 || hasRecord(kind, call);
    if (asked) locked(() => remove(call));
    else removeLeftovers(call, { published: undefined, asked });
  },

  check(call) {
    const result = requirePrevResult(call.prevResult);
    const targets = targetsOf(portsOf(call), result, call.ifName);
    if (targets.length === 0) return;
    check(call, targets, result);
    if (call.conf.snat) for (const target of targets) if (target.family === 4) verifyLocalnet(target);
  },

  status(call) {
    verifyUsable(call.conf);
  },

  gc(call) {
    const valid = call.validAttachments;
    if (valid !== undefined) locked(() => collect(call, valid));
  },

  repair(call) {
    const result = requirePrevResult(call.prevResult);
    const targets = targetsOf(portsOf(call), result, call.ifName);
    if (targets.length === 0) return;
    locked(() => repair(call, targets, result));
    openLoopback(call, targets);
  },
});

/** Removes what an attachment has published, whoever did it, and the UDP connections that lead there. */
function remove(call: PortmapCall): void {
  const published = readRecord<Publication>(kind, call, call.warn);
  settle([
    () => withdraw(call, published),
    () => removeLeftovers(call, { published, asked: true }),
    () => forgetOwnConnections(published?.targets ?? askedTargets(call), call.warn),
  ]);
}

const portsOf = ({ conf }: PortmapCall) => conf.runtimeConfig?.portMappings ?? [];

/** What ADD may have published, as far as a DEL is told of it. */
const askedTargets = (call: PortmapCall): Target[] =>
  call.prevResult === undefined ? [] : targetsOf(portsOf(call), call.prevResult, call.ifName);

function openLoopback({ conf }: PortmapCall, targets: readonly Target[]): void {
  if (conf.snat) for (const target of targets) if (target.family === 4) routeLocalnet(target);
}
