import type { Plugin } from "@tscni/skel";

/** One plugin of the executable. Nothing of it is loaded before one of its functions is called. */
export interface PluginEntry {
  /** One line for the list of plugins. */
  about: string;
  /** The plugin's module; its default export is what `definePlugin` made. */
  load(): { default: Plugin };
  /** Its conf.ts, which has one schema among its exports. */
  loadConf(): object;
}

/** What the build found in the folders of the plugins. */
export interface Registry {
  version: string;
  plugins: Record<string, PluginEntry>;
  loadCnitool(): typeof import("@tscni/cnitool");
}
