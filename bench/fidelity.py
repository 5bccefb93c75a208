#!/usr/bin/python3
"""The accuracy of the simulator's predictions for this machine: the same plans on threads and in a calibrated world.

usage: fidelity.py [--rounds 5] [--seconds 4] [--cases ssp3,bsp] [--build build/release] [--write docs/simulator.md]

Each round calibrates with each plan, runs it on threads, and simulates as many iterations without gradients. Compares
samples per second, pulls that are parked for 100 us or longer, and the share of time that workers wait. A measured run is
repeated up to three times if other programs used more than a tenth of a core. --write replaces the table of a page, which
stands between two comments.
Needs an otherwise idle machine.
"""

import argparse
import datetime
import json
import os
import resource
import statistics
import sys
import tempfile
import textwrap
import time
from pathlib import Path

from run_result import output_of, processor

MLP = ["fashion-mlp", "--shards", "2", "--batch", "64"]
TWO = [*MLP, "--workers", "2"]
CASES = {
    "ssp3": ("fashion-mlp, ssp(3), worker 1 takes 4x", [*TWO, "--staleness", "3", "--slow", "1:4x"]),
    "bsp": ("fashion-mlp, bsp, worker 1 takes 4x", [*TWO, "--staleness", "bsp", "--slow", "1:4x"]),
    "bursts": ("fashion-mlp, ssp(1), worker 1 takes 4x in bursts", [*TWO, "--staleness", "1", "--slow", "1:4x@20%/20"]),
    "asp": ("fashion-mlp, asp", [*TWO, "--staleness", "asp", "--slow", "none"]),
    "even": ("fashion-mlp, bsp, equal workers", [*TWO, "--staleness", "bsp", "--slow", "none"]),
    "four": ("fashion-mlp, ssp(1), 4 equal workers", [*MLP, "--workers", "4", "--staleness", "1", "--slow", "none"]),
    "lenet": ("fashion-lenet, ssp(3)", ["fashion-lenet", "--workers", "2", "--staleness", "3"]),
    "gpt": ("char-gpt, bsp", ["char-gpt", "--workers", "2", "--staleness", "bsp"]),
    "pipeline": ("pipeline-gpt, 2 stages", ["pipeline-gpt", "--stages", "2", "--workers", "2"]),
}
FIGURES = ("samples/s", "parked", "waiting")
LONG_NS = 100_000
QUIET, ATTEMPTS = 0.1, 3
MARKS = ("<!-- fidelity.py writes this table -->", "<!-- end of the table -->")


def machine_seconds():
    """Processor time of all processes since the machine was started."""
    user, nice, system, _, _, irq, soft_irq, stolen = map(int, Path("/proc/stat").read_text().split()[1:9])
    return (user + nice + system + irq + soft_irq + stolen) / os.sysconf("SC_CLK_TCK")


def own_seconds():
    used = [resource.getrusage(who) for who in (resource.RUSAGE_CHILDREN, resource.RUSAGE_SELF)]
    return sum(one.ru_utime + one.ru_stime for one in used)


def long_parks(leeway, folder):
    """The pulls that were parked for LONG_NS or longer."""
    parked, count = {}, 0
    events = [json.loads(line) for kind in ("pull_parked", "pull_released")
              for line in output_of(leeway, "events", folder, "--kind", kind).splitlines()]
    for event in sorted(events, key=lambda event: (event["ns"], event["event"])):
        pull = (event["actor"], event["worker"], event["iteration"])
        if event["event"] == "pull_parked":
            parked[pull] = event["ns"]
        else:
            count += event["ns"] - parked.get(pull, event["ns"]) >= LONG_NS
    return count


