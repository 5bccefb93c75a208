#!/usr/bin/env python3
"""Accuracy and bytes of a scenario with codecs of pushes, or with precisions, over paired seeds.

  bench/accuracy_table.py build/release/bin/fashion-mlp [--seeds 10] [--codecs int8 'top_k(0.01)']
                          [--precisions bf16] [-- FLAGS...]

Runs the scenario under bsp, with each seed once for each setting in turn, and prints a table: pushed
bytes, test accuracy, and the mean difference of the accuracy to the run without codecs, in fp32 and
with the same seed, with its 95% interval. Runs whose loss becomes NaN are counted.
"""

import argparse
import json
import math
import pathlib
import subprocess
import sys
import tempfile

CODECS = ["bf16", "fp16", "int8", "int4", "two_bit(0.01)", "one_bit", "top_k(0.01)",
          "random_k(0.01)"]
# Student's t, two-sided 95%, by degrees of freedom.
T95 = {1: 12.71, 2: 4.30, 3: 3.18, 4: 2.78, 5: 2.57, 6: 2.45, 7: 2.36, 8: 2.31, 9: 2.26, 14: 2.14,
       19: 2.09, 29: 2.05, 60: 2.00}


def run(program, setting, seed, flags):
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder) / "run"
        command = [program, "--out", str(out), "--quiet", "--seed", str(seed), "--staleness", "bsp",
                   *setting, *flags]
        done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        result = json.loads((out / "result.json").read_text())
        if done.returncode != 0 and "the loss became" not in done.stderr:
            sys.exit(f"{' '.join(command)}: {done.stderr}")
        return result if done.returncode == 0 else None  # diverged


def interval(values):
    mean = sum(values) / len(values)
    if len(values) < 2:
        return mean, math.inf
    deviation = math.sqrt(sum((x - mean) ** 2 for x in values) / (len(values) - 1))
    # That of fewer degrees of freedom is larger, so the interval is never too narrow.
    t = T95[max(degrees for degrees in T95 if degrees < len(values))]
    return mean, t * deviation / math.sqrt(len(values))


def split(words):
    """The words before and after --."""
    if "--" not in words:
        return words, []
    at = words.index("--")
    return words[:at], words[at + 1:]


def main():
    arguments, flags = split(sys.argv[1:])
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--codecs", nargs="*", default=None)
    parser.add_argument("--precisions", nargs="*", default=[])
    options = parser.parse_args(arguments)
    codecs = options.codecs if options.codecs or options.precisions else CODECS
    settings = {"none": ["--compress", "none"]}
    settings |= {codec: ["--compress", f"push={codec}"] for codec in codecs or []}
    settings |= {precision: ["--precision", precision] for precision in options.precisions}
    results = {name: [] for name in settings}
    for seed in range(1, options.seeds + 1):
        for name, setting in settings.items():
            results[name].append(run(options.program, setting, seed, flags))
        print(f"seed {seed} of {options.seeds}", file=sys.stderr)
    print("| setting | pushed MB | times fewer | accuracy | difference, 95% interval | samples/s |")
    print("|---|---|---|---|---|---|")
    for name in settings:
        pairs = [(row, base) for row, base in zip(results[name], results["none"]) if row and base]
        rows = [row for row, base in pairs]
        diverged = options.seeds - len(rows)
        if not rows:
            print(f"| {name} | | | diverged with each seed | | |")
            continue
        pushed = sum(row["pushed_bytes"] for row in rows)
        plain = sum(row["pushed_bytes_without_codec"] for row in rows)
        accuracy = sum(row["test_accuracy"] for row in rows) / len(rows)
        mean, half = interval([row["test_accuracy"] - base["test_accuracy"]
                               for row, base in pairs])
        speeds = sorted(row["samples_per_second"] for row in rows)
        print(f"| {name} | {pushed / len(rows) / 1e6:.1f} | {plain / pushed:.2f} "
              f"| {100 * accuracy:.2f}%{f', {diverged} diverged' if diverged else ''} | {100 * mean:+.2f} ± {100 * half:.2f} "
              f"| {speeds[len(speeds) // 2]:.0f} |")


if __name__ == "__main__":
    main()
