import type { Context } from "./context.ts";
import type { Flag } from "./flags.ts";

export interface Command {
  name: string;
  /** What follows the name in the usage line. */
  args: string;
  /** How many words the command needs. */
  minWords: number;
  /** One line for the list of commands. */
  summary: string;
  /** What the help text says beyond the summary. */
  about: string;
  flags: readonly Flag[];
  examples: readonly string[];
  /** Other words that people type for this command; they are suggested, not accepted. */
  alsoTyped?: readonly string[];
  /** A command of Go's cnitool, whose errors come in that tool's form. */
  likeGo?: boolean;
  /** Left out of the list of commands. */
  hidden?: boolean;
  /** Flags are left to the command itself. */
  rawWords?: boolean;
  /** Loads the command's code, which no other command pays for. Resolves to the exit status. */
  load(): Promise<{ run(context: Context): Promise<number> }>;
}

/** Flags that every command takes, before or after its name. */
export const globalFlags: readonly Flag[] = [
  { name: "cache-dir", value: "dir", about: "Where results are remembered (default /var/lib/cni)" },
  { name: "conf-dir", value: "dir", about: "Network configs (default $NETCONFPATH or /etc/cni/net.d)" },
  { name: "help", short: "h", about: "Show help" },
  {
    name: "ifname",
    short: "i",
    value: "string",
    about: "Interface name (default $CNI_IFNAME or eth0)",
  },
  { name: "json", about: "Print one JSON value on stdout, also for an error" },
  {
    name: "timeout",
    value: "duration",
    about: "Give up after e.g. 30s, 500ms, 2m (default: 3m for each plugin)",
  },
];

const attachment = "<network-name> <netns>";

