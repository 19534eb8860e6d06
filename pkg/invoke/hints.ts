/**
 * Failures that users meet again and again, and what ends them. The first match counts; each line comes
 * from threads of people who were stuck on that very text.
 */
const hints: readonly (readonly [RegExp, string])[] = [
  [
    /failed to find plugin/,
    "install the plugin into one of these folders, or name its folder in CNI_PATH; the runtime's plugin folder may have moved with an upgrade",
  ],
  [/no paths provided/, "set CNI_PATH to the folders of the plugins, usually /opt/cni/bin"],
  [
    /text file busy/,
    "an installer writes over the plugin in place: let it write a new file and rename it over the old one",
  ],
  [
    /fork\/exec .*: permission denied/,
    "make the plugin executable (chmod 755), and look for noexec among the mount options",
  ],
  [
    /fork\/exec .*: exec format error/,
    "the file is no program for this machine: install the build for its architecture, or give the script a #! line",
  ],
  [
    /fork\/exec .*: no such file or directory/,
    "the plugin's interpreter or dynamic loader is missing: a script's #! line, or a build for another libc",
  ],
  [
    /stopped at its time limit/,
    "the plugin hangs, or needs more time: it may wait for a lock, a daemon or the network; what it wrote last is above",
  ],
  [
    /^signal: killed$/,
    "something else killed the plugin: look for the OOM killer in the kernel's log (dmesg)",
  ],
  [
    /already has an IP address different from/,
    "the bridge was made with another subnet: remove its address or the bridge (ip link del), or set forceAddress",
  ],
  [
    /no IP addresses available in range set/,
    "every address is reserved: reservations of containers that are gone stay in /var/lib/cni/networks until GC (cnitool gc) or a DEL takes them away; otherwise use a larger subnet",
  ],
  [
    /could not set bridge's mac/,
    "another program manages the bridge: keep NetworkManager or systemd-networkd off the links of CNI",
  ],
  [
    /subnet\.env: no such file/,
    "flannel's daemon writes that file and is not running (yet) on this node: look at its log",
  ],
  [
    /incompatible CNI versions/,
    "choose a cniVersion that every plugin of the list supports (cnitool validate tells), or update the plugin",
  ],
  [
    /table `?nat'? is incompatible, use 'nft' tool/,
    "this host uses nftables natively: choose the plugin's nftables backend",
  ],
  [/dhcp\/?.*\.sock: connect/, "the DHCP daemon is not running: start `dhcp daemon`"],
  [
    /(failed to (open|Statfs)|unknown FS magic on) .*(netns|\/proc\/\d+\/ns)/i,
    "the container's namespace is gone, or its path is not one: an ADD needs it, a DEL does without",
  ],
];

/** What to do about a failure with this text, if it is one of the well-known ones. */
export function hintOf(text: string): string | undefined {
  return hints.find(([pattern]) => pattern.test(text))?.[1];
}
