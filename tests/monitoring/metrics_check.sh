#!/usr/bin/env bash
# metrics_check.sh FOLDER_OF_PROGRAMS: scrapes a run and a simulated one, and lets Prometheus's promtool check the names, the
# types and the texts of their metrics. Exit code 77: skipped, because promtool is missing.
set -euo pipefail
programs=$1

command -v promtool >/dev/null || {
  echo "skipped: promtool is not installed"
  exit 77
}

folder=$(mktemp -d)
run=
trap '[ -z "$run" ] || kill "$run" 2>/dev/null || true; rm -rf "$folder"' EXIT

fail() {
  echo "$*"
  cat "$folder/errors" >&2 || true
  exit 1
}

# get URL: the body of the answer.
get() { python3 -c 'import sys, urllib.request; print(urllib.request.urlopen(sys.argv[1]).read().decode())' "$1"; }

# check_metrics PROGRAM FLAGS...: PROGRAM runs until it is stopped.
check_metrics() {
  local url='' attempt
  "$programs/$1" --metrics 0 --out "$folder/$RANDOM" "${@:2}" >"$folder/out" 2>"$folder/errors" &
  run=$!
  for attempt in $(seq 300); do
    url=$(grep -ao 'http://127.0.0.1:[0-9]*/metrics' "$folder/errors" | head -n 1) || true
    if [ -n "$url" ] && get "$url" >"$folder/scrape" && grep -q '^leeway_iterations_total [1-9]' "$folder/scrape"; then break; fi
    kill -0 "$run" 2>/dev/null || fail "$1 ended before it had metrics"
    sleep 0.1
  done
  grep -q '^leeway_iterations_total [1-9]' "$folder/scrape" || fail "$1 has no metrics after $attempt attempts"
  promtool check metrics <"$folder/scrape" || fail "promtool refuses the metrics of $1"
  kill -INT "$run"
  wait "$run" || true
  run=
}

check_metrics linear-regression --epochs 1000000 --checkpoint-every 1s
check_metrics linear-regression --epochs 1000000 --compress push=int8 --staleness asp --simulate
echo "promtool accepts all metrics"
