import type { Result } from "@tscni/types";
import type { DelegateCall } from "./delegate.ts";

/** A plugin of this same executable, called as a function. ADD answers with a result. */
export type Builtin = (command: string, call: DelegateCall) => Promise<Result | undefined>;

let lookup: (type: string) => Builtin | undefined = () => undefined;

/** Tells which plugins this executable holds; whoever starts a plugin from it says so first. */
export function setBuiltins(find: (type: string) => Builtin | undefined): void {
  lookup = find;
}

export const builtinOf = (type: string): Builtin | undefined => lookup(type);
