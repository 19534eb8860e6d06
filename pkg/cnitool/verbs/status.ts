import { type Context, callOptions, libcniOf, networkOf } from "../context.ts";
import { jsonText } from "../json.ts";
import { argumentsOf } from "../runtime.ts";

/** STATUS of every plugin; silent when all are ready. */
export async function run(context: Context): Promise<number> {
  const list = await networkOf(context, context.words[0]!);
  argumentsOf(context); // Wrong ones fail here too, as they do in Go's cnitool.
  await (await libcniOf(context)).getStatusNetworkList(list, callOptions(context));
  if (context.json) context.io.stdout(jsonText({ network: list.name, ready: true }));
  return 0;
}
