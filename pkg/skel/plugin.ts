import type { AnySchema, Infer } from "@tscni/conf";
import { type Result, type SpecVersion, specVersions } from "@tscni/types";
import type { Undo } from "./undo.ts";

export type Command = "ADD" | "DEL" | "CHECK" | "STATUS" | "GC" | "VERSION";

/** An attachment in the spelling of the spec's GC; there, one that the runtime still wants. */
export interface ValidAttachment {
  containerID: string;
  ifname: string;
}

/** Everything that a verb is told: the environment, checked, and the config, decoded. */
export interface Call<C> {
  /** The plugin's own config, with defaults. */
  readonly conf: C;
  /** The network's name. */
  readonly network: string;
  readonly cniVersion: string;
  /** "" for STATUS and GC. */
  readonly containerId: string;
  readonly ifName: string;
  /** The namespace's path; "" when there is none (DEL) or the verb has none. */
  readonly netns: string;
  /** CNI_ARGS as it came: `K=V;K2=V2`. */
  readonly args: string;
  /** CNI_PATH as it came. */
  readonly path: string;
  /** The config as it came, to hand on to a delegate. */
  readonly stdin: string;
  readonly prevResult: Result | undefined;
  /** GC: what to keep. Undefined means that nobody said, so that nothing may be removed. */
  readonly validAttachments: readonly ValidAttachment[] | undefined;
  /** Tells the operator something that is not an error: a line on stderr. */
  warn(message: string): void;
}

type Maybe<T> = T | Promise<T>;

/**
 * A plugin: its verbs, in the order in which a container meets them. All five are required; one that has
 * nothing to do says so with a reason. ADD returns the result that is printed, in the version asked for.
 */
export interface PluginDefinition<S extends AnySchema> {
  name: string;
  /** One line for people who start the plugin by hand. */
  about: string;
  conf: S;
  /** Spec versions that the plugin supports: all seven unless given. */
  versions?: readonly SpecVersion[];
  /** Keys whose wrong value fails even DEL and GC; any other is dropped there with a warning. */
  delNeeds?: readonly string[];
  add(call: Call<Infer<S>>, undo: Undo): Maybe<Result>;
  del(call: Call<Infer<S>>): Maybe<void>;
  check(call: Call<Infer<S>>): Maybe<void>;
  status(call: Call<Infer<S>>): Maybe<void>;
  gc(call: Call<Infer<S>>): Maybe<void>;
  /**
   * Puts back on the host what others took away of an attachment that goes on living (rules, above all), without
   * touching the container's interface, addresses or lease. Told what CHECK is told; CHECK follows, so nothing has to
   * be verified here. Only for a plugin that keeps such things: the others leave it out. See `repairKey` in @tscni/types.
   */
  repair?(call: Call<Infer<S>>): Maybe<void>;
  /**
   * Called before `del` when more attachments of the network are about to be deleted: takes away, in as few
   * transactions as it can, what costs one each (rules, above all). Their own `del` follows and finds it gone. Only for
   * a plugin that gains by it. See `batchKey` in @tscni/types.
   */
  delNext?(call: Call<Infer<S>>, next: readonly ValidAttachment[]): Maybe<void>;
}

/** A plugin as the protocol sees it, its config type hidden. */
export interface Plugin extends PluginDefinition<AnySchema> {
  versions: readonly SpecVersion[];
}

/** Declares a plugin. */
export function definePlugin<S extends AnySchema>(definition: PluginDefinition<S>): Plugin {
  return { versions: specVersions, ...definition } as unknown as Plugin;
}
