#!/usr/bin/python3
"""Test loss of a text model after a fixed time: in two stages, on one worker, and on two workers.

usage: text_time.py [--seconds 30] [--rounds 3] [--build build/release] [--scenario pipeline-gpt]

A short run measures the speed of each kind; then it trains as many epochs as fit into the time, so that its lr schedule
completes. All use the same batch per update. Prints epochs, seconds and the test loss per character of interleaved rounds.
Needs an otherwise idle machine.
"""

import argparse
import statistics
import sys
from pathlib import Path

from run_result import result_of

BATCH = 32
KINDS = {
    "1 worker, 1 core": (["taskset", "-c", "0"], ["--stages", "1", "--workers", "1", "--micro-batches", "1"]),
    "1 worker, 2 cores": ([], ["--stages", "1", "--workers", "1", "--micro-batches", "1"]),
    "2 stages, 1f1b": ([], ["--schedule", "1f1b"]),
    "2 stages, zb_h1": ([], ["--schedule", "zb_h1"]),
    "2 stages, 2bw": ([], ["--schedule", "2bw", "--staleness", "1"]),
    "2 workers, bsp": ([], ["--stages", "1", "--workers", "2", "--micro-batches", "1"]),
}


def train(program, kind, epochs, seconds=None):
    before, arguments = KINDS[kind]
    batch = BATCH // 2 if kind.startswith("2 workers") else BATCH
    limit = ["--seconds", str(seconds)] if seconds else []
    return result_of(*before, program, "--batch", str(batch), *arguments, "--epochs", str(epochs), "--evaluate-every", "0", *limit)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=30)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--scenario", default="pipeline-gpt")
    parser.add_argument("--build", default="build/release")
    args = parser.parse_args()
    program = Path(args.build) / "bin" / args.scenario
    whole = train(program, "2 workers, bsp", 0.05)["samples_trained"] / 0.05  # samples per epoch
    runs = {kind: [] for kind in KINDS}
    for number in range(args.rounds):
        for kind in KINDS:
            rate = train(program, kind, 1, seconds=max(args.seconds / 10, 2))["samples_per_second"]
            epochs = round(rate * args.seconds / whole, 4)
            run = train(program, kind, epochs)
            runs[kind].append((run["test_loss"], epochs, run["seconds"]))
        print(f"round {number + 1} of {args.rounds}", file=sys.stderr)
    print(f"{args.scenario}, batch {BATCH}, {args.seconds:g} s: median (range) of {args.rounds} rounds")
    print(f"  {'':26} {'loss':26} {'epochs':8} seconds")
    for kind, values in runs.items():
        losses, epochs, seconds = zip(*values)
        loss = f"{statistics.median(losses):.3f} ({min(losses):.3f} to {max(losses):.3f})"
        print(f"  {kind:26} {loss:26} {statistics.median(epochs):<8.3f} {statistics.median(seconds):.1f}")


if __name__ == "__main__":
    main()
