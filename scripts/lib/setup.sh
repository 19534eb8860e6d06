# What scripts/{quickstart,test,bench} need before they start. Sourced by bash; `root` is the repository.
# Every step looks first and does only what is missing, so that a second call costs next to nothing.
# shellcheck shell=bash
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
export TURBO_TELEMETRY_DISABLED=1 DO_NOT_TRACK=1 npm_config_update_notifier=false
PATH=$PATH:/usr/sbin:/sbin # ip and nft live there, and Debian's users lack it

say() { printf '%s\n' "$*" >&2; }
die() { say "${0##*/}: $*"; exit 1; }

# command:package of Debian and Ubuntu
demo_tools=(ip:iproute2 ping:iputils-ping flock:util-linux unshare:util-linux)
system_tools=("${demo_tools[@]}" nft:nftables iptables:iptables conntrack:conntrack socat:socat dbus-daemon:dbus-daemon ps:procps strace:strace)
# firewalld would take over a machine whose systemd starts it; where it is missing, its tests are skipped by name.
[ -d /run/systemd/system ] || system_tools+=(firewalld:firewalld)
# What test/e2e runs containers with. Without Debian's recommended packages, which bring another network along.
podman_tools=(podman:podman crun:crun busybox:busybox-static nc.openbsd:netcat-openbsd)
# Servers that plugins are tested against: two for DHCP, and the store of flanneld.
server_tools=(dnsmasq:dnsmasq-base kea-dhcp4:kea-dhcp4-server etcd:etcd-server)
# What runs arm64's executable on another machine.
arm64_tools=(qemu-aarch64-static:qemu-user-static /usr/aarch64-linux-gnu/lib/ld-linux-aarch64.so.1:libc6-arm64-cross)

missing_packages() {
  local entry
  for entry in "$@"; do command -v "${entry%%:*}" >/dev/null || echo "${entry##*:}"; done | sort -u
}

