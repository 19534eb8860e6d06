import { type Attachment, GcError, type GcReport } from "@tscni/libcni";
import { type Context, callOptions, libcniOf, networkOf } from "../context.ts";
import { jsonText } from "../json.ts";
import { keptBy } from "../keep.ts";
import { errorText, messageLines } from "../message.ts";
import { argumentsOf } from "../runtime.ts";
import { table } from "../style.ts";

/** GC; without attachments to keep everything goes, as with Go's cnitool. Silent when it did its work. */
export async function run(context: Context): Promise<number> {
  const list = await networkOf(context, context.words[0]!);
  argumentsOf(context);
  const libcni = await libcniOf(context);
  const cached = libcni.getCachedAttachments().filter((a) => a.network === list.name);
  const keep = keptBy(context, cached);
  const dryRun = context.flags.on("dry-run");
  // Go tells the plugins nothing then, and what its cache does not know (a lease, an element of a map) stays.
  const args = { validAttachments: keep ?? [] };
  try {
    const report = await libcni.gcNetworkList(list, args, { ...callOptions(context), dryRun });
    if (context.json) context.io.stdout(jsonText(summary(report, list.name, dryRun)));
    else if (dryRun) showPlan(context, report);
    return 0;
  } catch (error) {
    if (!context.json || !(error instanceof GcError)) throw error;
    context.io.stdout(jsonText({ ...summary(error.report, list.name, dryRun), error: error.toObject() }));
    context.io.stderr(errorText(messageLines(error.message)));
    return 1;
  }
}

const idOf = ({ containerId, ifName, netns }: Attachment) => ({ containerId, ifName, netns });

function summary(report: GcReport, network: string, dryRun: boolean) {
  return {
    network,
    dryRun,
    disabled: report.disabled,
    deleted: report.deleted.map(idOf),
    failed: report.failed.map(({ attachment, error }) => ({ ...idOf(attachment), error: error.toObject() })),
    kept: report.kept.map(idOf),
    plugins: report.plugins,
    problems: report.problems,
  };
}

/** What a gc would do, a line for each attachment of the network. */
function showPlan({ io, style }: Context, report: GcReport): void {
  if (report.disabled) {
    io.stdout('Nothing: the network says "disableGC".\n');
    return;
  }
  const row = (fate: string) => (a: Attachment) => [fate, a.containerId, a.ifName, a.netns];
  const rows = [...report.deleted.map(row("delete")), ...report.kept.map(row("keep"))];
  if (rows.length > 0) io.stdout(table(["FATE", "CONTAINER", "IFNAME", "NETNS"], rows, style));
  io.stdout(`${report.deleted.length} to delete, ${report.kept.length} to keep.\n`);
  if (report.plugins.length > 0) io.stdout(`Then GC runs in ${report.plugins.join(", ")}.\n`);
}
