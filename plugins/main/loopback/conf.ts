import { confSchema } from "@tscni/conf";
import type * as v from "valibot";

/** No keys of its own: it always acts on `lo`. */
export const LoopbackConf = confSchema({});

export type LoopbackConf = v.InferOutput<typeof LoopbackConf>;
