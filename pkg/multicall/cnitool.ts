import type { Finding, PluginSchema } from "@tscni/cnitool";
import { type AnySchema, confProblems, unknownKeys } from "@tscni/conf";
import type { Registry } from "./registry.ts";

/** Runs cnitool with the configs of this executable's plugins known to it. */
export function exitCodeOfCnitool(registry: Registry, argv: string[]): Promise<number> {
  const { main, processIo } = registry.loadCnitool();
  const schemas = (type: string) => pluginSchemaOf(registry, type);
  return main(argv, process.env, { ...processIo(process.env), schemas });
}

function pluginSchemaOf({ plugins }: Registry, type: string): PluginSchema | undefined {
  if (!Object.hasOwn(plugins, type)) return undefined;
  const schema = confSchemaOf(plugins[type]!.loadConf());
  return { checkConf: (raw) => [...wrongValues(schema, raw), ...keysNotRead(schema, raw)] };
}

function wrongValues(schema: AnySchema, raw: unknown): Finding[] {
  return confProblems(schema, raw).map(({ path, message }) => ({ path, message, level: "error" }));
}

function keysNotRead(schema: AnySchema, raw: unknown): Finding[] {
  return unknownKeys(schema, raw).map(({ path, suggestion }) => ({
    path,
    message: `unknown key${suggestion === undefined ? "" : `; did you mean ${suggestion}?`}`,
    level: "warning",
  }));
}

/** The schema among the exports of a plugin's conf.ts: the one that `confSchema` made. Throws unless it is one. */
export function confSchemaOf(module: object): AnySchema {
  const schemas = Object.values(module).filter(isConfSchema);
  if (schemas.length === 1) return schemas[0]!;
  throw new Error(`conf.ts exports ${schemas.length} schemas made with confSchema, not one`);
}

function isConfSchema(value: unknown): value is AnySchema {
  const schema = value as { kind?: unknown; entries?: object } | null;
  return typeof schema === "object" && schema?.kind === "schema" && "cniVersion" in (schema.entries ?? {});
}
