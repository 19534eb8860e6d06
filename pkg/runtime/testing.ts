import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "vitest";
import { Lab, prints } from "../libcni/testing/lab.ts";
import { isNetworkingError, Networking, type NetworkingError, type NetworkingOptions } from "./index.ts";

export const resultOf = (ifName: string, address: string) => ({
  cniVersion: "1.1.0",
  interfaces: [{ name: `veth-${ifName}` }, { name: ifName, mac: "02:00:00:00:00:01", sandbox: "/netns" }],
  ips: [{ interface: 1, address }],
  routes: [{ dst: "0.0.0.0/0" }],
  dns: { nameservers: ["10.0.0.53"] },
});

/** libcni's lab with a config folder beside the plugins. */
export class NetworkingLab extends Lab {
  readonly configDir = join(this.dir, "net.d");

  constructor() {
    super();
    mkdirSync(this.configDir);
  }

  conflist(name: string, type: string, extra: Record<string, unknown> = {}): void {
    const list = { cniVersion: "1.1.0", name, plugins: [{ type, ...extra }] };
    writeFileSync(join(this.configDir, `${name}.conflist`), JSON.stringify(list));
  }

  networking(options: NetworkingOptions = {}): Networking {
    const { configDir, cacheDir } = this;
    return new Networking({ pluginDirs: [this.bin], configDir, cacheDir, maxConfigs: 0, ...options });
  }

  /** Two networks, `a` on eth0 and `b` on eth1, with a plugin each. */
  twoNetworks(b: Record<string, string> = {}, options: NetworkingOptions = {}): Networking {
    this.plugin("alpha", { ADD: prints(resultOf("eth0", "10.1.0.2/24")) });
    this.plugin("beta", { ADD: prints(resultOf("eth1", "10.2.0.2/24")), ...b });
    this.conflist("a", "alpha");
    this.conflist("b", "beta");
    const both = this.networking(options);
    both.load("directory");
    return both;
  }
}

/** The NetworkingError that a promise rejects with. */
export async function failureOf(promise: Promise<unknown>): Promise<NetworkingError> {
  const error = await promise.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  expect(isNetworkingError(error)).toBe(true);
  return error as NetworkingError;
}
