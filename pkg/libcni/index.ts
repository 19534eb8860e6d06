export type { ParseOptions } from "./conflist.ts";
export { confListFromConf, parseConfList, parsePluginConf } from "./conflist.ts";
export { GcError, rememberedNetns } from "./gc.ts";
export { defaultCacheDir, Libcni } from "./libcni.ts";
export { confFromFile, confListFromFile, listConfFiles, loadConfList } from "./load.ts";
export * from "./model.ts";
export { RepairError } from "./repair.ts";
export { printResult } from "./result.ts";
