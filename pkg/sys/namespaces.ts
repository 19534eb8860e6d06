import { checked, cPath, libc } from "./libc.ts";

/** linux/sched.h */
export const CLONE_NEWNET = 0x40000000;

/** Moves the calling thread into the namespace that the descriptor names; any kind when `type` is 0. */
export function setns(fd: number, type: number): void {
  checked("setns", `fd ${fd}`, () => libc.setns(fd, type));
}

/** Moves the calling thread into new namespaces. */
export function unshare(flags: number): void {
  checked("unshare", `0x${flags.toString(16)}`, () => libc.unshare(flags));
}

const MS_BIND = 4096;
const MNT_DETACH = 2;

export function bindMount(from: string, to: string): void {
  checked("mount", to, () => libc.mount(cPath(from, 0), cPath(to, 1), null, MS_BIND, null));
}

/** Detaches a mount at once, even if busy. */
export function unmount(path: string): void {
  checked("umount", path, () => libc.umount2(cPath(path), MNT_DETACH));
}

/** linux/nsfs.h */
const NS_GET_NSTYPE = 0xb703;

/** Whether the descriptor is a network namespace, rather than another kind or an ordinary file. */
export function isNetworkNamespace(fd: number): boolean {
  return libc.ioctl(fd, NS_GET_NSTYPE, null) === CLONE_NEWNET;
}
