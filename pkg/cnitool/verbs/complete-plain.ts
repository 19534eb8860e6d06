import type { Context } from "../context.ts";
import { complete } from "./complete.ts";

/** Completions without descriptions. */
export const run = (context: Context): Promise<number> => complete(context, false);