export const commands: readonly Command[] = [
  {
    name: "add",
    args: attachment,
    minWords: 2,
    summary: "Attach a network namespace to a network",
    about:
      "Runs ADD of every plugin of the network in order and prints the final result.\nThe container id is derived from the path of the namespace, so that del and check find it again.",
    flags: [{ name: "rollback", about: "If a plugin fails, take back at once what the ones before it did" }],
    examples: [
      "CNI_PATH=/opt/cni/bin cnitool add mynet /var/run/netns/web",
      `CAP_ARGS='{"portMappings":[{"hostPort":8080,"containerPort":80,"protocol":"tcp"}]}' cnitool add mynet /var/run/netns/web --rollback`,
    ],
    alsoTyped: ["attach", "create", "up"],
    likeGo: true,
    load: () => import("./verbs/add.ts"),
  },
  {
    name: "attachments",
    args: "[network-name]",
    minWords: 0,
    summary: "List what is attached",
    about: "Lists the attachments that the cache knows, of one network or of all.",
    flags: [],
    examples: ["cnitool attachments", "cnitool attachments mynet --json"],
    alsoTyped: ["list", "ls", "ps", "show"],
    load: () => import("./verbs/attachments.ts"),
  },
  {
    name: "check",
    args: attachment,
    minWords: 2,
    summary: "Check that an attachment is still as ADD left it",
    about: "Runs CHECK of every plugin of the network in order, with the remembered result of ADD.",
    flags: [],
    examples: ["CNI_PATH=/opt/cni/bin cnitool check mynet /var/run/netns/web"],
    alsoTyped: ["verify", "test"],
    likeGo: true,
    load: () => import("./verbs/check.ts"),
  },
  {
    name: "completion",
    args: "<bash|fish|powershell|zsh>",
    minWords: 0,
    summary: "Print a completion script for a shell",
    about: "Prints a script that makes the shell complete commands, flags and network names.",
    flags: [{ name: "no-descriptions", about: "Complete without descriptions" }],
    examples: [
      "source <(cnitool completion bash)",
      "cnitool completion fish > ~/.config/fish/completions/cnitool.fish",
    ],
    likeGo: true,
    load: () => import("./verbs/completion.ts"),
  },
  {
    name: "del",
    args: attachment,
    minWords: 2,
    summary: "Detach a network namespace from a network",
    about:
      "Runs DEL of every plugin of the network, last one first. May be repeated, also when the namespace is gone.",
    flags: [{ name: "cached", about: "Use the config that add remembered, when the network's own is gone" }],
    examples: [
      "CNI_PATH=/opt/cni/bin cnitool del mynet /var/run/netns/web",
      "CNI_PATH=/opt/cni/bin cnitool del --cached oldnet /var/run/netns/web",
    ],
    alsoTyped: ["delete", "remove", "rm", "detach", "down"],
    likeGo: true,
    load: () => import("./verbs/del.ts"),
  },
  {
    name: "gc",
    args: "<network-name> [netns]",
    minWords: 1,
    summary: "Remove the attachments of a network that are no longer wanted",
    about:
      "Runs DEL for every remembered attachment that is not to be kept, then GC of every plugin (spec 1.1.0).\nWithout --keep and --keep-file nothing is kept. The namespace is ignored.",
    flags: [
      { name: "dry-run", about: "Only show what would be removed" },
      {
        name: "keep",
        value: "id[:ifname]",
        about: "Keep this container, or one interface of it (repeatable)",
      },
      {
        name: "keep-file",
        value: "file",
        about: "Keep what the file lists: id[:ifname] lines, or JSON as of attachments --json",
      },
    ],
    examples: [
      "cnitool gc mynet --keep cnitool-da5fe641dd6ee8187e20 --keep 4fa6e0:net1 --dry-run",
      "crictl pods --state ready --quiet --no-trunc > live && cnitool gc mynet --keep-file live",
    ],
    alsoTyped: ["prune", "clean", "cleanup"],
    likeGo: true,
    load: () => import("./verbs/gc.ts"),
  },
  {
    name: "help",
    args: "[command]",
    minWords: 0,
    summary: "Show help for a command",
    about: "Shows what a command does, its flags and an example.",
    flags: [],
    examples: ["cnitool help gc"],
    load: () => import("./verbs/help.ts"),
  },
  {
    name: "repair",
    args: "<network-name> [netns]",
    minWords: 1,
    summary: "Put back what others took away of an attachment, such as firewall rules",
    about:
      "Runs CHECK of every plugin of the network; one that fails is asked to put back what is missing, and checked again.\nFor after iptables -F, a flushed nftables table or a firewalld reload: the container keeps its interface, addresses\nand connections. Without a namespace, repairs every attachment of the network that is remembered.\nPlugins that are not of tscni can't repair; what they miss is reported.",
    flags: [],
    examples: [
      "CNI_PATH=/opt/cni/bin cnitool repair mynet /var/run/netns/web",
      "CNI_PATH=/opt/cni/bin cnitool repair mynet",
    ],
    alsoTyped: ["reload", "restore", "fix", "mend"],
    load: () => import("./verbs/repair.ts"),
  },
  {
    name: "status",
    args: "<network-name> [netns]",
    minWords: 1,
    summary: "Ask the plugins of a network whether they are ready for ADD",
    about:
      "Runs STATUS of every plugin of the network (spec 1.1.0). Exits 0 if all are ready. The namespace is ignored.",
    flags: [],
    examples: ["CNI_PATH=/opt/cni/bin cnitool status mynet"],
    alsoTyped: ["ready", "health"],
    likeGo: true,
    load: () => import("./verbs/status.ts"),
  },
  {
    name: "validate",
    args: "[file | folder | network-name]",
    minWords: 0,
    summary: "Say all that is wrong with a network config",
    about:
      "Checks one config file, one network, or a whole folder (by default the config folder): syntax, keys and values,\nplugins missing from CNI_PATH, versions that a plugin does not support, names used twice.\nExits 1 if there are errors.",
    flags: [{ name: "strict", about: "Fail on warnings too, such as keys that nobody reads" }],
    examples: [
      "CNI_PATH=/opt/cni/bin cnitool validate ./10-mynet.conflist",
      "cnitool validate mynet --strict",
    ],
    alsoTyped: ["lint", "verify-config"],
    load: () => import("./verbs/validate.ts"),
  },
  {
    name: "version",
    args: "[plugin...]",
    minWords: 0,
    summary: "Show versions: of cnitool, or those that plugins support",
    about:
      "Shows cnitool's version and the CNI versions it speaks; with names, what those plugins answer to VERSION.",
    flags: [],
    examples: ["cnitool version", "CNI_PATH=/opt/cni/bin cnitool version bridge host-local"],
    load: () => import("./verbs/version.ts"),
  },
  completer("__complete", () => import("./verbs/complete.ts")),
  completer("__completeNoDesc", () => import("./verbs/complete-plain.ts")),
];

/** A command that only the completion scripts call: with and without descriptions. */
function completer(name: string, load: Command["load"]): Command {
  const texts = { args: "[words...]", summary: "Completions for the last word", about: "", examples: [] };
  return { name, ...texts, minWords: 0, flags: [], hidden: true, rawWords: true, load };
}

export const findCommand = (name: string): Command | undefined => commands.find((c) => c.name === name);
