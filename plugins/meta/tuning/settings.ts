import { interfaceMac, macOfArgs } from "@tscni/conf";
import { type Link, type LinkChange, type LinkKey, type Requester, setLink } from "@tscni/netlink";
import type { TuningConf } from "./conf.ts";

/** Settings of a link, under the names that config and backup file have for them. */
export interface Settings {
  mac?: string;
  promisc?: boolean;
  /** Bytes. */
  mtu?: number;
  allmulti?: boolean;
  /** Packets. */
  txQLen?: number;
}

/** A setting's name, what it is on a link, and the change that sets it. */
interface Setting {
  name: keyof Settings;
  of(link: Link): string | number | boolean | undefined;
  change(settings: Settings): LinkChange;
}

/** In the order in which they are made. */
const known: readonly Setting[] = [
  { name: "mac", of: (link) => link.address, change: ({ mac }) => ({ address: mac }) },
  { name: "promisc", of: (link) => link.promisc, change: ({ promisc }) => ({ promisc }) },
  { name: "mtu", of: (link) => link.mtu, change: ({ mtu }) => ({ mtu }) },
  {
    name: "allmulti",
    of: (link) => link.allMulticast,
    change: ({ allmulti }) => ({ allMulticast: allmulti }),
  },
  { name: "txQLen", of: (link) => link.txQueueLen, change: ({ txQLen }) => ({ txQueueLen: txQLen }) },
];

/**
 * What to set: the config, over it CNI_ARGS and the mac capability, over these args.cni. As in the reference a
 * promisc of false, an mtu of 0 and an empty mac leave things as they are.
 */
export function settingsOf(conf: TuningConf, args: string): Settings {
  const given = { ...conf, ...conf.args?.cni };
  const mac = interfaceMac(
    conf.args?.cni?.mac || conf.runtimeConfig?.mac || macOfArgs(args) || conf.mac || undefined,
  );
  return {
    ...(mac ? { mac } : {}),
    ...(given.promisc ? { promisc: true } : {}),
    ...(given.mtu ? { mtu: given.mtu } : {}),
    ...(given.allmulti === undefined ? {} : { allmulti: given.allmulti }),
    ...(given.txQLen === undefined ? {} : { txQLen: given.txQLen }),
  };
}

/** What a link has now of the settings that another one names. */
export function currentOf(link: Link, wanted: Settings): Settings {
  const current: Record<string, unknown> = {};
  for (const { name, of } of known) if (wanted[name] !== undefined) current[name] = of(link);
  return current;
}

/** A request for each setting, so that one that the kernel refuses keeps no other from being made. */
export function requestSettings(requests: Requester, key: LinkKey, settings: Settings): void {
  for (const { name, change } of known)
    if (settings[name] !== undefined) setLink(requests, key, change(settings));
}

/** The settings that {@link requestSettings} asks for, in that order. */
export const namesOf = (settings: Settings): (keyof Settings)[] =>
  known.map(({ name }) => name).filter((name) => settings[name] !== undefined);
