#!/usr/bin/python3
"""Leeway against PyTorch, interleaved: samples per second of each model on one and two threads, and ratios.

usage: compare.py [--rounds 7] [--models mlp,lenet,vgg] [--batch 64] [--build build/release] [--device cpu]
                  [--precision fp32]

Needs Debian's python3-torch, libopenblas0-pthread and libopenblas0-openmp. For PyTorch at its best it sets
OPENBLAS_CORETYPE=SkylakeX on CPUs with AVX-512, because OpenBLAS does not recognise newer ones, and uses the OpenMP variant for
two threads. Needs an otherwise idle machine.
"""

import argparse
import os
import re
import statistics
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
OPENMP_BLAS = "/usr/lib/x86_64-linux-gnu/openblas-openmp"


def torch_environment(threads):
    environment = dict(os.environ)
    if "avx512" in Path("/proc/cpuinfo").read_text():
        environment.setdefault("OPENBLAS_CORETYPE", "SkylakeX")
    if threads > 1 and Path(OPENMP_BLAS).exists():
        environment["LD_LIBRARY_PATH"] = OPENMP_BLAS + ":" + environment.get("LD_LIBRARY_PATH", "")
    return environment


def rate(command, environment=None):
    """Samples per second, from the program's output."""
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    found = re.search(r"([\d.]+) samples/s", done.stdout)
    if done.returncode != 0 or not found:
        sys.exit(f"{' '.join(map(str, command))} failed:\n{done.stdout}{done.stderr}")
    return float(found[1])


def rows(model, args):
    """Yields (row name, function that measures the row, name of the row to compare with)."""
    bench = Path(args.build) / "bench" / "train_bench"
    shared = [model, "--batch", str(args.batch), "--seconds", str(args.seconds), "--device", args.device]
    shared += ["--precision", args.precision]
    torch = [sys.executable, HERE / "torch_train.py", *shared]

    def leeway(*more):
        return lambda: rate([bench, *shared, *more])

    def pytorch(threads):
        return lambda: rate([*torch, "--threads", str(threads)], torch_environment(threads))

    if args.device != "cpu":
        yield "PyTorch", pytorch(1), None
        yield "Leeway, no actors", leeway(), "PyTorch"
        for workers in ("1", "2", "4"):
            yield f"Leeway, {workers} workers", leeway("--workers", workers), "PyTorch"
        return
    yield "PyTorch, 1 thread", pytorch(1), None
    yield "Leeway, 1 thread, no actors", leeway(), "PyTorch, 1 thread"
    yield "Leeway, 1 worker", leeway("--workers", "1"), "PyTorch, 1 thread"
    yield "PyTorch, 2 threads", pytorch(2), None
    yield "Leeway, 2 workers", leeway("--workers", "2"), "PyTorch, 2 threads"
    yield "Leeway, 2 workers, against 1", None, "Leeway, 1 worker"


def main():
    parser = argparse.ArgumentParser(description="Leeway against PyTorch, interleaved.")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--models", default="mlp,lenet,vgg")
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--build", default="build/release")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--seconds", type=float, default=3)
    parser.add_argument("--precision", default="fp32", help="fp32, bf16 (PyTorch: autocast) or tf32")
    args = parser.parse_args()

    print(f"{'':38}{'median':>10}{'min':>10}{'max':>10}   ratio: median (min to max)")
    for model in args.models.split(","):
        table = list(rows(model, args))
        figures = {name: [] for name, _, _ in table}
        for number in range(args.rounds):
            print(f"{model}: round {number + 1} of {args.rounds}", file=sys.stderr)
            for name, measure, _ in table:
                figures[name].append(measure() if measure else figures["Leeway, 2 workers"][-1])
        for name, _, peer in table:
            values = figures[name]
            line = f"{model + ': ' + name:38}{statistics.median(values):10.0f}{min(values):10.0f}{max(values):10.0f}"
            if peer:
                ratios = [a / b for a, b in zip(values, figures[peer])]
                line += f"   {statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})"
            print(line, flush=True)


if __name__ == "__main__":
    main()
