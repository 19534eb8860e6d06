import { type Attachment, nameTaken } from "@tscni/ip";
import {
  getLink,
  type Link,
  listLinks,
  type Netlink,
  NetlinkError,
  openRoute,
  setLink,
} from "@tscni/netlink";
import { type Namespace, openNamespace, openNamespaceIfPresent } from "@tscni/ns";
import { listRecords, readRecord, removeRecord, writeRecord } from "@tscni/record";
import { stat } from "@tscni/sys";
import { CniError, ErrorCode, interfaceNameProblem } from "@tscni/types";

export const kind = "host-device";

/** What has to be known of a device that is away, beside its alias, which is its name on the host. */
export interface Away {
  /** Its name on the host. */
  device: string;
  mac: string;
  /** Whether it was up there. */
  up: boolean;
  /** Where it went: the path, and what tells whether it is still the same namespace. */
  netns: string;
  inode: string;
}

const inodeOf = (path: string): string => {
  const { dev, ino } = stat(path);
  return `${dev}:${ino}`;
};

/** Writes down that a device is about to go into a container. */
export function recordDevice(attachment: Attachment & { netns: string }, link: Link): void {
  const { name: device, address: mac = "", up } = link;
  const { netns } = attachment;
  writeRecord(kind, attachment, { device, mac, up, netns, inode: inodeOf(netns) } satisfies Away);
}

/**
 * Moves a device into the container, with its new name and the old one as its alias, in one message: on the host it is
 * never seen under another name, which programs such as udev would answer to. Throws when the name is taken.
 */
export function moveIn(
  host: Netlink,
  sandbox: Namespace,
  container: Netlink,
  link: Link,
  ifName: string,
): Link {
  if (getLink(container, { name: ifName }) !== undefined) throw nameTaken(ifName);
  setLink(host, { index: link.index }, { netNsFd: sandbox.fd, name: ifName, alias: link.name });
  const moved = getLink(container, { name: ifName });
  if (moved === undefined) throw new CniError(ErrorCode.Internal, `interface ${ifName} is gone again`);
  return moved;
}

/**
 * Brings an attachment's device home under its old name, from wherever it is: the container, or the host, where the
 * kernel puts a device whose namespace died, under the name that it had there. It is down then, as the Go plugin
 * leaves it, unless `undo` asks for the state that it was found in. Nothing to bring is fine: a virtual device dies with its
 * namespace. Throws CniError when something else has its name by now.
 */
export function bringHome(
  attachment: Attachment & { netns: string },
  warn: (message: string) => void,
  undo = false,
): void {
  const away = readRecord<Away>(kind, attachment, warn);
  using host = openRoute();
  using sandbox = openNamespaceIfPresent(attachment.netns);
  const home = sandbox && fromContainer(host, sandbox, attachment.ifName, away);
  if (away !== undefined && !home) onHost(host, away.device);
  if (undo && away?.up && getLink(host, { name: away.device }) !== undefined)
    setLink(host, { name: away.device }, { up: true });
  removeRecord(kind, attachment);
}

/** The same for an attachment that nobody wants any more, as far as its namespace is still the one that it was. */
export function reclaim(
  attachment: Attachment,
  away: Away | undefined,
  warn: (message: string) => void,
): void {
  const others = listRecords<Away>(kind, attachment.network).filter(
    ({ containerId, ifName }) => containerId !== attachment.containerId || ifName !== attachment.ifName,
  );
  const isOurs = away !== undefined && !others.some(({ data }) => data?.device === away.device);
  if (isOurs) bringHome({ ...attachment, netns: isSame(away) ? away.netns : "" }, warn);
  else removeRecord(kind, attachment);
}

function isSame({ netns, inode }: Away): boolean {
  try {
    return inodeOf(netns) === inode;
  } catch {
    return false;
  }
}

/** Returns whether there was something. */
function fromContainer(host: Netlink, sandbox: Namespace, ifName: string, away: Away | undefined): boolean {
  using container = sandbox.enter(openRoute);
  const link = away ? findAway(host, container, away) : findByAlias(container, ifName);
  if (link === undefined) return false;
  const device = away?.device ?? link.alias!;
  verifyFree(host, device);
  const { index } = link;
  setLink(container, { index }, { up: false });
  if (link.name !== device) renameQuietly(container, index, device);
  using here = openNamespace("/proc/thread-self/ns/net");
  setLink(container, { index }, { netNsFd: here.fd, name: device, alias: "" });
  return true;
}

/** By its alias, whatever it is called by now; without one, when the move was refused half-way, by name and address. */
function findAway(host: Netlink, container: Netlink, { device, mac }: Away): Link | undefined {
  const links = listLinks(container);
  const isIt = ({ name, address = "" }: Link) => name === device && address === mac;
  const aliased = links.find(({ alias }) => alias === device);
  if (aliased !== undefined) return aliased;
  const onHost = getLink(host, { name: device });
  return onHost && isIt(onHost) ? undefined : links.find(isIt); // refused altogether: it never left
}

/** What the Go plugin has moved, or we, with the record lost. */
function findByAlias(container: Netlink, ifName: string): Link | undefined {
  const link = getLink(container, { name: ifName });
  return link?.alias && interfaceNameProblem(link.alias) === undefined ? link : undefined;
}

/** Renames it before it goes, so that the host does not see that; where the container has that name, it will. */
function renameQuietly(container: Netlink, index: number, name: string): void {
  try {
    setLink(container, { index }, { name });
  } catch (error) {
    if (!(error instanceof NetlinkError && error.code === "EEXIST")) throw error;
  }
}

/** Gives a device that the kernel brought back its name. */
function onHost(host: Netlink, device: string): void {
  const link = listLinks(host).find(({ alias }) => alias === device);
  if (link === undefined) return;
  const { index } = link;
  if (link.name !== device) {
    verifyFree(host, device);
    setLink(host, { index }, { up: false });
  }
  setLink(host, { index }, { name: device, alias: "" });
}

function verifyFree(host: Netlink, device: string): void {
  const other = getLink(host, { name: device });
  if (other === undefined) return;
  throw new CniError(
    ErrorCode.Internal,
    `failed to rename the device back to "${device}": another interface of the host has that name by now`,
    { details: `link ${other.index}, of kind ${other.kind ?? "none"}` },
  );
}
