#!/usr/bin/env bash
# deploy/slurm/leeway.sbatch, with stand-ins for Slurm's commands: the allocation is three addresses of
# this host.
#
# slurm_test.sh FOLDER_OF_PROGRAMS
set -euo pipefail
bin=$(cd "$1" && pwd)
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
mkdir "$folder/slurm"

cat >"$folder/slurm/scontrol" <<'END'
#!/usr/bin/env bash
[ "$*" = "show hostnames node[1-3]" ] || exit 1
printf '127.0.0.%s\n' 2 3 4
END
# Runs the command once for each node, ends all when one fails, and passes signals on.
cat >"$folder/slurm/srun" <<'END'
#!/usr/bin/env bash
while [[ $1 == --* ]]; do shift; done
trap 'kill -TERM $(jobs -p) 2>/dev/null' TERM
for number in 2 3 4; do SLURMD_NODENAME=127.0.0.$number "$@" & done
status=0
for task in $(jobs -p); do wait -n || { status=$?; kill -TERM $(jobs -p) 2>/dev/null; }; done
wait
exit $status
END
chmod +x "$folder"/slurm/*

submit() {  # submit LOG FLAGS...: the run of a batch script
  local log=$1
  shift
  (cd "$folder" && PATH=$folder/slurm:$bin:$PATH SLURM_JOB_NODELIST='node[1-3]' SLURM_JOB_NUM_NODES=3 \
    LEEWAY_TLS=none LEEWAY_PORT=$port bash "$root/deploy/slurm/leeway.sbatch" "$@" >"$log" 2>&1)
}
port=$((20000 + RANDOM % 10000))

submit "$folder/run.log" linear-regression --workers 3 --epochs 2 --no-out || {
  cat "$folder/run.log"
  exit 1
}
grep -q "127.0.0.4:$port" "$folder/run.log"
grep -q "No problems" "$folder/run.log"
[ -z "$(pgrep -f "leeway node --listen 127.0.0.[234]:$port" || true)" ] || {
  echo "agents still run"
  exit 1
}

echo "--- a port that is taken"
"$bin/leeway" node --listen "127.0.0.3:$port" 2>"$folder/other.log" &
other=$!
until grep -q listening "$folder/other.log"; do sleep 0.1; done
status=0
submit "$folder/taken.log" linear-regression --epochs 2 --no-out || status=$?
kill $other
[ $status -ne 0 ] && grep -q "127.0.0.3:$port" "$folder/taken.log" || {
  echo "exit code $status"
  cat "$folder/taken.log"
  exit 1
}
echo "passed"
