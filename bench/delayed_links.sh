#!/usr/bin/env bash
# Round trips per iteration when the links between hosts have delay. Three network namespaces are the
# hosts: of the program, of the shards, and of two workers.
#
# delayed_links.sh FOLDER_OF_PROGRAMS [DELAY_MS [LOSS]]: each way, 50 by default; share of lost frames, 0.
set -euo pipefail
bin=$(cd "$1" && pwd)
delay=${2:-50}
loss=${3:-0}
bench=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
here=$bench/../tests/cluster
source "$here/namespaces.sh"

# measure LABEL PROGRAM ITERATIONS ARGUMENTS...: both workers are on c, the shards on b.
measure() {
  local label=$1 program=$2 iterations=$3
  shift 3
  rm -rf "$folder/run"
  (on "$program_host" "$bin/$program" --nodes 10.98.7.2:4242,10.98.7.3:4242 --tls "$folder/tls/program" \
    --place shards=1,workers=2 --workers 2 --epochs 1000 --iterations $((2 * iterations)) --evaluate-every 0 \
    --checkpoint-every none --out "$folder/run" "$@") >"$folder/run.log" 2>&1 || true  # such short runs do not train well
  [ -f "$folder/run/result.json" ] || {
    cat "$folder/run.log"
    exit 1
  }
  python3 - "$label" "$folder/run/result.json" "$delay" <<'END'
import json, sys
label, path, delay = sys.argv[1:]
result = json.load(open(path))
iterations = max(worker["iterations"] for worker in result["workers"])
trip = 2e-3 * float(delay)
print(f"{label:44} {iterations:6} {result['seconds']:8.2f} s {result['seconds'] / iterations / trip:6.2f}"
      f" {result['samples_per_second']:10.0f}", flush=True)
END
}

start_agents
switch delay "$delay"
switch loss "$loss"
echo "$delay ms each way, $loss of frames lost"
printf '%-44s %6s %10s %6s %10s\n' "" iter. time trips samples/s
measure "linear-regression, ssp 3" linear-regression 60 --staleness 3
measure "linear-regression, bsp" linear-regression 60 --staleness bsp
measure "linear-regression, ssp 3, prefetch" linear-regression 60 --staleness 3 --prefetch
measure "fashion-mlp, ssp 3, batch 64" fashion-mlp 60 --staleness 3 --batch 64
measure "fashion-mlp, ssp 3, batch 64, prefetch" fashion-mlp 60 --staleness 3 --batch 64 --prefetch
measure "fashion-mlp, ssp 3, batch 512" fashion-mlp 60 --staleness 3 --batch 512
measure "fashion-mlp, ssp 3, batch 512, prefetch" fashion-mlp 60 --staleness 3 --batch 512 --prefetch
