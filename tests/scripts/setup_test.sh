#!/usr/bin/env bash
# Tests of scripts/setup.sh: what it asks the package manager, which is replaced by a program that keeps a record.
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

# A tree of its own, whose packages are alpha and beta, and a folder of programs that come first in PATH.
mkdir -p "$work/tree/scripts" "$work/bin"
cp "$here/../../scripts/setup.sh" "$work/tree/scripts/"
printf '# the packages\nalpha\nbeta  # why\n\n' >"$work/tree/scripts/packages.txt"
fake() { # fake NAME BODY
  printf '#!/bin/sh\n%s\n' "$2" >"$work/bin/$1"
  chmod +x "$work/bin/$1"
}
fake apt-get "echo \"\$*\" >>$work/calls"
fake id 'echo 0'

# Runs a function of setup.sh from another folder, without input; keeps its errors.
setup() {
  (
    cd /
    PATH="$work/bin:$PATH" CI=true bash -c 'source "$0/tree/scripts/setup.sh"; "$@"' "$work" "$@" \
      </dev/null 2>"$work/errors"
  )
}
calls() { sed -e 's/.*Use-Pty=0 //' "$work/calls" 2>/dev/null | paste -sd';' || true; }

fake dpkg-query 'echo installed alpha; echo installed beta; echo config-files gamma'
setup install_packages
expect "all packages are there: the package manager is left alone" "$(calls)" ""

fake dpkg-query 'echo installed alphabet; echo config-files alpha; echo installed beta'
setup install_packages
expect "a package that is missing is installed by name" "$(calls)" \
  "update;install --no-install-recommends alpha"

rm -f "$work/calls"
fake apt-get "echo \"\$*\" >>$work/calls; exit 100"
status=0
setup install_packages || status=$?
expect "a failed installation ends the script" "$status" 1
expect "and says what to do" "$(grep -c 'as root: apt-get update && apt-get install alpha' "$work/errors")" 1

expect "it works from any folder" "$(setup pwd)" "$work/tree"
expect "a build folder of another tree does not count" "$(
  mkdir -p "$work/tree/build/release"
  touch "$work/tree/build/release/build.ninja"
  echo CMAKE_HOME_DIRECTORY:INTERNAL=/elsewhere >"$work/tree/build/release/CMakeCache.txt"
  setup configured release && echo yes || echo no
)" no
expect "at least one compiler runs" "$([ "$(setup jobs)" -ge 1 ] && echo yes)" yes

[ "$failures" -eq 0 ] && echo "all passed"
