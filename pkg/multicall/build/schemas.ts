import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { jsonSchemaOf } from "@tscni/conf";
import { confSchemaOf } from "../cnitool.ts";
import type { PluginPackage } from "./entries.ts";

/**
 * Writes `<folder>/<plugin>.json`, the JSON Schema of each plugin's config, for editors and for the
 * documentation. Checks that JSON Schema has no words for (an address, say) are left out: the plugin makes them.
 */
export async function writeSchemas(plugins: readonly PluginPackage[], folder: string): Promise<void> {
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  for (const plugin of plugins) {
    const conf = confSchemaOf(await import(pathToFileURL(join(plugin.folder, "conf.ts")).href));
    const document = { $schema, title: plugin.name, description: plugin.about, ...jsonSchemaOf(conf) };
    writeFileSync(join(folder, `${plugin.name}.json`), `${JSON.stringify(document, null, 2)}\n`);
  }
}

const $schema = "https://json-schema.org/draft/2020-12/schema";
