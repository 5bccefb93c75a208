#!/usr/bin/python3
"""Cost of standby shards: the same run on two nodes with one and with two replicas of the shard, interleaved.

usage: standby_cost.py [--rounds 7] [--seconds 5] [--scenario fashion-mlp] [--build build/release] [-- ARGUMENTS OF THE SCENARIO...]

Node 1 has the shard and worker 0, node 2 the standby and worker 1. All processes are on this machine, and connected by
shared memory. Prints samples per second, with two replicas also as a share of one. Needs an otherwise idle machine.
"""

import statistics
import sys
from pathlib import Path

from run_result import Nodes, benchmark_arguments, result_of

PLACE = {1: "shards=1,worker0=1", 2: "shards=1,worker0=1,worker1=2"}


def main():
    args = benchmark_arguments(__doc__)
    bin_folder = Path(args.build) / "bin"
    agents = Nodes(bin_folder)
    rates = {(workers, replicas): [] for workers in (1, 2) for replicas in (1, 2)}
    try:
        for number in range(args.rounds):
            for (workers, replicas), values in rates.items():
                run = result_of(bin_folder / args.scenario, "--workers", str(workers), "--shards", "1", "--replicas", str(replicas),
                                "--nodes", agents.addresses, "--place", PLACE[workers], "--transport", "shm", "--batch", "64",
                                "--epochs", "10000", "--seconds", args.seconds, "--evaluate-every", "0", *args.arguments)
                values.append(run["samples_per_second"])
            print(f"round {number + 1} of {args.rounds}", file=sys.stderr)
    finally:
        agents.stop()
    print(f"{args.scenario}, 1 shard, batch 64: samples/s, median (range) of {args.rounds} rounds")
    for (workers, replicas), values in rates.items():
        median = statistics.median(values)
        share = f", {median / statistics.median(rates[workers, 1]):.2f} of one" if replicas > 1 else ""
        print(f"  {workers} worker(s), {replicas} replica(s): {median:8.0f} ({min(values):.0f} to {max(values):.0f}){share}")


if __name__ == "__main__":
    main()
