import { mismatch, nameTaken } from "@tscni/ip";
import { getLink, type Link, type Netlink } from "@tscni/netlink";
import type { Namespace } from "@tscni/ns";
import { close, interfaceRequest, ioctl, isErrno, O, open, startTool, writeTextFile } from "@tscni/sys";
import { CniError, ErrorCode, messageOf } from "@tscni/types";
import type { TapConf } from "./conf.ts";

// linux/if_tun.h
const TUNSETIFF = 0x400454ca;
const TUNSETPERSIST = 0x400454cb;
const TUNSETOWNER = 0x400454cc;
const TUNSETGROUP = 0x400454ce;
const IFF_TAP = 0x0002;
const IFF_MULTI_QUEUE = 0x0100;
const IFF_NO_PI = 0x1000;
/** Don't attach to a device that is there already. */
const IFF_TUN_EXCL = 0x8000;

const device = "/dev/net/tun";

/** Opens the device that taps are made by, for the namespace of the calling thread. */
function openTun(code: number): number {
  try {
    return open(device, O.RDWR);
  } catch (error) {
    throw new CniError(code, `tap devices can't be made: ${messageOf(error)}`, {
      details: `${device} is the kernel module "tun"`,
      cause: error,
    });
  }
}

/** Throws code 50 when this process can't make tap devices. */
export function verifyTun(): void {
  close(openTun(ErrorCode.PluginNotAvailable));
}

/**
 * Makes a tap device that stays when nobody has it open (Documentation/networking/tuntap.rst). Until the last step
 * it goes with the descriptor, so that a kill leaves nothing. Throws CniError when the name is taken.
 */
export function createTap(sandbox: Namespace, ifName: string, conf: TapConf): void {
  const fd = sandbox.enter(() => openTun(ErrorCode.Internal));
  try {
    const flags = IFF_TAP | IFF_NO_PI | IFF_TUN_EXCL | (conf.multiQueue ? IFF_MULTI_QUEUE : 0);
    ioctl(fd, TUNSETIFF, interfaceRequest(ifName, flags), `TUNSETIFF ${ifName}`);
    if (conf.owner !== undefined) ioctl(fd, TUNSETOWNER, conf.owner, "TUNSETOWNER");
    if (conf.group !== undefined) ioctl(fd, TUNSETGROUP, conf.group, "TUNSETGROUP");
    ioctl(fd, TUNSETPERSIST, 1, "TUNSETPERSIST");
  } catch (error) {
    if (isErrno(error, "EBUSY")) throw nameTaken(ifName);
    throw error;
  } finally {
    close(fd);
  }
}

/**
 * The same with an SELinux label. A tap device has the label of the process that makes it, which a process of
 * several threads can't change for itself; but it can say what its next child shall have.
 */
export function createLabelledTap(
  sandbox: Namespace,
  container: Netlink,
  ifName: string,
  conf: TapConf,
): void {
  // `ip` would attach to a device that is there already.
  if (getLink(container, { name: ifName }) !== undefined) throw nameTaken(ifName);
  const args = ["tuntap", "add", "mode", "tap", "name", ifName];
  if (conf.multiQueue) args.push("multi_queue");
  if (conf.owner !== undefined) args.push("user", `${conf.owner}`);
  if (conf.group !== undefined) args.push("group", `${conf.group}`);
  const failure = sandbox.enter(() => labelled(conf.selinuxContext, () => runIp(args)));
  if (failure) throw new CniError(ErrorCode.Internal, `ip ${args.join(" ")}: ${failure}`);
}

const execLabel = "/proc/thread-self/attr/exec";

/** Runs `work` with its children labelled. */
function labelled<T>(label: string, work: () => T): T {
  try {
    writeTextFile(execLabel, label);
  } catch (error) {
    throw new CniError(
      ErrorCode.InvalidNetworkConfig,
      `selinuxContext: "${label}": failed set socket label: ${messageOf(error)}`,
      { details: "the label is unknown, or SELinux is not enabled on this node" },
    );
  }
  try {
    return work();
  } finally {
    writeTextFile(execLabel, "\n");
  }
}

/** What went wrong, or undefined. */
function runIp(args: readonly string[]): string | undefined {
  const tool = startTool("ip", args, "", 30_000);
  if ("missing" in tool) return `${tool.missing} can't be run: install iproute2`;
  const { exitCode, stderr } = tool.wait();
  return exitCode === 0 ? undefined : stderr.trim() || `ended with ${exitCode ?? "a signal"}`;
}

/** The bridge, in the container, that the tap shall be a port of. */
export function findBridge(container: Netlink, name: string): Link {
  const bridge = getLink(container, { name });
  if (bridge?.kind === "bridge") return bridge;
  throw new CniError(
    ErrorCode.InvalidNetworkConfig,
    `failed to get bridge ${name}: ${bridge ? `it is of kind ${bridge.kind ?? "none"}` : "Link not found"}`,
    { details: 'the key "bridge" names a bridge in the container' },
  );
}

/** IFLA_TUN_TYPE of a tap. */
const TAP = 2;

/** CHECK's part: what the config says of a tap device, and whose port it is. */
export function verifyTap(container: Netlink, link: Link, conf: TapConf): void {
  const { tun, name } = link;
  if (tun?.type !== TAP) throw mismatch(`interface ${name} is a tun device, not a tap device`);
  const compare = (what: string, found: unknown, wanted: unknown) => {
    if (found !== wanted) throw mismatch(`interface ${name} has ${what} ${found ?? "none"}, not ${wanted}`);
  };
  compare("multiQueue", tun.multiQueue ?? false, conf.multiQueue);
  if (conf.owner !== undefined) compare("owner", tun.owner, conf.owner);
  if (conf.group !== undefined) compare("group", tun.group, conf.group);
  if (conf.bridge && link.master !== findBridge(container, conf.bridge).index)
    throw mismatch(`interface ${name} is not a port of ${conf.bridge}`);
}
