# shellcheck shell=bash
# Sourced by the other scripts: changes to the root of the tree, installs missing packages, configures and builds.
# Needs bash. Prints only to standard error, so that standard output belongs to the program that runs.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root"

say() { printf 'leeway: %s\n' "$*" >&2; }
die() {
  say "$*"
  exit 1
}

# wanted_packages SCRIPT: the packages that packages.txt lists for it.
wanted_packages() {
  sed -e 's/#.*//' scripts/packages.txt |
    awk -v script="$1" '{ for (i = 2; i <= NF; ++i) if ($i == script) print $1 }'
}

# missing_packages SCRIPT: the wanted packages that are not installed.
missing_packages() {
  LC_ALL=C comm -23 <(wanted_packages "$1" | LC_ALL=C sort -u) \
    <(dpkg-query -W -f '${db:Status-Status} ${Package}\n' | sed -n 's/^installed //p' | LC_ALL=C sort -u)
}

# Runs a command as root: directly, or with sudo, which asks for a password only at a terminal.
as_root() {
  if [ "$(id -u)" -eq 0 ]; then
    "$@"
  elif ! command -v sudo >/dev/null; then
    return 1
  elif [ -t 0 ]; then
    sudo "$@"
  else
    sudo -n "$@"
  fi
}

apt_get() {
  as_root env DEBIAN_FRONTEND=noninteractive \
    apt-get -qq -o DPkg::Lock::Timeout=600 -o Dpkg::Use-Pty=0 "$@" </dev/null >&2
}

# Without apt the user installs the packages: lists missing tools, and explains how CMake finds the libraries.
check_without_apt() {
  local tool missing=()
  for tool in c++ cmake ninja capnp; do
    command -v "$tool" >/dev/null || missing+=("$tool")
  done
  if [ ${#missing[@]} -gt 0 ]; then
    say "this system has no apt-get, and these programs are missing: ${missing[*]}"
    die "install the equivalents of scripts/packages.txt, then try again"
  fi
  if [ -z "${CMAKE_PREFIX_PATH:-}" ] && ! configured release; then
    say "this system has no apt-get: install the libraries of scripts/packages.txt yourself;" \
      "if CMake does not find one, name its folder: CMAKE_PREFIX_PATH=/opt/lib $0"
  fi
}

# install_packages SCRIPT
install_packages() {
  if ! command -v apt-get >/dev/null || ! command -v dpkg-query >/dev/null; then
    check_without_apt
    return
  fi
  local missing
  missing=$(missing_packages "$1" | tr '\n' ' ')
  [ -n "$missing" ] || return 0
  say "installing $missing"
  apt_get update || say "cannot update the package lists; using the present ones"
  # shellcheck disable=SC2086  # a list of names
  apt_get install --no-install-recommends $missing ||
    die "cannot install the packages; run as root: apt-get update && apt-get install $missing"
}

# True if build/PRESET is configured for this path of the tree.
configured() {
  [ -f "build/$1/build.ninja" ] &&
    grep -qxF "CMAKE_HOME_DIRECTORY:INTERNAL=$root" "build/$1/CMakeCache.txt"
}

# The number of parallel compilers: one per core, at most one per 1.5 GB of memory.
jobs() {
  local cores memory_kb by_memory
  cores=$(nproc 2>/dev/null || echo 2)
  memory_kb=$(sed -n 's/^MemTotal: *\([0-9]*\).*/\1/p' /proc/meminfo 2>/dev/null || true)
  by_memory=$((${memory_kb:-3000000} / 1500000 + 1))
  echo $((cores < by_memory ? cores : by_memory))
}

# has_setting PRESET NAME=VALUE: true if build/PRESET is configured with -DLEEWAY_NAME=VALUE.
has_setting() { grep -q "^LEEWAY_${2%%=*}:[A-Z]*=${2#*=}\$" "build/$1/CMakeCache.txt"; }

# configure PRESET [NAME=VALUE...]: sets LEEWAY_NAME. Changes only these settings of a configured folder; a new folder
# starts without tests, benchmarks and the GPU module.
configure() {
  local preset=$1 setting settings=() options=()
  shift
  if configured "$preset"; then
    for setting in "$@"; do
      has_setting "$preset" "$setting" || settings+=("$setting")
    done
    [ ${#settings[@]} -gt 0 ] || return 0
  else
    options=(--fresh)
    settings=(TESTS=OFF BENCH=OFF CUDA=OFF "$@")
  fi
  say "configuring build/$preset"
  local log
  log=$(mktemp)
  if ! cmake --preset "$preset" "${options[@]}" "${settings[@]/#/-DLEEWAY_}" >"$log" 2>&1 </dev/null; then
    cat "$log" >&2
    rm -f "$log"
    die "CMake cannot configure build/$preset; its errors are above"
  fi
  rm -f "$log"
}

# build PRESET [TARGET...]: builds targets of a configured folder.
build() {
  local preset=$1
  shift
  ninja -C "build/$preset" -n "$@" 2>/dev/null </dev/null | grep -q 'no work to do' && return
  say "building build/$preset"
  ninja -C "build/$preset" -j "$(jobs)" "$@" </dev/null >&2
}

# run_tests PRESET [ctest argument...]
run_tests() {
  local preset=$1
  shift
  # One more than cores, because tests of processes wait for a part of their time.
  ctest --test-dir "build/$preset" --output-on-failure -j "$(($(jobs) + 1))" "$@" </dev/null
}
