#!/usr/bin/python3
"""How long a run makes no progress when the node of a shard is lost, with a standby on another node.

usage: takeover.py [--rounds 5] [--silence 500] [--build build/release]

Three nodes on this machine; two workers with the program. In each round the node of the shard is killed (kill -9), in another
it is stopped (SIGSTOP), so that only its silence shows. Prints, by the events of all nodes: from the loss as the scheduler
notes it to the takeover, to a new standby in sync, and the longest time without an applied update.
"""

import argparse
import json
import signal
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

from run_result import Nodes


def lose(bin_folder, silence, number):
    """The three times in milliseconds."""
    nodes = Nodes(bin_folder, 3, ["--silence", f"{silence}ms"])
    try:
        with tempfile.TemporaryDirectory() as folder:
            trace = Path(folder) / "run/events.jsonl"
            program = subprocess.Popen(
                [bin_folder / "fashion-mlp", "--workers", "2", "--shards", "1", "--replicas", "2", "--nodes", nodes.addresses,
                 "--place", "shards=1,standbys=2,workers=0", "--batch", "64", "--epochs", "10000", "--seconds", "6",
                 "--evaluate-every", "0", "--silence", f"{silence}ms", "--quiet", "--trace-json", "--out", Path(folder) / "run"],
                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            while not (trace.exists() and trace.stat().st_size > 200_000):
                time.sleep(0.05)
            nodes.agents[0].send_signal(number)
            program.wait()
            events = [json.loads(line) for line in trace.read_text().splitlines()]
    finally:
        for agent in nodes.agents:
            agent.kill()
            agent.wait()
    first = {event["event"]: event["ns"] for event in reversed(events)}
    applied = sorted(event["ns"] for event in events if event["event"] == "bucket_applied")
    gap = max(after - before for before, after in zip(applied, applied[1:]))
    lost = first["primary_lost"]
    return [1e-6 * time for time in (first["standby_took_over"] - lost, first["standby_in_sync"] - lost, gap)]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--silence", type=int, default=500, help="ms")
    parser.add_argument("--build", default="build/release")
    args = parser.parse_args()
    for name, number in (("killed", signal.SIGKILL), (f"stopped, silence {args.silence} ms", signal.SIGSTOP)):
        rounds = [lose(Path(args.build) / "bin", args.silence, number) for _ in range(args.rounds)]
        print(f"{name}: ms, median (range) of {args.rounds} rounds")
        for what, values in zip(("takeover", "new standby in sync", "without an update"), zip(*rounds)):
            print(f"  {what:20} {statistics.median(values):7.1f} ({min(values):.1f} to {max(values):.1f})")


if __name__ == "__main__":
    main()
