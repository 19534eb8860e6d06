import { containerLink, mismatch, requirePrevResult } from "@tscni/ip";
import { type Link, type Netlink, openRoute } from "@tscni/netlink";
import { openNamespace } from "@tscni/ns";
import { type Call, definePlugin } from "@tscni/skel";
import { isDirectory, statIfPresent } from "@tscni/sys";
import { CniError, ErrorCode, joinErrors, messageOf, type Result } from "@tscni/types";
import { verifyAllowed } from "./allowlist.linux.ts";
import { type Backup, backupPath, readBackup, removeBackup, removeStaleBackups } from "./backup.linux.ts";
import { dataDirOf, TuningConf } from "./conf.ts";
import { backUp, restore } from "./restore.linux.ts";
import { currentOf, namesOf, requestSettings, type Settings, settingsOf } from "./settings.ts";
import { isOfInterface, sysctlsOf } from "./sysctls.ts";
import { currentSysctls, verifySysctls, writeSysctls } from "./values.linux.ts";

/** Changes sysctls and the interface that the plugins before it made; takes the interface's back at DEL. */
export default definePlugin({
  name: "tuning",
  about: "changes sysctls and settings of a container's interface",
  conf: TuningConf,
  delNeeds: ["dataDir"],

  add(call, undo) {
    const { conf, ifName } = call;
    const sysctls = sysctlsOf(conf, ifName, call.stdin);
    verifyAllowed(sysctls);
    const settings = settingsOf(conf, call.args);
    const result = requirePrevResult(call.prevResult);

    using sandbox = openNamespace(call.netns);
    const touchesLink =
      namesOf(settings).length > 0 || sysctls.some(({ path }) => isOfInterface(path, ifName));
    using container = touchesLink ? sandbox.enter(openRoute) : undefined;
    const link = container && containerLink(container, ifName);
    const before: Backup = {
      ...(link ? currentOf(link, settings) : {}),
      ...(sysctls.length > 0 ? { sysctl: sandbox.enter(() => currentSysctls(sysctls)) } : {}),
    };
    if (link) undo.defer(backUp(call, sandbox, link, before));

    undo.defer(() => throwAll(restore(call, before)));
    if (sysctls.length > 0) sandbox.enter(() => writeSysctls(sysctls));
    if (container && link) applySettings(container, link, settings);
    return resultOf(call, result, settings);
  },

  del(call) {
    const path = backupPath(dataDirOf(call.conf), call);
    const backup = readBackup(path, call.warn);
    // As a rule the interface is about to go: what can't be restored is no reason to keep the container.
    for (const error of backup ? restore(call, backup) : [])
      call.warn(`cannot restore ${call.ifName}: ${messageOf(error)}`);
    removeBackup(path);
  },

  check(call) {
    requirePrevResult(call.prevResult);
    const sysctls = sysctlsOf(call.conf, call.ifName, call.stdin);
    using sandbox = openNamespace(call.netns);
    using container = sandbox.enter(openRoute);
    sandbox.enter(() => verifySysctls(sysctls));
    verifySettings(containerLink(container, call.ifName), settingsOf(call.conf, call.args));
  },

  /** Ready when the allowlist has what the config asks for, and backups have a place. */
  status({ conf, stdin }) {
    try {
      verifyAllowed(sysctlsOf(conf, "IFNAME", stdin));
      const folder = statIfPresent(dataDirOf(conf));
      if (folder && !isDirectory(folder)) throw new TypeError(`dataDir: ${dataDirOf(conf)} is not a folder`);
    } catch (error) {
      throw new CniError(ErrorCode.PluginNotAvailable, messageOf(error), { cause: error });
    }
  },

  gc({ conf, network, validAttachments, warn }) {
    if (validAttachments === undefined) return;
    const dataDir = dataDirOf(conf);
    for (const name of removeStaleBackups(dataDir, network, validAttachments))
      warn(`gc: removed backup ${dataDir}/${name}`);
  },
});

/** Throws CniError naming the first setting that the kernel refuses. */
function applySettings(container: Netlink, link: Link, settings: Settings): void {
  const outcomes = container.batch((requests) => requestSettings(requests, { index: link.index }, settings));
  const names = namesOf(settings);
  for (const [i, error] of outcomes.entries()) {
    if (error === undefined) continue;
    const msg = `${names[i]!}: ${link.name} cannot be given ${JSON.stringify(settings[names[i]!])}: ${error.message}`;
    throw new CniError(ErrorCode.Internal, msg, { cause: error });
  }
}

/** CHECK of the link: a promisc that nobody asked for is as wrong as one that is missing. */
function verifySettings(link: Link, settings: Settings): void {
  const wanted = { promisc: false, ...settings };
  const found = currentOf(link, wanted);
  for (const name of namesOf(wanted)) {
    if (found[name] !== wanted[name])
      throw mismatch(`${name} of ${link.name} is ${found[name]}, not ${wanted[name]}`);
  }
}

/** The previous result, in which the container's interface (no other of that name) has its new address and MTU. */
function resultOf({ ifName, netns }: Call<TuningConf>, result: Result, { mac, mtu }: Settings): Result {
  const changed = { ...(mac ? { mac } : {}), ...(mtu ? { mtu } : {}) };
  return {
    ...result,
    interfaces: result.interfaces.map((i) =>
      i.name === ifName && i.sandbox === netns ? { ...i, ...changed } : i,
    ),
  };
}

function throwAll(errors: readonly unknown[]): void {
  const joined = joinErrors(errors);
  if (joined) throw joined;
}
