/** What the executable was asked to be, and the arguments that are left for it. */
export interface CalledAs {
  /** A plugin, `cnitool`, "tscni" when nothing was asked for, or a name that we don't have. */
  name: string;
  args: string[];
}

/** By the name of the link that it was called by, or `tscni NAME` where there is no link at hand. */
export function calledAs(): CalledAs {
  const path = process.argv0;
  const link = path.slice(path.lastIndexOf("/") + 1);
  const [, , first, ...rest] = process.argv;
  return link === "tscni" && first !== undefined
    ? { name: first, args: rest }
    : { name: link, args: process.argv.slice(2) };
}
