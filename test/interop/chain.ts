import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { basename, join } from "node:path";
import {
  distBin,
  ip,
  makeNode,
  run,
  type TestNamespace,
  type TestNode,
  temporaryFolder,
} from "@tscni/test-support";

/** Whose cnitool runs, and whose plugins. */
export type Tool = "go" | "ours";

/** A node with a network of several plugins, run by cnitool, Go's or ours, on one cache and one IPAM folder. */
export interface ChainLab {
  readonly node: TestNode;
  readonly container: TestNamespace;
  /** Runs `cnitool VERB net NETNS` with the plugins of the same side, both ports asked for. Throws when it fails. */
  cnitool(tool: Tool, verb: string, ...more: string[]): string;
  /** What there is on the node, in comparable lines. */
  traces(): string[];
  close(): void;
}

export const ports = [
  { hostPort: 18080, containerPort: 80, protocol: "tcp" },
  { hostPort: 15353, containerPort: 53, protocol: "udp" },
] as const;

/** `goBins` are cnitool and the plugins; `network` has to be a name of its own: records of all tests are in one folder. */
export function makeChainLab(
  network: string,
  goBins: readonly string[],
  plugins: readonly object[],
  cniVersion: string,
): ChainLab {
  const node = makeNode();
  const container = node.container();
  const { path: folder, remove } = temporaryFolder();
  for (const name of ["conf", "cache", "go"]) mkdirSync(join(folder, name));
  for (const bin of goBins) symlinkSync(bin, join(folder, "go", basename(bin)));
  const list = { cniVersion, name: network, plugins };
  writeFileSync(
    join(folder, "conf", "net.conflist"),
    JSON.stringify(list, (key, value) => (key === "dataDir" && value === "leases" ? node.dataDir : value)),
  );
  // Go's cnitool knows no other place for its cache.
  const withCache = [
    "unshare",
    "-m",
    "sh",
    "-c",
    'mount --bind "$0" /var/lib/cni && exec "$@"',
    join(folder, "cache"),
  ];
  return {
    node,
    container,
    cnitool(tool, verb, ...more) {
      const bin = tool === "go" ? join(folder, "go") : distBin;
      const env = [`CNI_PATH=${bin}`, `NETCONFPATH=${join(folder, "conf")}`];
      // A DEL or CHECK by ours has them from the ADD; Go's has to be told.
      if (verb === "add" || tool === "go") env.push(`CAP_ARGS=${JSON.stringify({ portMappings: ports })}`);
      const cnitool = [join(bin, "cnitool"), verb, network, container.path, ...more];
      return run(...withCache, "nsenter", `--net=${node.host.path}`, "--", "env", ...env, ...cnitool);
    },
    traces: () => [
      ...onHost(node),
      ...filesBelow(folder),
      ...filesBelow(node.dataDir),
      ...recordsOf(network),
    ],
    close() {
      node.close();
      remove();
      // Another lab is another host.
      for (const path of filesBelow("/run/tscni"))
        if (path.includes(network) || readFileSync(path, "utf8").includes(network)) rmSync(path);
    },
  };
}

/** Links, addresses and rules, without MAC addresses and counters. */
function onHost({ host }: TestNode): string[] {
  const links = ip(host, "addr").flatMap((link) => [
    `link ${link.ifname}`,
    ...link.addr_info
      .filter((a: { scope: string }) => a.scope === "global")
      .map((a: { local: string }) => a.local),
  ]);
  const rules = [["iptables-save"], ["ip6tables-save"], ["nft", "list", "ruleset"]].flatMap(
    ([tool, ...args]) =>
      host
        .run(tool!, ...args)
        .split("\n")
        .filter((line) => line !== "" && !line.startsWith("#"))
        .map((line) => `${tool} ${line.replace(/\[\d+:\d+\]|counter packets \d+ bytes \d+/g, "").trim()}`),
  );
  return [...links, ...rules];
}

/** Records of ours, of this network alone. */
const recordsOf = (network: string): string[] =>
  filesBelow("/run/tscni").filter((path) => path.includes(network));

/** The paths of files; what is in them may be a time or the address given last. */
function filesBelow(folder: string): string[] {
  if (!existsSync(folder)) return [];
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
    .toSorted();
}
