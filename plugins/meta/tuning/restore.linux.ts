import { ensureSysctl } from "@tscni/ip";
import { getLink, type Link, type Netlink, openRoute } from "@tscni/netlink";
import { type Namespace, openNamespaceIfPresent } from "@tscni/ns";
import type { Call } from "@tscni/skel";
import { isErrno } from "@tscni/sys";
import { type Backup, backupPath, readBackup, removeBackup, writeBackup } from "./backup.linux.ts";
import { dataDirOf, type TuningConf } from "./conf.ts";
import { requestSettings } from "./settings.ts";
import { isOfInterface } from "./sysctls.ts";

type TuningCall = Call<TuningConf>;

/**
 * Writes what DEL will need: the link's settings and the interface's own sysctls. A backup of the same interface that
 * is there already, from an earlier ADD, has the original values: these stay. Returns how to take it back.
 */
export function backUp(call: TuningCall, netns: Namespace, link: Link, before: Backup): () => void {
  const path = backupPath(dataDirOf(call.conf), call);
  const found = readBackup(path, call.warn);
  const identity = { netns: netns.inode, index: link.index };
  const earlier = found?.link === undefined || isSame(found.link, identity) ? found : undefined;
  const sysctl = { ...ofInterface(before.sysctl ?? {}, call.ifName), ...earlier?.sysctl };
  const { sysctl: _, ...settings } = { ...before, ...earlier };
  writeBackup(dataDirOf(call.conf), path, {
    ...settings,
    network: call.network,
    link: identity,
    ...(isEmpty(sysctl) ? {} : { sysctl }),
  });
  return () => {
    if (found === undefined) removeBackup(path);
    else writeBackup(dataDirOf(call.conf), path, found);
  };
}

const isEmpty = (object: object): boolean => {
  for (const _ in object) return false;
  return true;
};

type Identity = NonNullable<Backup["link"]>;

const isSame = (a: Identity, b: Identity): boolean => a.netns === b.netns && a.index === b.index;

/** The sysctls that are the interface's own. The others are the whole namespace's, where others may want them, too. */
function ofInterface(sysctls: Record<string, string>, ifName: string): Record<string, string> {
  const own: Record<string, string> = {};
  for (const path in sysctls) if (isOfInterface(path, ifName)) own[path] = sysctls[path]!;
  return own;
}

/**
 * Gives an interface and sysctls the values of a backup, as far as they are still there and the interface is the one
 * that the backup is of. Returns the errors of what could not be restored.
 */
export function restore({ netns, ifName }: TuningCall, backup: Backup): unknown[] {
  using sandbox = openNamespaceIfPresent(netns);
  if (sandbox === undefined) return [];
  using container = sandbox.enter(openRoute);
  const link = getLink(container, { name: ifName });
  if (backup.link && !(link && isSame(backup.link, { netns: sandbox.inode, index: link.index }))) return [];
  const errors: unknown[] = sandbox.enter(() => restoreSysctls(backup.sysctl ?? {}));
  if (link) errors.push(...restoreSettings(container, link, backup));
  return errors;
}

function restoreSettings(container: Netlink, { index }: Link, settings: Backup): unknown[] {
  try {
    const outcomes = container.batch((requests) => requestSettings(requests, { index }, settings));
    return outcomes.filter((outcome) => outcome !== undefined);
  } catch (error) {
    return [error]; // a file with a value that no link can have
  }
}

function restoreSysctls(sysctls: Record<string, string>): unknown[] {
  const errors: unknown[] = [];
  for (const path in sysctls) {
    try {
      ensureSysctl(path, sysctls[path]!);
    } catch (error) {
      if (!isErrno(error, "ENOENT")) errors.push(error);
    }
  }
  return errors;
}