# Installs the packages of the tools given that are not there. What can't be installed is said, and a failure.
ensure_tools() {
  local packages
  mapfile -t packages < <(missing_packages "$@")
  [ ${#packages[@]} -gt 0 ] || return 0
  if [ "$(id -u)" != 0 ]; then
    say "missing: ${packages[*]}. Installing them takes root: sudo apt-get install ${packages[*]}"
    return 1
  fi
  if ! command -v apt-get >/dev/null; then
    say "missing: ${packages[*]}, and there is no apt-get here to install them with"
    return 1
  fi
  say "installing with apt-get: ${packages[*]}"
  { apt-get -qq update && DEBIAN_FRONTEND=noninteractive apt-get -qq install -y --no-install-recommends "${packages[@]}"; } >&2
}

ensure_node() {
  command -v node >/dev/null && command -v npm >/dev/null || die "Node.js 20 or later and npm have to be there"
  local major
  major=$(node -p 'process.versions.node.split(".")[0]')
  [ "$major" -ge 20 ] || die "Node.js 20 or later has to be there; this is $(node --version)"
}

sha() { sha256sum | cut -c1-16; }
tree_state() { # of everything that the build reads; the clone may belong to another user than ours
  (cd "$root" && git -c safe.directory='*' ls-files -co --exclude-standard -z -- pkg plugins windows scripts '*.json' .npmrc |
    xargs -0 sha256sum 2>/dev/null | sha)
}
lock_state() { cat "$root"/package-lock.json "$root"/package.json | sha; }
stamped() { [ "$(cat "$1" 2>/dev/null)" = "$2" ]; }

modules_ready() { stamped "$root/node_modules/.tscni-stamp" "$(lock_state)"; }
build_ready() { [ -x "$root/dist/bin/cnitool" ] && stamped "$root/dist/.stamp" "$(tree_state)"; }

# npm ci, if what is installed is not what the lock file says. vitest asks for a newer Node than 20; the tests
# start it with Bun or with the Node 22 that npm installs, so npm's warning about it is left out.
install_modules() {
  modules_ready && return 0
  (cd "$root" && npm ci --loglevel=error --no-progress </dev/null 8>&-) >&2 || return 1
  lock_state >"$root/node_modules/.tscni-stamp"
}

build() {
  build_ready && return 0
  local state
  state=$(tree_state)
  (cd "$root" && npm run --silent build </dev/null 8>&-) >&2 || return 1
  echo "$state" >"$root/dist/.stamp"
}

# The executable for arm64, so that an x86-64 machine can try it. Where that fails, its tests are skipped by name.
build_for_arm64() {
  [ "$(uname -m)" = x86_64 ] || return 0
  ensure_tools "${arm64_tools[@]}" || return 1
  local stamp=$root/dist/linux-arm64/.stamp state
  state=$(tree_state)
  stamped "$stamp" "$state" && return 0
  (cd "$root/pkg/multicall" && ../../scripts/bun build.ts --target linux-arm64 </dev/null 8>&-) >&2 || return 1
  echo "$state" >"$stamp"
}

# The reference plugins, which the tests run beside ours and the bench against them.
go_bin=$root/.cache/go-bin
go_modules=(
  github.com/containernetworking/plugins/plugins/main/bridge@v1.9.1
  github.com/containernetworking/plugins/plugins/main/loopback@v1.9.1
  github.com/containernetworking/plugins/plugins/ipam/host-local@v1.9.1
  github.com/containernetworking/plugins/plugins/ipam/static@v1.9.1
  github.com/containernetworking/plugins/plugins/main/host-device@v1.9.1
  github.com/containernetworking/plugins/plugins/main/tap@v1.9.1
  github.com/containernetworking/plugins/plugins/main/ptp@v1.9.1
  github.com/containernetworking/plugins/plugins/main/macvlan@v1.9.1
  github.com/containernetworking/plugins/plugins/main/{vlan,ipvlan,dummy}@v1.9.1
  github.com/containernetworking/plugins/plugins/meta/vrf@v1.9.1
  github.com/containernetworking/plugins/plugins/meta/portmap@v1.9.1
  github.com/containernetworking/plugins/plugins/meta/firewall@v1.9.1
  github.com/containernetworking/plugins/plugins/meta/tuning@v1.9.1
  github.com/containernetworking/plugins/plugins/meta/{bandwidth,sbr}@v1.9.1
  github.com/containernetworking/cni/cnitool@v1.3.1
  github.com/containernetworking/cni/plugins/test/noop@v1.3.1
)

go_plugins_ready() { stamped "$go_bin/.stamp" "${go_modules[*]}"; }

# Fails, and says why, where there is no Go to build them with.
install_go_plugins() {
  go_plugins_ready && return 0
  command -v go >/dev/null || { say "Go is not installed, so there are no Go plugins to compare with"; return 1; }
  local module log
  for module in "${go_modules[@]}"; do
    say "go install $module"
    if ! log=$(GOBIN=$go_bin go install "$module" </dev/null 2>&1 8>&-); then
      say "that failed, so it can't be compared with: ${log##*$'\n'}"
      return 1
    fi
  done
  echo "${go_modules[*]}" >"$go_bin/.stamp"
}

# flanneld, without the backend of one cloud, whose library the module proxy does not have.
flannel_module=github.com/flannel-io/flannel@v0.28.4

install_flanneld() {
  stamped "$go_bin/.flanneld" "$flannel_module" && return 0
  command -v go >/dev/null || { say "Go is not installed, so there is no flanneld to try flannel with"; return 1; }
  local work folder log
  work=$(mktemp -d)
  say "go build $flannel_module"
  if log=$(
    {
      folder=$(cd "$work" && go mod download -json "$flannel_module" | sed -n 's/^\t"Dir": "\(.*\)",*$/\1/p') &&
        cp -r "$folder" "$work/flannel" && chmod -R u+w "$work/flannel" && cd "$work/flannel" &&
        rm pkg/backend/tencentvpc/*_windows.go && echo 'package tencentvpc' >pkg/backend/tencentvpc/tencentvpc.go &&
        mkdir -p "$go_bin" && go build -o "$go_bin/flanneld" .
    } </dev/null 2>&1 8>&-
  ); then
    echo "$flannel_module" >"$go_bin/.flanneld"
    rm -rf "$work"
  else
    rm -rf "$work"
    say "that failed, so flannel is not tried with it: ${log##*$'\n'}"
    return 1
  fi
}

# go-cni, which the program in docs/go-cni.md is built with. The tests themselves are cut off from the network.
download_go_cni() {
  command -v go >/dev/null && (cd "$root/pkg/runtime/testing/go-cni" && go mod download) </dev/null >/dev/null 2>&1 8>&-
}

# Whoever changes node_modules and dist is alone with them; whoever uses them shares them. Call it with the
# command that brings them up to date; they are shared until the process ends. What might outlive it is
# started without descriptor 8, the lock.
with_exclusive_tree() {
  mkdir -p "$root/.cache"
  exec 8>"$root/.cache/lock"
  flock -s 8
  if ! { modules_ready && build_ready; }; then
    flock -n -x 8 || { say "waiting for the runs that use the present build"; flock -x 8; }
  fi
  local status=0
  "$@" || status=1
  flock -s 8
  return $status
}

# The options of unshare for a private network and mount namespace; fails where the machine forbids it.
unshare_options() {
  local options
  for options in -nm -Urnm; do
    if unshare $options true 2>/dev/null; then echo "$options"; return 0; fi
  done
  return 1
}

explain_no_namespaces() {
  say "This machine does not let $(id -un) make network namespaces."
  if [ "$(cat /proc/sys/kernel/apparmor_restrict_unprivileged_userns 2>/dev/null)" = 1 ]; then
    say "Ubuntu forbids them to users by kernel.apparmor_restrict_unprivileged_userns=1. Either run this as root"
    say "(sudo $0), or allow them until the next boot:"
    say "  sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0"
  elif [ "$(cat /proc/sys/kernel/unprivileged_userns_clone 2>/dev/null)" = 0 ]; then
    say "Either run this as root, or allow them: sudo sysctl -w kernel.unprivileged_userns_clone=1"
  elif [ "$(id -u)" = 0 ]; then
    say "Root lacks CAP_SYS_ADMIN here, as in a container: start it with --privileged, or use another machine."
  else
    say "Run this as root: sudo $0"
  fi
}
