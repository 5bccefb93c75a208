#!/usr/bin/python3
"""Cost of distributing a run over processes: the same run in one process and in three, interleaved, on the same cores.

usage: spread.py [--rounds 7] [--seconds 5] [--scenario fashion-mlp] [--build build/release] [-- ARGUMENTS OF THE SCENARIO...]

Two workers and one shard run in one process, then in a program and two node agents (worker 0 with the shard) over shared
memory, and over TCP. Prints samples per second and the loss of speed in percent. Needs an otherwise idle machine.
"""

import statistics
import sys
from pathlib import Path

from run_result import Nodes, benchmark_arguments, result_of

PLACE = "shards=1,worker0=1,worker1=2"


def main():
    args = benchmark_arguments(__doc__)
    bin_folder = Path(args.build) / "bin"
    agents = Nodes(bin_folder)
    try:
        shared = ["--workers", "2", "--shards", "1", "--epochs", "10000", "--seconds", args.seconds, "--evaluate-every", "0",
                  *args.arguments]
        nodes = ["--nodes", agents.addresses, "--place", PLACE]
        kinds = {"one process": shared, "three, shared memory": [*shared, *nodes, "--transport", "shm"],
                 "three, TCP": [*shared, *nodes, "--transport", "tcp"]}
        rates = {kind: [] for kind in kinds}
        for number in range(args.rounds):
            for kind, arguments in kinds.items():
                run = result_of(bin_folder / args.scenario, *arguments)
                rates[kind].append(run["samples_per_second"])
            print(f"round {number + 1} of {args.rounds}", file=sys.stderr)
    finally:
        agents.stop()
    single = statistics.median(rates["one process"])
    print(f"{args.scenario}, 2 workers, 1 shard: samples/s, median (range) of {args.rounds} rounds")
    for kind, values in rates.items():
        median = statistics.median(values)
        print(f"  {kind:22} {median:10.0f} ({min(values):.0f} to {max(values):.0f})  {median / single - 1:+.1%}")


if __name__ == "__main__":
    main()
