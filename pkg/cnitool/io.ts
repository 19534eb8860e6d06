import type { Exec } from "@tscni/libcni";

/** A finding about a plugin's own config; `path` counts from the plugin object (`ipam.ranges[0][0].subnet`). */
export interface Finding {
  path: string;
  message: string;
  level: "error" | "warning";
}

/** What is known of a plugin's config: the executable fills this from its plugins' own declarations. */
export interface PluginSchema {
  /** Everything that is wrong with the plugin's config as it would arrive on its stdin. */
  checkConf(raw: unknown): Finding[];
}

/** What cnitool touches of the world outside: a test or another program may put its own in place. */
export interface Io {
  stdout(text: string): void;
  stderr(text: string): void;
  /** What relative paths start from. */
  cwd: string;
  /** Whether stdout is a terminal; asked only when there is something to colour. */
  isTerminal?(): boolean;
  /** Fires when the user interrupts: the plugin that runs is stopped, and what it left is on record. */
  signal?: AbortSignal;
  /** How plugins are found and run; by default as executables. */
  exec?: Exec;
  /** The schema of a plugin type; undefined for types that nothing is known of. */
  schemas?(type: string): PluginSchema | undefined;
}
