import { atLeast, CniError, joinErrors, messageOf, toCniError } from "@tscni/types";
import { type Context, networkStdin, runStep } from "./chain.ts";
import { delList } from "./del.ts";
import type {
  Attachment,
  AttachmentId,
  CallOptions,
  GcArgs,
  GcOptions,
  GcReport,
  NetworkConfigList,
  RuntimeConf,
} from "./model.ts";

/** What gcNetworkList throws after having done all that it could. */
export class GcError extends CniError {
  readonly report: GcReport;

  constructor(errors: readonly CniError[], report: GcReport) {
    const { code, msg, details } = joinErrors(errors)!;
    super(code, errors.length === 1 ? msg : errors.map((e) => e.message).join("\n"), {
      details: errors.length === 1 ? details : "",
      cause: errors,
    });
    this.report = report;
  }
}

/** How many containers are deleted at the same time. Most of a DEL is waiting for the kernel to let go of a link. */
const parallel = 8;

/**
 * Deletes every cached attachment of the network that is not valid, with the current config, then (from 1.1.0 on) runs
 * GC of every plugin. https://www.cni.dev/docs/spec/#gc-clean-up-any-stale-resources
 */
export async function gcList(
  ctx: Context,
  list: NetworkConfigList,
  args: GcArgs | undefined,
  options: GcOptions,
): Promise<GcReport> {
  const report: GcReport = {
    disabled: list.disableGC,
    deleted: [],
    failed: [],
    kept: [],
    plugins: [],
    problems: [],
  };
  if (list.disableGC) return report;
  const errors: CniError[] = [];
  const stale = staleOf(ctx, list, args, report, errors);
  if (options.dryRun) report.deleted = stale;
  else {
    sweep(ctx);
    await deleteAll(ctx, list, stale, report, options);
  }
  errors.push(
    ...report.failed.map(
      ({ attachment: { containerId, ifName }, error }) =>
        new CniError(error.code, `failed to delete stale attachment ${containerId} ${ifName}: ${error.msg}`, {
          details: error.details,
          cause: error,
        }),
    ),
  );
  if (atLeast(list.cniVersion, "1.1.0")) await gcPlugins(ctx, list, args, report, errors, options);
  if (errors.length > 0) throw new GcError(errors, report);
  return report;
}

function staleOf(
  ctx: Context,
  list: NetworkConfigList,
  args: GcArgs | undefined,
  report: GcReport,
  errors: CniError[],
): Attachment[] {
  const valid = new Set(args?.validAttachments.map(({ containerId, ifName }) => `${containerId}/${ifName}`));
  try {
    const { attachments, problems } = ctx.cache.list();
    report.problems = problems;
    const ours = attachments.filter(({ network }) => network === list.name);
    const isValid = (a: Attachment) => valid.has(`${a.containerId}/${a.ifName}`);
    report.kept = ours.filter(isValid);
    return ours.filter((a) => !isValid(a));
  } catch (error) {
    // Go takes this for success, with nothing done.
    errors.push(
      new CniError(toCniError(error).code, `failed to list the cached attachments: ${messageOf(error)}`, {
        cause: error,
      }),
    );
    return [];
  }
}

function sweep(ctx: Context): void {
  try {
    ctx.cache.sweep();
  } catch (error) {
    ctx.log(`could not clean up ${ctx.cache.dir}: ${messageOf(error)}`);
  }
}

/**
 * DEL of them all. The first one's plugins are told of all the others, so that they can take away at once what
 * costs a transaction each; then several containers at a time, but each container's one after the other, as the spec
 * demands.
 */
async function deleteAll(
  ctx: Context,
  list: NetworkConfigList,
  stale: readonly Attachment[],
  report: GcReport,
  options: CallOptions,
): Promise<void> {
  const byContainer = new Map<string, Attachment[]>();
  for (const attachment of stale)
    byContainer.set(attachment.containerId, [...(byContainer.get(attachment.containerId) ?? []), attachment]);
  const containers = [...byContainer.values()];
  const done = new Map<Attachment, CniError | undefined>();
  const [first, ...next] = stale;
  if (first === undefined) return;
  done.set(first, await deleteOne(ctx, list, first, { ...options, next }));
  byContainer.get(first.containerId)!.shift();
  const worker = async () => {
    for (let container = containers.shift(); container !== undefined; container = containers.shift())
      for (const attachment of container)
        done.set(attachment, await deleteOne(ctx, list, attachment, options));
  };
  await Promise.all(Array.from({ length: parallel }, worker));
  for (const attachment of stale) {
    const error = done.get(attachment);
    if (error === undefined) report.deleted.push(attachment);
    else report.failed.push({ attachment, error });
  }
}

async function deleteOne(
  ctx: Context,
  list: NetworkConfigList,
  attachment: Attachment,
  options: CallOptions & { next?: readonly AttachmentId[] },
): Promise<CniError | undefined> {
  try {
    options.signal?.throwIfAborted();
    await delList(ctx, list, runtimeConfOf(attachment), options);
    return undefined;
  } catch (error) {
    return toCniError(error);
  }
}

async function gcPlugins(
  ctx: Context,
  list: NetworkConfigList,
  args: GcArgs | undefined,
  report: GcReport,
  errors: CniError[],
  { dryRun, signal }: GcOptions,
): Promise<void> {
  for (const plugin of list.plugins) {
    try {
      const stdin = networkStdin(list, plugin, args?.validAttachments);
      if (!dryRun) await runStep(ctx, "GC", { list, plugin, stdin }, undefined, signal);
      report.plugins.push(plugin.type);
    } catch (error) {
      const { code, msg, details } = toCniError(error);
      errors.push(
        new CniError(code, `failed to GC plugin ${plugin.type}: ${msg}`, { details, cause: error }),
      );
    }
  }
}

/** An attachment as its ADD was asked for. */
export function runtimeConfOf(attachment: Attachment): RuntimeConf {
  const { containerId, ifName, args, capabilityArgs } = attachment;
  return { containerId, netns: rememberedNetns(attachment), ifName, args, capabilityArgs };
}

/**
 * The namespace that an attachment was added in, "" when that can't be told any more: the number in /proc/PID/ns/net may
 * be another process's by now, and a DEL there would take away the interface of another container (cri-o #2849).
 */
export function rememberedNetns({ netns }: Attachment): string {
  return netns.startsWith("/proc/") ? "" : netns;
}
