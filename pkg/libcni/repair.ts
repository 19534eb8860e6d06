import { CniError, ErrorCode, joinErrors, type Result, repairKey, toCniError } from "@tscni/types";
import { type Context, keyOf, withCached } from "./chain.ts";
import { checkStep, resultOf, verifyCheckable } from "./check.ts";
import type { CallOptions, JsonObject, NetworkConfigList, PluginRepair, RuntimeConf } from "./model.ts";
import { encodeFor } from "./result.ts";

/** What repairNetworkList throws after having mended all that it could. */
export class RepairError extends CniError {
  readonly plugins: readonly PluginRepair[];

  constructor(plugins: readonly PluginRepair[]) {
    const left = plugins.filter((plugin) => plugin.left !== undefined);
    const errors = left.map(({ type, left }) => notRepaired(type, left!));
    const { code, msg, details } = joinErrors(errors)!;
    super(code, msg, { details, cause: errors });
    this.plugins = plugins;
  }
}

function notRepaired(type: string, { code, msg, details, cause }: CniError): CniError {
  return new CniError(code, `plugin type=${JSON.stringify(type)} could not be repaired: ${msg}`, {
    details,
    cause,
  });
}

/**
 * Puts back what others took away of a living attachment: rules after `iptables -F`, a table that was flushed. A
 * plugin whose CHECK fails gets a second CHECK that asks it to repair (`repairKey`); a foreign one, which does
 * not know the key, fails that one too and is reported. Nothing is run but CHECK, so that a plugin which cannot
 * repair changes nothing: a second ADD is forbidden by the spec, and a DEL before it would take the container's
 * interface away. docs/decisions/0008
 */
export async function repairList(
  ctx: Context,
  list: NetworkConfigList,
  rt: RuntimeConf,
  { signal }: CallOptions,
): Promise<PluginRepair[]> {
  verifyCheckable(list);
  if (list.disableCheck)
    throw new CniError(
      ErrorCode.InvalidNetworkConfig,
      `network ${JSON.stringify(list.name)} says disableCheck, and repair goes by CHECK`,
    );
  const found = ctx.cache.find(keyOf(list, rt));
  const result = resultOf(list, found);
  const failed = found.attachment?.failed;
  if (result === undefined || failed) throw unknown(list, rt, failed?.verb);
  const prevResult = encodeFor(result, list.cniVersion);
  const whole = withNetns(withCached(rt, found), result);
  const done: PluginRepair[] = [];
  for (const plugin of list.plugins) {
    const check = (more: JsonObject) =>
      failureOf(
        checkStep(ctx, list, { ...plugin, raw: { ...plugin.raw, ...more } }, whole, prevResult, signal),
      );
    const problem = await check({});
    const left = problem && (await check({ [repairKey]: true }));
    done.push({ type: plugin.type, ...(problem ? { problem } : {}), ...(left ? { left } : {}) });
  }
  if (done.some(({ left }) => left !== undefined)) throw new RepairError(done);
  return done;
}

/** Where neither the caller nor the cache tells the namespace (older Go libraries leave it out), the result does. */
function withNetns(rt: RuntimeConf, { interfaces }: Result): RuntimeConf {
  const sandbox = interfaces.find(({ name, sandbox }) => name === rt.ifName && sandbox)?.sandbox;
  return { ...rt, netns: rt.netns || (sandbox ?? "") };
}

function unknown(
  list: NetworkConfigList,
  { containerId, ifName }: RuntimeConf,
  unfinished: string | undefined,
): CniError {
  const what = `interface ${JSON.stringify(ifName)} of ${containerId} on network ${JSON.stringify(list.name)}`;
  return unfinished === undefined
    ? new CniError(ErrorCode.UnknownContainer, `nothing is remembered of ${what}`)
    : new CniError(ErrorCode.UnknownContainer, `the ${unfinished} of ${what} was never finished`, {
        details: "what to do: DEL, then ADD",
      });
}

async function failureOf(run: Promise<void>): Promise<CniError | undefined> {
  try {
    await run;
    return undefined;
  } catch (error) {
    return toCniError(error);
  }
}
