import { messageOf, verifyContainerId } from "@tscni/types";
import type { ContainerOptions } from "./container.ts";
import { NetworkingError } from "./errors.ts";
import type { LivingContainer } from "./gc.ts";

/*
 * What can be known to be wrong before anything is begun. An id above all: the cache's listing takes an empty one for
 * all containers.
 */

/** Throws `invalid-argument` for an id that the spec does not allow, and for labels that CNI_ARGS has no way to say. */
export function verifyContainer(id: string, { labels = {} }: ContainerOptions = {}): void {
  try {
    if (typeof id !== "string") throw new TypeError(`${id} is not a string`);
    verifyContainerId(id);
  } catch (error) {
    throw new NetworkingError("invalid-argument", `container id: ${messageOf(error)}`, { cause: error });
  }
  // `K=V;K2=V2` without any quoting: https://www.cni.dev/docs/spec/#parameters
  for (const [key, value] of Object.entries(labels))
    if (key === "" || /[=;\0]/.test(key) || /[=;\0]/.test(value))
      throw new NetworkingError(
        "invalid-argument",
        `labels: ${JSON.stringify(key)}: ${JSON.stringify(value)} can't be handed to plugins: CNI_ARGS has no quoting for "=" and ";"`,
      );
}

/** Throws `invalid-argument` for an empty path: "" would be the namespace of nobody, or the folder that we are in. */
export function verifyNetns(netns: string): void {
  if (typeof netns === "string" && netns !== "") return;
  throw new NetworkingError("invalid-argument", "netns: the path of the container's namespace is missing");
}

/** Throws `invalid-argument`: a list of the living that has something else in it must not lead to deletes. */
export function verifyLiving(living: readonly LivingContainer[]): void {
  for (const one of living) verifyContainer(typeof one === "string" ? one : one?.id);
}

/** A list of the living as what tells them, verified now. */
export function listed(living: Iterable<LivingContainer>): () => readonly LivingContainer[] {
  const all = [...living];
  verifyLiving(all);
  return () => all;
}
