import { setBuiltins } from "@tscni/ipam";
import { builtin, type Plugin, runPlugin } from "@tscni/skel";

/** What loads a plugin's module, whose default export is what `definePlugin` made. */
export type LoadPlugin = () => { default: Plugin };

/**
 * Runs a plugin that delegates. When it finds this very executable under a delegate's name, the plugin is called
 * as a function, and its module loaded only then.
 */
export function runDelegating(plugin: Plugin, delegates: Readonly<Record<string, LoadPlugin>>): unknown {
  setBuiltins((type) =>
    Object.hasOwn(delegates, type) ? builtin(() => delegates[type]!().default) : undefined,
  );
  return runPlugin(plugin);
}
