/** What pkg/invoke uses of node:path. */
import { readlink } from "@tscni/sys";

export const sep = "/";
export const delimiter = ":";
export const basename = (path: string): string => path.slice(path.lastIndexOf("/") + 1);

/** An absolute path of a file in a folder; "." and ".." stay as they are, which the kernel understands. */
export const resolve = (folder: string, file: string): string =>
  folder.startsWith("/") ? `${folder}/${file}` : `${readlink("/proc/self/cwd")}/${folder}/${file}`;
