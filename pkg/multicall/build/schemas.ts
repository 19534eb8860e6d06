import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import type { AnySchema } from "@tscni/conf";
import { toJsonSchema } from "@valibot/to-json-schema";
import { confSchemaOf } from "../cnitool.ts";
import type { PluginPackage } from "./entry.ts";

/**
 * Writes `<folder>/<plugin>.json`, the JSON Schema of each plugin's config, for editors and for the
 * documentation. Checks that JSON Schema has no words for (an address, say) are left out: the plugin makes them.
 */
export async function writeSchemas(plugins: readonly PluginPackage[], folder: string): Promise<void> {
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  for (const plugin of plugins) {
    const conf = confSchemaOf(await import(pathToFileURL(join(plugin.folder, "conf.ts")).href));
    writeFileSync(
      join(folder, `${plugin.name}.json`),
      `${JSON.stringify(jsonSchemaOf(plugin, conf), null, 2)}\n`,
    );
  }
}

function jsonSchemaOf({ name, about }: PluginPackage, conf: AnySchema): object {
  const { $schema, ...rest } = toJsonSchema(conf, { errorMode: "ignore", typeMode: "input" });
  return { $schema, title: name, description: about, ...rest };
}
