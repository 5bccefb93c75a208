#!/usr/bin/env bash
# A cluster on three hosts (network namespaces) whose links have delay and loss, and break. The last parts have a standby shard.
#
# namespaces_test.sh FOLDER_OF_PROGRAMS. Exit code 77: skipped; the output has the reason.
set -euo pipefail
bin=$(cd "$1" && pwd)
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

source "$here/namespaces.sh"

# train LOG ARGUMENTS...: the shard is on b, one worker on each host.
train() {
  local log=$1
  shift
  on "$program_host" "$bin/linear-regression" --nodes 10.98.7.2:4242,10.98.7.3:4242 --tls "$folder/tls/program" \
    --place "${place:-shards=1,worker0=1,worker1=2}" --workers 2 --shards 1 --no-out "$@" >"$log" 2>&1
}
ends_with() {  # ends_with CODE: waits for the run and checks its exit code
  local status=0
  wait "$run" || status=$?
  [ $status -eq "$1" ] || {
    echo "exit code $status, not $1"
    exit 1
  }
}
start_agents
echo "--- links with delay and loss"
switch delay 5
switch loss 0.01
(train "$folder/lossy.log" --staleness bsp --iterations 300)
# The address at which the nodes can call the program.
expect "$folder/lossy.log" "listening on 10.98.7.1:"

switch delay 1
switch loss 0

echo "--- c cannot connect to b, and leeway doctor names the direction"
doctor() {
  (on "$program_host" "$bin/leeway" doctor 10.98.7.2:4242,10.98.7.3:4242 --tls "$folder/tls/program" >"$folder/doctor.log" 2>&1)
}
doctor
expect "$folder/doctor.log" "No problems"
one_way=(rule add to 10.98.7.2 ipproto tcp dport 4242 prohibit)
ip -n "${hosts[2]}" "${one_way[@]}"
if doctor; then
  echo "leeway doctor has not found the problem"
  exit 1
fi
expect "$folder/doctor.log" "10.98.7.3:4242 does not reach 10.98.7.2:4242: "
if grep "10.98.7.2:4242 does not reach" "$folder/doctor.log"; then exit 1; fi
ip -n "${hosts[2]}" "${one_way[@]/add/del}"

echo "--- a worker's host is disconnected and returns"
(train "$folder/cut.log" --staleness 3 --epochs 0 --seconds 3600) &
run=$!
await "$folder/b.log" "began the job" 2
switch cut "${hosts[2]}"
await "$folder/cut.log" "evicted"
switch mend "${hosts[2]}"
await "$folder/cut.log" "worker 1 is back"
kill -TERM $run
ends_with 130

echo "--- the shard's host is disconnected"
(train "$folder/lost.log" --staleness 3 --epochs 0 --seconds 3600) &
run=$!
await "$folder/b.log" "began the job" 3
switch cut "${hosts[1]}"
ends_with 1
expect "$folder/lost.log" "10.98.7.2:4242"
switch mend "${hosts[1]}"
await "$folder/b.log" "; free" 3

place=shards=1,standbys=2,workers=0
echo "--- a shard and its standby do not hear each other"
(train "$folder/apart.log" --replicas 2 --staleness 3 --epochs 0 --seconds 3600) &
run=$!
await "$folder/b.log" "began the job" 4
await "$folder/c.log" "began the job" 4
switch cut "${hosts[1]}" "${hosts[2]}"
await "$folder/apart.log" "standby 0 on node 10.98.7.3:4242 cannot be reached from node 10.98.7.2:4242; the shard continues"
switch mend "${hosts[1]}" "${hosts[2]}"
await "$folder/apart.log" "shard 0 has a standby again"

echo "--- the shard's host is disconnected, and its standby takes over"
switch cut "${hosts[1]}"
await "$folder/apart.log" "the standby of shard 0 has taken over"
switch mend "${hosts[1]}"
await "$folder/apart.log" "shard 0 has a standby again" 2
kill -TERM $run
ends_with 130
echo "passed"
