import { ipText } from "@tscni/addr";
import type { Rule } from "@tscni/netlink";
import { type Namespace, openNamespaceIfPresent } from "@tscni/ns";
import { type Owner, readRecord, removeRecord, writeRecord } from "@tscni/record";
import type { Call } from "@tscni/skel";
import type { SbrConf } from "./conf.ts";

/** The kind of our records. */
export const kind = "sbr";

/**
 * What an ADD leaves in a namespace. Rules outlive the interface and its addresses, and GC is not told where
 * containers are; so it is written down, before the act.
 */
export interface Trace {
  netns: string;
  /** Tells whether there is still the same namespace at that path. */
  inode: number;
  rules: { source: string; table: number }[];
  /** Whether what is in the tables is ours, too. */
  ownTables: boolean;
}

/**
 * Notes the rules that are about to be made, beside those of an ADD that no DEL came after. Returns how to take that
 * back.
 */
export function writeTrace(call: Call<SbrConf>, netns: Namespace, rules: readonly Rule[]): () => void {
  const earlier = readTrace(call, netns, call.warn);
  const made = rules.map(({ source, table }) => ({ source: ipText(source!.ip), table: table! }));
  const trace: Trace = {
    netns: netns.path,
    inode: netns.inode,
    rules: [...(earlier?.rules ?? []), ...made],
    ownTables: call.conf.table === undefined,
  };
  writeRecord(kind, call, trace);
  return () => {
    if (earlier) writeRecord(kind, call, earlier);
    else removeRecord(kind, call);
  };
}

/** What an attachment's ADD has left in this namespace; undefined when it was another one's, such as Go's. */
export function readTrace(
  owner: Owner,
  netns: Namespace,
  warn: (message: string) => void,
): Trace | undefined {
  const trace = readRecord<Trace>(kind, owner, warn);
  return trace?.inode === netns.inode ? trace : undefined;
}

/** The namespace that a trace is in, if it is still there. */
export function openTraced({ netns, inode }: Trace): Namespace | undefined {
  const found = openNamespaceIfPresent(netns);
  if (found === undefined || found.inode === inode) return found;
  found.close();
  return undefined;
}

/** Those of a namespace's rules that a trace tells of. */
export const rulesOf = (trace: Trace | undefined, rules: readonly Rule[]): Rule[] =>
  rules.filter(({ source, table }) =>
    trace?.rules.some((r) => r.table === table && source && r.source === ipText(source.ip)),
  );
