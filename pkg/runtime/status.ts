import type { Libcni } from "@tscni/libcni";
import { toCniError } from "@tscni/types";
import { failed } from "./errors.ts";
import type { Network } from "./networks.ts";

/**
 * Asks every plugin of every network for its STATUS (https://www.cni.dev/docs/spec/#status-check-plugin-status), the
 * networks at once and the plugins of each in order; networks below 1.1.0 have no such verb and count as ready.
 * Throws `not-ready` with the first plugin of each network that says no.
 */
export async function askStatus(libcni: Libcni, networks: readonly Network[]): Promise<void> {
  const outcomes = await Promise.all(networks.map((network) => firstFailure(libcni, network)));
  const failures = outcomes.flatMap((failure) => failure ?? []);
  if (failures.length > 0) throw failed("not-ready", "networking is not ready", failures);
}

async function firstFailure(libcni: Libcni, { name, list }: Network) {
  for (const plugin of list.plugins) {
    try {
      await libcni.getStatusNetworkList({ ...list, plugins: [plugin] });
    } catch (error) {
      return [{ network: name, plugin: plugin.type, error: toCniError(error) }];
    }
  }
  return undefined;
}
