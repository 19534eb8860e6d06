import { type Finding, main, type PluginSchema, processIo } from "@tscni/cnitool";
import { type AnySchema, confProblems, unknownKeys } from "@tscni/conf";

/** Runs cnitool with the configs of this executable's plugins (name: the module conf.ts) known to it. */
export async function cnitool(confs: Readonly<Record<string, object>>): Promise<void> {
  const schemas = (type: string) =>
    Object.hasOwn(confs, type) ? pluginSchemaOf(confSchemaOf(confs[type]!)) : undefined;
  process.exitCode = await main(process.argv.slice(2), process.env, { ...processIo(process.env), schemas });
}

function pluginSchemaOf(schema: AnySchema): PluginSchema {
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
  const schema = value as Partial<AnySchema> | null;
  return typeof schema === "object" && schema?.type === "object" && "cniVersion" in (schema.entries ?? {});
}
