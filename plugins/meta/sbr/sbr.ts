import { cidrText, defaultCidr, ipEquals, ipText } from "@tscni/addr";
import { containerLink, mismatch, requirePrevResult } from "@tscni/ip";
import { listRoutes, listRules, type Netlink, openRoute, type Rule } from "@tscni/netlink";
import { openNamespace, openNamespaceIfPresent } from "@tscni/ns";
import { removeRecord, staleRecords } from "@tscni/record";
import { attemptAll, definePlugin } from "@tscni/skel";
import { CniError, ErrorCode, messageOf } from "@tscni/types";
import { apply, nothingDone, takeBack } from "./apply.linux.ts";
import { SbrConf } from "./conf.ts";
import { planOfMove, planOfTable } from "./plan.ts";
import { rulesFrom } from "./rules.linux.ts";
import { type Source, sourcesOf } from "./sources.ts";
import { collect, lock, presentIn, teardown } from "./teardown.linux.ts";
import { kind, type Trace, writeTrace } from "./trace.linux.ts";

/** Source based routing: packets leave a container by the interface whose address they have. */
export default definePlugin({
  name: "sbr",
  about: "routes packets by their source address",
  conf: SbrConf,

  add(call, undo) {
    const { conf, ifName, netns } = call;
    const result = requirePrevResult(call.prevResult);
    const sources = sourcesOf(result, ifName, conf.gateways);
    using sandbox = openNamespace(netns);
    using container = sandbox.enter(openRoute);
    lock(sandbox);
    const { index } = containerLink(container, ifName);
    const plan =
      conf.table === undefined
        ? planOfMove(sources, index, presentIn(container), conf.addSourceHints)
        : planOfTable(sources, conf.table);
    undo.defer(writeTrace(call, sandbox, plan.rules));
    const done = nothingDone();
    undo.defer(() => takeBack(netns, done));
    apply(container, plan, done);
    return result;
  },

  /** Routes go with their interface, rules don't: those of the ADD are deleted, and those of the interface's addresses. */
  async del(call) {
    using sandbox = openNamespaceIfPresent(call.netns);
    using container = sandbox?.enter(openRoute);
    const work = sandbox && container ? teardown(call, sandbox, container) : [];
    await attemptAll(...work, () => void removeRecord(kind, call));
  },

  check(call) {
    const result = requirePrevResult(call.prevResult);
    const sources = sourcesOf(result, call.ifName, call.conf.gateways);
    using sandbox = openNamespace(call.netns);
    using container = sandbox.enter(openRoute);
    const { index } = containerLink(container, call.ifName);
    const rules = listRules(container);
    for (const source of sources) verifySource(container, index, rules, source, call.conf.table);
  },

  /** Ready when the kernel has routing by rules. */
  status() {
    using host = openRoute();
    try {
      listRules(host);
    } catch (error) {
      throw new CniError(ErrorCode.PluginNotAvailable, "this kernel has no routing rules", {
        details: messageOf(error),
      });
    }
  },

  /** Of containers that are still there: rules and routes go with their namespace. */
  async gc({ network, validAttachments, warn }) {
    if (validAttachments === undefined) return;
    const stale = staleRecords<Trace>(kind, network, validAttachments, warn);
    await attemptAll(...stale.map((record) => () => collect(record, warn)));
  },
});

/** CHECK of one address. */
function verifySource(
  container: Netlink,
  index: number,
  rules: readonly Rule[],
  { cidr, gateway }: Source,
  ofTable: number | undefined,
): void {
  const from = ipText(cidr.ip);
  const [rule] = rulesFrom(rules, [cidr.ip], ofTable);
  if (rule?.table === undefined)
    throw mismatch(
      `no rule sends packets from ${from} to ${ofTable === undefined ? "a table" : `table ${ofTable}`}`,
    );
  if (ofTable !== undefined || gateway === undefined) return;
  const whole = cidrText(defaultCidr(gateway.family));
  const routes = listRoutes(container, { family: gateway.family, table: rule.table, index });
  if (!routes.some((r) => cidrText(r.destination) === whole && r.gateway && ipEquals(r.gateway, gateway)))
    throw mismatch(`table ${rule.table} of ${from} has no default route via ${ipText(gateway)}`);
}
