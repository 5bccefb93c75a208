#!/usr/bin/env bash
# Three hosts, network namespaces whose links have delay and loss, and break. For scripts that set `bin`
# and `here`, the folders of Leeway's programs and of switch.py. Exits with code 77 where this is not
# possible.
#
# hosts         names of the namespaces, at 10.98.7.1 to 10.98.7.3
# folder        a temporary folder, which has TLS folders tls/program, tls/b and tls/c
# switch ...    a command of switch.py

skip() {
  echo "skipped: $1"
  exit 77
}
[ "$(id -u)" -eq 0 ] || skip "network namespaces need root"
command -v ip >/dev/null || skip "ip is not installed (package iproute2)"
[ -w /dev/net/tun ] || skip "/dev/net/tun is missing"

hosts=("lw$$a" "lw$$b" "lw$$c")
program_host=${hosts[0]}
folder=$(mktemp -d)
made=()
finish() {
  local status=$?
  local host
  for host in "${made[@]}"; do
    ip netns pids "$host" | xargs -r kill -9 2>/dev/null || true
    ip netns del "$host" || true
  done
  [ -z "${switch_pid:-}" ] || kill "$switch_pid" 2>/dev/null || true
  if [ $status -ne 0 ]; then tail -n 40 "$folder"/*.log 2>/dev/null || true; fi
  rm -rf "$folder"
  exit $status
}
trap finish EXIT
for host in "${hosts[@]}"; do
  ip netns add "$host" 2>"$folder/netns" || skip "no network namespaces: $(cat "$folder/netns")"
  made+=("$host")
done

coproc SWITCH { exec python3 "$here/switch.py" "${hosts[@]}" 2>"$folder/switch.log"; }
switch_pid=$SWITCH_PID
switch_out=${SWITCH[0]}
switch_in=${SWITCH[1]}
answer() {
  local line
  read -r -t 120 -u "$switch_out" line && [ "$line" = "$1" ] || {
    echo "the switch does not answer"
    exit 1
  }
}
switch() {
  echo "$*" >&"$switch_in"
  answer ok
}
answer ready
number=0
for host in "${hosts[@]}"; do
  number=$((number + 1))
  ip -n "$host" link set lo up
  ip -n "$host" addr add "10.98.7.$number/24" dev lw
  ip -n "$host" link set lw up
done

"$bin/leeway" cert "$folder/tls" --node program --node b --node c >/dev/null

expect() {  # expect LOG TEXT
  grep -q -- "$2" "$1" || {
    echo "$1 does not contain \"$2\""
    cat "$1"
    exit 1
  }
}
await() {  # await LOG TEXT [LINES]: for up to two minutes, as a machine under full load is slow
  local lines
  for _ in $(seq 1200); do
    lines=$(grep -cs -- "$2" "$1" || true)
    [ "${lines:-0}" -lt "${3:-1}" ] || return 0
    sleep 0.1
  done
  echo "$1 has ${lines:-0} lines with \"$2\", not ${3:-1}"
  exit 1
}

on() {  # on HOST COMMAND...: becomes the command, so that its process can be waited for
  local host=$1
  shift
  exec ip netns exec "$host" "$@"
}
start_agents() {
  on "${hosts[1]}" "$bin/leeway" node --listen 10.98.7.2:4242 --tls "$folder/tls/b" 2>"$folder/b.log" &
  on "${hosts[2]}" "$bin/leeway" node --listen 10.98.7.3:4242 --tls "$folder/tls/c" 2>"$folder/c.log" &
  for log in "$folder/b.log" "$folder/c.log"; do
    await "$log" listening
  done
}
