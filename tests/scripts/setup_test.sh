#!/usr/bin/env bash
# Tests of scripts/setup.sh. A fake package manager records the calls.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failures=0

expect() { # expect WHAT FOUND WANTED
  if [ "$2" != "$3" ]; then
    printf 'FAILED: %s\n  found:  %s\n  wanted: %s\n' "$1" "$2" "$3"
    failures=$((failures + 1))
  fi
}

# A separate tree, whose script `two` needs the packages alpha and beta. The fake programs come first in PATH.
mkdir -p "$work/tree/scripts" "$work/bin"
cp "$here/../../scripts/setup.sh" "$work/tree/scripts/"
printf '# the packages\nalpha  one two\nbeta two # why\n\ngamma one\n' >"$work/tree/scripts/packages.txt"
fake() { # fake NAME BODY
  printf '#!/bin/sh\n%s\n' "$2" >"$work/bin/$1"
  chmod +x "$work/bin/$1"
}
fake apt-get "echo \"\$*\" >>$work/calls"
fake id 'echo 0'

# Runs a function of setup.sh from another folder, without input. Stores its standard error.
setup() {
  (
    cd /
    PATH="$work/bin:$PATH" CI=true bash -c 'source "$0/tree/scripts/setup.sh"; "$@"' "$work" "$@" \
      </dev/null 2>"$work/errors"
  )
}
calls() { sed -e 's/.*Use-Pty=0 //' "$work/calls" 2>/dev/null | paste -sd';' || true; }

fake dpkg-query 'echo installed alpha; echo installed beta; echo config-files gamma'
setup install_packages two
expect "without missing packages the package manager is not called" "$(calls)" ""

fake dpkg-query 'echo installed alphabet; echo config-files alpha; echo installed beta'
setup install_packages two
expect "a missing package is installed by name" "$(calls)" \
  "update;install --no-install-recommends alpha"

rm -f "$work/calls"
setup install_packages one
expect "a script installs only its own packages" "$(calls)" "update;install --no-install-recommends alpha gamma"

rm -f "$work/calls"
fake apt-get "echo \"\$*\" >>$work/calls; exit 100"
status=0
setup install_packages two || status=$?
expect "a failed installation ends the script" "$status" 1
expect "a failed installation prints the command to run" "$(grep -c 'as root: apt-get update && apt-get install alpha' "$work/errors")" 1

expect "setup.sh works from any folder" "$(setup pwd)" "$work/tree"
expect "a build folder of another tree does not count" "$(
  mkdir -p "$work/tree/build/release"
  touch "$work/tree/build/release/build.ninja"
  echo CMAKE_HOME_DIRECTORY:INTERNAL=/elsewhere >"$work/tree/build/release/CMakeCache.txt"
  setup configured release && echo yes || echo no
)" no

# A configured folder, and a CMake that records its options.
fake cmake "echo \"\$*\" >>$work/calls"
configured_with() { # configured_with WANTED_HOME SETTING...
  {
    echo "CMAKE_HOME_DIRECTORY:INTERNAL=$1"
    shift
    printf '%s\n' "$@"
  } >"$work/tree/build/release/CMakeCache.txt"
  rm -f "$work/calls"
}
configured_with /elsewhere
setup configure release TESTS=ON
expect "a new folder is configured with only the named settings" "$(calls)" \
  "--preset release --fresh -DLEEWAY_TESTS=OFF -DLEEWAY_BENCH=OFF -DLEEWAY_CUDA=OFF -DLEEWAY_TESTS=ON"
configured_with "$work/tree" LEEWAY_TESTS:BOOL=OFF LEEWAY_BENCH:BOOL=ON
setup configure release TESTS=ON
expect "a configured folder gets the missing settings and keeps the others" "$(calls)" \
  "--preset release -DLEEWAY_TESTS=ON"
configured_with "$work/tree" LEEWAY_TESTS:BOOL=ON
setup configure release TESTS=ON
expect "a folder with all settings is not configured again" "$(calls)" ""

expect "there is at least one compiler job" "$([ "$(setup jobs)" -ge 1 ] && echo yes)" yes

[ "$failures" -eq 0 ] && echo "all passed"
