import type { Result } from "@tscni/types";
import type { DelegateCall } from "./delegate.ts";

/** A plugin of this same executable, called as a function. ADD answers with a result. */
export type Builtin = (command: string, call: DelegateCall) => Promise<Result | undefined>;

let lookup: (type: string) => Builtin | undefined = () => undefined;
let stands: (file: string | undefined) => boolean = () => false;
let own = "";

/**
 * Tells which plugins this executable holds, and which files it stands for; whoever starts a plugin from it says so
 * first. `name` is the plugin that this process was started for.
 */
export function setBuiltins(
  find: (type: string) => Builtin | undefined,
  standsFor: (file: string | undefined) => boolean,
  name = "",
): void {
  own = name;
  lookup = find;
  stands = standsFor;
}

export const builtinOf = (type: string): Builtin | undefined => lookup(type);

/** Whether a plugin of ours is what whoever runs this file would get. */
export const standsFor = (file: string | undefined): boolean => stands(file);

/** Whether this process was started as that plugin, which would then delegate to itself for ever. */
export const isOwnType = (type: string): boolean => type !== "" && type === own;
