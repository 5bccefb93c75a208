#!/usr/bin/env python3
"""Runs the same benchmarks of two builds interleaved, and compares their medians.

    bench/compare_builds.py OLD/build/release build/release --rounds 5
    bench/compare_builds.py OLD/build/release build/release --only simulator
    bench/compare_builds.py OLD/build/release build/release --json bench/baselines/MACHINE.json
    bench/compare_builds.py bench/baselines/MACHINE.json build/release

Each round runs every benchmark of the first build and then of the second. Prints the medians, and the
ratio new/old of adjacent runs as median (min to max): above 1, the new build is faster. --json keeps the
figures of the second build with machine, date and compiler. Instead of the first build, such a file can be
given: then the ratios are those to its medians, and mean little on another machine or beside other load.
Needs an otherwise idle machine.
"""

import argparse
import datetime
import json
import os
import platform
import re
import statistics
import subprocess
import sys
from pathlib import Path

from run_result import processor

# name: command below the build folder, pattern of its figure, whether a larger figure is better
FIGURES = {
    "runtime, 1 worker": ("bench/runtime_bench 1", r"1 worker, a second core free +(\d+)", True),
    "runtime, 2 workers": ("bench/runtime_bench 1", r"2 workers, two cores +(\d+)", True),
    "runtime, cycles of 4 workers": ("bench/runtime_bench 1", r"4 workers, blocking each +(\d+)", True),
    "simulator, steps/s": ("bench/sim_bench --rounds 1 --iterations 100000", r"off +\d+ +[\d.]+ +(\d+)", True),
    "simulator with checkers": ("bench/sim_bench --rounds 1 --iterations 100000", r"on +\d+ +[\d.]+ +(\d+)", True),
    "mesh, TCP, GB/s": ("bench/mesh_bench --rounds 1 --megabytes 128 --stopped 0", r"mesh, TCP +([\d.]+)", True),
    "mesh, shared memory, GB/s": (
        "bench/mesh_bench --rounds 1 --megabytes 128 --stopped 0", r"mesh, shared memory +([\d.]+)", True),
    "mesh, round trip, us": (
        "bench/mesh_bench --rounds 1 --megabytes 128 --stopped 0", r"round trip[^$]*?mesh, TCP +([\d.]+)", False),
    "pipeline, 1f1b": ("bench/pipeline_bench speed --rounds 1 --seconds 1 --model resnet", r"1f1b +(\d+)", True),
}


def figures_of(build, names):
    """One round: runs each command once and reads its figures."""
    figures, outputs = {}, {}
    for name in names:
        command, pattern, _ = FIGURES[name]
        if command not in outputs:
            program, *arguments = command.split()
            done = subprocess.run([build / program, *arguments], capture_output=True, text=True,
                                  env={**os.environ, "OMP_NUM_THREADS": "1"})
            if done.returncode != 0:
                sys.exit(f"{build / program} exited with code {done.returncode}:\n{done.stderr}")
            outputs[command] = done.stdout
        found = re.search(pattern, outputs[command])
        if not found:
            sys.exit(f"{command} prints no line that matches {pattern}:\n{outputs[command]}")
        figures[name] = float(found[1])
    return figures


def machine():
    compiler = subprocess.run(["c++", "--version"], capture_output=True, text=True).stdout.splitlines()[0]
    return {"processor": processor() or platform.machine(), "cores": os.cpu_count(),
            "system": platform.platform(), "compiler": compiler, "date": datetime.date.today().isoformat()}


def read_baseline(path, names):
    """Reads a file of --json. Returns a function that gives its medians in place of a round."""
    kept = json.loads(path.read_text())
    missing = [name for name in names if name not in kept.get("figures", {})]
    if missing:
        sys.exit(f"{path} has no figures of {', '.join(missing)}; give --only, or a file that --json has written")
    here = machine()
    for key in ("processor", "cores", "compiler"):
        if kept[key] != here[key]:
            print(f"note: {path} was measured with another {key}: {kept[key]}, here {here[key]}", file=sys.stderr)
    medians = {name: kept["figures"][name]["median"] for name in names}
    return lambda _build, _names: medians


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("old", type=Path, help="build folder, or a file of --json")
    parser.add_argument("new", type=Path)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", default="", metavar="PATTERN", help="only the figures whose names match this pattern")
    parser.add_argument("--json", type=Path, help="file that keeps the figures of the second build")
    options = parser.parse_args()
    names = [name for name in FIGURES if re.search(options.only, name)]
    if not names:
        parser.error(f"no figure matches {options.only}; the figures are: {'; '.join(FIGURES)}")
    figures_of_old = read_baseline(options.old, names) if options.old.is_file() else figures_of
    rounds = []
    for number in range(options.rounds):
        rounds.append((figures_of_old(options.old, names), figures_of(options.new, names)))
        print(f"round {number + 1} of {options.rounds}", file=sys.stderr)
    kept = {}
    print(f"{'':32}{'old':>12}{'new':>12}   new/old: median (min to max)")
    for name in names:
        larger_is_better = FIGURES[name][2]
        old, new = [o[name] for o, _ in rounds], [n[name] for _, n in rounds]
        ratios = sorted((n / o if larger_is_better else o / n) for o, n in zip(old, new))
        print(f"{name:32}{statistics.median(old):12.5g}{statistics.median(new):12.5g}   "
              f"{statistics.median(ratios):.3f} ({ratios[0]:.3f} to {ratios[-1]:.3f})")
        kept[name] = {"median": statistics.median(new), "min": min(new), "max": max(new)}
    if options.json:
        options.json.parent.mkdir(parents=True, exist_ok=True)
        options.json.write_text(json.dumps({**machine(), "rounds": options.rounds, "figures": kept}, indent=2) + "\n")


if __name__ == "__main__":
    main()
