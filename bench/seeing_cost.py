#!/usr/bin/python3
"""Cost of events, the page and metrics: the same run with each of them, interleaved.

usage: seeing_cost.py [--rounds 7] [--seconds 5] [--scenario fashion-mlp] [--build build/release] [-- ARGUMENTS OF THE SCENARIO...]

A page is followed by one viewer. Prints samples per second and the processor time per sample of the whole program, each
compared with the plain run. Needs an otherwise idle machine.
"""

import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import threading
import urllib.request
from pathlib import Path

from run_result import benchmark_arguments

KINDS = {"plain": [], "--trace": ["--trace"], "--trace-json": ["--trace-json"],
         "--serve, one viewer": ["--serve", "0"], "--metrics": ["--metrics", "0"]}


def follow(url):
    """Reads the changes of a page like a browser, until the run ends."""
    try:
        with urllib.request.urlopen(url + "events") as stream:
            while stream.read1(1 << 16):
                pass
    except OSError:
        pass


def measure(program, arguments):
    """Samples per second, and processor seconds per million samples."""
    with tempfile.TemporaryDirectory() as folder:
        before = os.times()
        process = subprocess.Popen([program, *arguments, "--out", Path(folder) / "run"], stdout=subprocess.DEVNULL,
                                   stderr=subprocess.PIPE, text=True)
        for line in process.stderr:
            if found := re.search(r"page: (\S+)", line):
                threading.Thread(target=follow, args=(found[1],), daemon=True).start()
        process.wait()
        after = os.times()
        result = json.loads((Path(folder) / "run/result.json").read_text())
    spent = after.children_user - before.children_user + after.children_system - before.children_system
    return result["samples_per_second"], spent / result["samples_trained"] * 1e6


def main():
    args = benchmark_arguments(__doc__)
    program = Path(args.build) / "bin" / args.scenario
    shared = ["--workers", "4", "--slow", "none", "--epochs", "10000", "--seconds", args.seconds, "--evaluate-every", "0",
              *args.arguments]
    found = {kind: [] for kind in KINDS}
    for number in range(args.rounds):
        for kind, flags in KINDS.items():
            found[kind].append(measure(program, [*shared, *flags]))
        print(f"round {number + 1} of {args.rounds}", file=sys.stderr)
    print(f"{args.scenario}, 4 workers: medians of {args.rounds} rounds, and of the ratios to the plain run of the same round")
    for kind, values in found.items():
        rates, costs = zip(*values)
        ratios = [(rate / plain[0], cost / plain[1]) for (rate, cost), plain in zip(values, found["plain"])]
        rate, cost = (statistics.median(one) for one in zip(*ratios))
        print(f"  {kind:20} {statistics.median(rates):9.0f} samples/s ({rate - 1:+.1%})   "
              f"{statistics.median(costs):7.2f} s of processor per million samples ({cost - 1:+.1%})")


if __name__ == "__main__":
    main()
