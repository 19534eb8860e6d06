import { type Context, callOptions, libcniOf } from "../context.ts";
import { jsonText } from "../json.ts";
import { attachmentOf } from "../runtime.ts";

/** DEL; silent when all is gone. */
export async function run(context: Context): Promise<number> {
  const { list, rt } = await attachmentOf(context);
  await (await libcniOf(context)).delNetworkList(list, rt, callOptions(context));
  if (context.json) {
    const { containerId, ifName, netns } = rt;
    context.io.stdout(jsonText({ network: list.name, containerId, ifName, netns, deleted: true }));
  }
  return 0;
}
