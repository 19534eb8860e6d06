import { printResult } from "@tscni/libcni";
import { type Context, callOptions, libcniOf } from "../context.ts";
import { attachmentOf } from "../runtime.ts";

/** ADD; the result goes to stdout as Go's cnitool prints it, with or without --json. */
export async function run(context: Context): Promise<number> {
  const { list, rt } = await attachmentOf(context);
  const libcni = await libcniOf(context);
  const rollback = context.flags.on("rollback");
  const result = await libcni.addNetworkList(list, rt, { ...callOptions(context), rollback });
  context.io.stdout(goEscapes(printResult(result, list.cniVersion)));
  return 0;
}

/** Go's JSON encoder escapes what could end a script in an HTML page. */
const goEscapes = (json: string): string =>
  json.replace(/[<>&\u2028\u2029]/g, (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, "0")}`);
