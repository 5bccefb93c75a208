#!/usr/bin/python3
"""Bytes and samples/s of host groups beside workers that push one by one, measured and simulated.

usage: group_network.py [--rounds 3] [--seconds 5] [--scenario fashion-mlp] [--build build/release] [--per-node 4]
                        [--links none 1] [-- ARGUMENTS OF THE SCENARIO...]

Two nodes in network namespaces (see network_table.py) have some workers and one shard each, under bsp. Sent: bytes of a node
per round in gradients, as its link counts them; a ring all-reduce of the two nodes sends one gradient. Needs root and an
otherwise idle machine.
"""

import os
import statistics
import sys
import tempfile
from pathlib import Path

from network_table import LATENCY, Measurement, Network
from run_result import benchmark_arguments, median_and_spread, output_of, result_of

WAYS = {"none": "each worker pushes", "host": "host groups"}


def place_of(per_node):
    """A shard and adjacent workers on each of the two nodes."""
    workers = [f"worker{number}={1 + number // per_node}" for number in range(2 * per_node)]
    return ",".join(["shards=1+2", *workers])


def main():
    args = benchmark_arguments(__doc__, **{"links": ["none", "1"], "per-node": ["4"]})
    per_node = int(args.per_node[0])
    bin_folder = Path(args.build).resolve() / "bin"
    shared = ["--workers", str(2 * per_node), "--shards", "2", "--staleness", "bsp", "--slow", "none", "--epochs", "10000",
              "--evaluate-every", "0", *args.arguments]
    timed = [*shared, "--seconds", args.seconds]
    cores = max(1, os.cpu_count() // 2)  # of each node: the two share this machine
    network = Network()
    try:
        network.make()
        with tempfile.TemporaryDirectory() as folder:
            world = Path(folder) / "world.toml"
            output_of(bin_folder / args.scenario, *shared, "--calibrate", world)
            measurement = Measurement(network, bin_folder, folder)
            try:
                print(f"| {args.scenario}, {per_node} workers per node | | sent | samples/s | simulated |\n" + "|---" * 5 + "|")
                for text in args.links:
                    link = None if text == "none" else float(text)
                    network.limit(link)
                    rates, sent = {way: [] for way in WAYS}, {way: [] for way in WAYS}
                    for number in range(args.rounds):
                        for way in WAYS:
                            before = network.sent_bytes("b")
                            result = measurement.run(args.scenario, "--aggregate", way, *timed, place=place_of(per_node))
                            members = 2 if way == "host" else 2 * per_node
                            gradient = result["pushed_bytes"] / result["iterations"]
                            rounds = result["iterations"] / members
                            sent[way].append((network.sent_bytes("b") - before) / rounds / gradient)
                            rates[way].append(result["samples_per_second"])
                        print(f"{text}: round {number + 1} of {args.rounds}", file=sys.stderr)
                    name = "not limited" if link is None else f"{text} Gbit/s"
                    for way, words in WAYS.items():
                        simulated = result_of(
                            bin_folder / args.scenario, "--simulate", "--gradients", "none", "--world",
                            f"@{world},nodes=pairs,workers_per_node={per_node},cores={cores},latency={LATENCY},link={link or 0}",
                            "--aggregate", way, *timed)["samples_per_second"]
                        of, spread = median_and_spread(rates[way])
                        print(f"| {name} | {words} | {statistics.median(sent[way]):.2f} | {of:,.0f} ± {spread:.0%} | "
                              f"{simulated:,.0f} |", flush=True)
            finally:
                measurement.stop()
    finally:
        network.remove()


if __name__ == "__main__":
    main()
