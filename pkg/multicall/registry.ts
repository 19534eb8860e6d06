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

/** What the build found in the folders of the plugins, and what it linked in. */
export interface Registry {
  version: string;
  plugins: Record<string, PluginEntry>;
  runPlugin: typeof import("@tscni/skel").runPlugin;
  loadCnitool(): typeof import("@tscni/cnitool");
}

/** A plugin of this executable by its name; undefined when there is none. */
export type FindPlugin = (name: string) => Plugin | undefined;
