import type { FlannelConf } from "./conf.ts";
import type { SubnetEnv } from "./subnet-env.ts";

/** A plugin's config, as JSON. */
export type PluginConf = { type: string; name: string; cniVersion: string; [key: string]: unknown };

/** The config of the plugin that does the work: a bridge with host-local addresses of the node's subnet by default. */
export function delegateConfOf(
  conf: FlannelConf,
  env: SubnetEnv,
  { network, cniVersion }: { network: string; cniVersion: string },
): PluginConf {
  const given = conf.delegate ?? {};
  const type = given.type ?? "bridge";
  return {
    ipMasq: !env.ipMasq,
    mtu: env.mtu,
    ...(type === "bridge" ? { isGateway: true } : {}),
    ...given,
    type,
    name: network,
    cniVersion,
    ...(conf.runtimeConfig ? { runtimeConfig: conf.runtimeConfig } : {}),
    ipam: ipamOf(conf.ipam ?? {}, env),
  };
}

function ipamOf(given: NonNullable<FlannelConf["ipam"]>, { subnets, networks }: SubnetEnv): object {
  return {
    ...given,
    type: given.type ?? "host-local",
    ranges: subnets.map((subnet) => [{ subnet }]),
    routes: [...(given.routes ?? []), ...networks.map((dst) => ({ dst }))],
  };
}
