import { isThisExecutable, setBuiltins } from "@tscni/ipam";
import { builtin, type Plugin, runPlugin } from "@tscni/skel";

/** What loads a plugin, if it is not loaded yet. */
export type LoadPlugin = () => Plugin;

/**
 * Runs a plugin that delegates. When it finds this very executable under a delegate's name, the plugin is called
 * as a function, and loaded only then.
 */
export function runDelegating(plugin: Plugin, delegates: Readonly<Record<string, LoadPlugin>>): unknown {
  setBuiltins(
    (type) => (Object.hasOwn(delegates, type) ? builtin(delegates[type]!) : undefined),
    isThisExecutable,
    plugin.name,
  );
  return runPlugin(plugin);
}
