import { type PluginRepair, RepairError, type RuntimeConf } from "@tscni/libcni";
import { type CniError, toCniError } from "@tscni/types";
import { type Context, callOptions, libcniOf, networkOf } from "../context.ts";
import { jsonText } from "../json.ts";
import { errorText, messageLines } from "../message.ts";
import { runtimeOf } from "../runtime.ts";

/** What became of one attachment. */
interface Outcome {
  rt: RuntimeConf;
  plugins: readonly PluginRepair[];
  error?: CniError;
}

/** Repairs one attachment, or all of the network; says what was missing, nothing when nothing was. */
export async function run(context: Context): Promise<number> {
  const list = await networkOf(context, context.words[0]!);
  const libcni = await libcniOf(context);
  const one = context.words.length > 1;
  const targets: RuntimeConf[] = one
    ? [runtimeOf(context)]
    : libcni.getCachedAttachments().filter((a) => a.network === list.name);
  const outcomes: Outcome[] = [];
  for (const rt of targets) {
    try {
      outcomes.push({ rt, plugins: await libcni.repairNetworkList(list, rt, callOptions(context)) });
    } catch (error) {
      if (one && !(error instanceof RepairError)) throw error;
      const plugins = error instanceof RepairError ? error.plugins : [];
      outcomes.push({ rt, plugins, error: toCniError(error) });
    }
  }
  if (context.json) context.io.stdout(jsonText(outcomes.map(toJson)));
  for (const outcome of outcomes) show(context, outcome);
  return outcomes.some(({ error }) => error !== undefined) ? 1 : 0;
}

function show({ io, json }: Context, { rt, plugins, error }: Outcome): void {
  const whose = `${rt.containerId} ${rt.ifName}`;
  for (const { type, problem, left } of json ? [] : plugins)
    if (problem && !left) io.stdout(`${whose}: ${type} repaired: ${problem.msg}\n`);
  if (error) io.stderr(errorText(messageLines(`${whose}: ${error.message}`)));
}

const toJson = ({ rt: { containerId, ifName, netns }, plugins, error }: Outcome) => ({
  containerId,
  ifName,
  netns,
  plugins: plugins.map(({ type, problem, left }) => ({
    type,
    state: left ? "broken" : problem ? "repaired" : "good",
    ...(problem ? { problem: problem.toObject() } : {}),
  })),
  ...(error ? { error: error.toObject() } : {}),
});
