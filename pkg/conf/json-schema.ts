import type { Schema } from "./schema.ts";

/**
 * The schema in JSON Schema's words (draft 2020-12), for editors and documentation. Rules that it has no words
 * for, such as what an address is, are left out: the plugin itself makes them.
 */
export function jsonSchemaOf(schema: Schema): Record<string, unknown> {
  const keywords = Object.assign({}, ...(schema.checks ?? []).map((check) => check.keywords ?? {}));
  return { ...baseOf(schema), ...keywords };
}

function baseOf(schema: Schema): Record<string, unknown> {
  switch (schema.type) {
    case "unknown":
      return {};
    case "optional":
      return {
        ...jsonSchemaOf(schema.wrapped!),
        ...(schema.fallback === undefined ? {} : { default: schema.fallback }),
      };
    case "array":
      return { type: "array", items: jsonSchemaOf(schema.item!) };
    case "record":
      return { type: "object", additionalProperties: jsonSchemaOf(schema.item!) };
    case "union":
      return { anyOf: schema.options!.map(jsonSchemaOf) };
    case "object":
      return objectOf(schema.entries!);
    default:
      return { type: schema.type };
  }
}

function objectOf(entries: Readonly<Record<string, Schema>>): Record<string, unknown> {
  const named = Object.entries(entries);
  const required = named.filter(([, entry]) => entry.type !== "optional").map(([name]) => name);
  return {
    type: "object",
    properties: Object.fromEntries(named.map(([name, entry]) => [name, jsonSchemaOf(entry)])),
    ...(required.length > 0 ? { required } : {}),
  };
}
