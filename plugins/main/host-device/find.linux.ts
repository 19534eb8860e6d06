import { getLink, type Link, listLinks, type Netlink } from "@tscni/netlink";
import { isErrno, readDir, readlink, statIfPresent } from "@tscni/sys";
import { CniError, ErrorCode } from "@tscni/types";
import type { HostDeviceConf } from "./conf.ts";

const pciDevices = "/sys/bus/pci/devices";
const auxiliaryDevices = "/sys/bus/auxiliary/devices";

/** Drivers that give a device to programs such as DPDK: the kernel has no interface for it, so none is moved. */
const userspaceDrivers = ["vfio-pci", "uio_pci_generic", "igb_uio"];

/** Where the device is that a config names; `pciID` as far as it is named by that. */
export interface Place {
  pciID?: string;
  /** Whether a program drives the device by itself. */
  userspace: boolean;
  /** Finds the device's link on the host. */
  find(host: Netlink): Link;
}

/**
 * The device of a config: by `device`, else `hwaddr`, `kernelpath`, and `pciBusID` or the runtime's `deviceID`. Throws
 * CniError with the code given, or 7.
 */
export function placeOf(conf: HostDeviceConf, code: number = ErrorCode.InvalidNetworkConfig): Place {
  const bus = busFolderOf(conf, code);
  const userspace = bus.pciID !== undefined && hasUserspaceDriver(bus.folder ?? "");
  return {
    ...(bus.pciID ? { pciID: bus.pciID } : {}),
    userspace,
    find: (host) => find(host, conf, bus.folder, code),
  };
}

/** The folder of the device below /sys/bus, when it is named by its id on one. */
function busFolderOf(
  { pciBusID, runtimeConfig }: HostDeviceConf,
  code: number,
): { pciID?: string; folder?: string } {
  const id = runtimeConfig?.deviceID;
  if (!id && pciBusID === "") return {};
  const pciID = id || pciBusID;
  if (statIfPresent(`${pciDevices}/${pciID}`) !== undefined)
    return { pciID, folder: `${pciDevices}/${pciID}` };
  if (!id) throw new CniError(code, `error with host device: no PCI device "${pciBusID}"`);
  if (statIfPresent(`${auxiliaryDevices}/${id}`) !== undefined)
    return { folder: `${auxiliaryDevices}/${id}` };
  throw new CniError(code, `runtime config DeviceID ${id} not found or unsupported`);
}

function hasUserspaceDriver(folder: string): boolean {
  try {
    const driver = readlink(`${folder}/driver`);
    return userspaceDrivers.includes(driver.slice(driver.lastIndexOf("/") + 1));
  } catch (error) {
    if (isErrno(error, "ENOENT")) return false; // no driver at all
    throw error;
  }
}

function find(host: Netlink, conf: HostDeviceConf, folder: string | undefined, code: number): Link {
  const { device, hwaddr, kernelpath } = conf;
  const missing = (what: string) => new CniError(code, `failed to find host device: ${what}`);
  if (device !== "") return getLink(host, { name: device }) ?? fail(missing(`no link "${device}"`));
  if (hwaddr !== "") {
    const address = hwaddr.toLowerCase().replaceAll("-", ":");
    const found = listLinks(host).find((link) => link.address === address);
    return found ?? fail(missing(`no link has the MAC address ${address}`));
  }
  if (kernelpath !== "" && (!kernelpath.startsWith("/sys/devices/") || kernelpath.includes("/..")))
    throw new CniError(
      ErrorCode.InvalidNetworkConfig,
      `kernel device path "${kernelpath}" must be absolute and begin with /sys/devices/`,
    );
  const place = kernelpath || folder;
  if (!place) throw nothingNamed();
  const name = netNamesIn(place)[0];
  const link = name === undefined ? undefined : getLink(host, { name });
  return link ?? fail(missing(`${place} has no network interface on this host`));
}

/** The config and the runtime name no device. */
export const nothingNamed = (): CniError =>
  new CniError(
    ErrorCode.InvalidNetworkConfig,
    'specify either "device", "hwaddr", "kernelpath" or "pciBusID"',
  );

function fail(error: Error): never {
  throw error;
}

/** The interfaces of a device; those of a virtio device are one folder further down. */
function netNamesIn(folder: string): string[] {
  const own = namesIn(`${folder}/net`);
  if (own.length > 0) return own;
  const below = namesIn(folder).filter((name) => name.startsWith("virtio"));
  return below.flatMap((name) => namesIn(`${folder}/${name}/net`));
}

function namesIn(folder: string): string[] {
  try {
    return readDir(folder).sort();
  } catch (error) {
    if (isErrno(error, "ENOENT", "ENOTDIR")) return [];
    throw error;
  }
}