def figures_of(binaries, arguments):
    """The figures of one run, and its iterations."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary) / "run"
        output_of(binaries / arguments[0], *arguments[1:], "--epochs", "0", "--lr-schedule", "constant",
                  "--evaluate-every", "0", "--checkpoint-every", "none", "--quiet", "--trace", "--out", folder)
        result = json.loads((folder / "result.json").read_text())
        waits = sum(worker["wait_seconds"] for worker in result["workers"])
        computes = sum(worker["compute_seconds"] for worker in result["workers"])
        figures = (result["samples_per_second"], 100 * long_parks(binaries / "leeway", folder) / result["iterations"],
                   100 * waits / (waits + computes))
    return figures, result["iterations"]


def measure(binaries, arguments, seconds):
    """The figures of a run on threads, its iterations, and whether other programs disturbed it."""
    for _ in range(ATTEMPTS):
        began, busy, own = time.monotonic(), machine_seconds(), own_seconds()
        figures, iterations = figures_of(binaries, [*arguments, "--seconds", str(seconds)])
        others = machine_seconds() - busy - (own_seconds() - own)
        disturbed = others > QUIET * (time.monotonic() - began)
        if not disturbed:
            break
    return figures, iterations, disturbed


def compare(binaries, arguments, seconds):
    with tempfile.TemporaryDirectory() as folder:
        world = Path(folder) / "world.toml"
        output_of(binaries / arguments[0], *arguments[1:], "--calibrate", world)
        measured, iterations, disturbed = measure(binaries, arguments, seconds)
        simulated, _ = figures_of(
            binaries, [*arguments, "--world", f"@{world}", "--gradients", "none", "--iterations", str(iterations)])
    return measured, simulated, disturbed


def spread(values):
    """Half of the range, as a share of the median."""
    return (max(values) - min(values)) / 2 / statistics.median(values)


def row_of(name, rounds):
    """The row of the table, the error of samples/s, and the goal for it."""
    measured, simulated = zip(*rounds)
    real, predicted = ([statistics.median(values) for values in zip(*runs)] for runs in (measured, simulated))
    rates = [figures[0] for figures in measured]
    error = predicted[0] / real[0] - 1
    cells = [name, f"{real[0]:,.0f} ± {spread(rates):.0%}", f"{predicted[0]:,.0f} ({error:+.0%})",
             f"{real[1]:.1f}, {predicted[1]:.1f}", f"{real[2]:.1f}%, {predicted[2]:.1f}%"]
    return f"| {' | '.join(cells)} |", abs(error), max(0.1, 2 * spread(rates))


def write(page, text):
    begin, end = MARKS
    content = page.read_text()
    if begin not in content or end not in content:
        sys.exit(f"{page} has no {begin}")
    before, rest = content.split(begin, 1)
    page.write_text(f"{before}{begin}\n{text}\n{end}{rest.split(end, 1)[1]}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=4, help="of each measured run")
    parser.add_argument("--cases", default=",".join(CASES), help="default: all")
    parser.add_argument("--build", default="build/release")
    parser.add_argument("--write", type=Path, help="page whose table is replaced")
    args = parser.parse_args()
    binaries = Path(args.build) / "bin"
    cases = args.cases.split(",")
    if unknown := [case for case in cases if case not in CASES]:
        sys.exit(f"unknown cases: {', '.join(unknown)}; give some of {', '.join(CASES)}")
    rounds, disturbed = {case: [] for case in cases}, 0
    for number in range(args.rounds):
        for case in cases:
            measured, simulated, was_disturbed = compare(binaries, CASES[case][1], args.seconds)
            rounds[case].append((measured, simulated))
            disturbed += was_disturbed
            print(f"round {number + 1} of {args.rounds}: {case}", file=sys.stderr)
    rows, errors, goals = zip(*(row_of(CASES[case][0], rounds[case]) for case in cases))
    missed = [CASES[case][0] for case, error, goal in zip(cases, errors, goals) if error > goal]
    summary = (f"{os.cpu_count()} cores of {processor() or 'an unknown processor'}, {datetime.date.today()}: "
               f"medians of {args.rounds} rounds of {args.seconds:g} s; ± is half of the range. Median error of "
               f"samples/s {statistics.median(errors):.1%}, largest {max(errors):.1%}. Other programs disturbed {disturbed} of {args.rounds * len(cases)} measured runs. Errors "
               f"above 10% and above twice the spread: {'; '.join(missed) if missed else 'none'}.")
    text = "\n".join([
        "", "| | samples/s, measured | simulated | parked pulls in 100 iterations | waiting |", "|---|---|---|---|---|",
        *rows, "", textwrap.fill(summary, 98), ""])
    print(text)
    if args.write:
        write(args.write, text)


if __name__ == "__main__":
    main()
