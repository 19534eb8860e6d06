import { confSchema, type Infer } from "@tscni/conf";

/** No keys of its own: it always acts on `lo`. */
export const LoopbackConf = confSchema({});

export type LoopbackConf = Infer<typeof LoopbackConf>;
