#!/usr/bin/env python3
"""Event files of runs with --tensorboard, read with TensorBoard's own loader.

usage: read_tensorboard.py FOLDER_OF_PROGRAMS    trains, and compares the files with the run folder
       read_tensorboard.py --read RUN            prints the tags of a run's files

Exit code 77: skipped, because the Python package `tensorboard` is missing.
"""
import argparse
import json
import math
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

RUN_TAGS = {"run/samples_per_second", "run/clock_gap", "run/parked_pulls", "run/live_workers",
            "bytes/pushed", "bytes/pulled"}


class Failed(Exception):
    pass


def check(condition, *text):
    if not condition:
        raise Failed(" ".join(map(str, text)))


def load(run_folder):
    """All values of a run: none is thinned out."""
    from tensorboard.backend.event_processing import event_accumulator
    accumulator = event_accumulator.EventAccumulator(
        str(run_folder), size_guidance={"scalars": 0, "histograms": 0})
    accumulator.Reload()
    return accumulator


def steps_rise(loaded, tag):
    steps = [event.step for event in loaded.Scalars(tag)]
    check(steps == sorted(steps), tag, "has falling steps")
    return steps


def near(left, right):
    return math.isclose(left, right, rel_tol=1e-6)


def metrics_of(run_folder):
    return [json.loads(line) for line in (run_folder / "metrics.jsonl").read_text().splitlines()]


def check_values(program, run_folder):
    """The values of a whole run equal those of its other files."""
    done = subprocess.run([program, "--tensorboard", "--out", run_folder, "--epochs", "100",
                           "--quiet"], capture_output=True, text=True)
    check(done.returncode == 0, program, "ended with", done.returncode, done.stderr)
    loaded = load(run_folder)
    tags = loaded.Tags()
    check(set(tags["scalars"]) == RUN_TAGS | {"train/loss", "test/loss"}, tags["scalars"])
    check(tags["histograms"] == ["run/version_lag"], tags["histograms"])
    for tag in tags["scalars"]:
        steps_rise(loaded, tag)
    metrics = metrics_of(run_folder)
    for tag, key in (("train/loss", "train_loss"), ("test/loss", "test_loss"),
                     ("run/clock_gap", "clock_gap"), ("run/parked_pulls", "parked_pulls")):
        read = [event.value for event in loaded.Scalars(tag)]
        kept = [line[key] for line in metrics if key in line]
        check(len(read) == len(kept) > 0, tag, "has", len(read), "values instead of", len(kept))
        check(all(map(near, read, kept)), tag, read, kept)
    first, last = loaded.Scalars("run/clock_gap")[0], loaded.Scalars("run/clock_gap")[-1]
    seconds = [line["seconds"] for line in metrics if "clock_gap" in line]
    check(abs((last.wall_time - first.wall_time) - (seconds[-1] - seconds[0])) < 1e-3,
          "wall times differ from the times of the run")
    result = json.loads((run_folder / "result.json").read_text())
    check(last.step == result["samples_trained"], last.step, result["samples_trained"])
    lags = result["version_lag"]
    histogram = loaded.Histograms("run/version_lag")[0].histogram_value
    check(histogram.num == sum(lags), histogram.num, lags)
    check(list(histogram.bucket) == lags[:len(histogram.bucket)], histogram.bucket, lags)


def check_resumed(program, run_folder):
    """Values of a killed run beyond its checkpoint are hidden after it is resumed."""
    begun = [program, "--tensorboard", "--out", run_folder, "--epochs", "1000000",
             "--checkpoint-every", "1s", "--quiet"]
    with subprocess.Popen(begun) as first:
        deadline = time.monotonic() + 60
        while not any("checkpoint" in line for line in kept_metrics(run_folder)):
            check(time.monotonic() < deadline, "no checkpoint within a minute")
            time.sleep(0.05)
        time.sleep(0.6)  # values beyond the checkpoint
        first.kill()
    last_before = steps_rise(load(run_folder), "run/clock_gap")[-1]
    resumed = [program, "--tensorboard", "--resume", run_folder, "--checkpoint-every", "none",
               "--quiet"]
    with subprocess.Popen(resumed) as second:
        time.sleep(3)
        second.send_signal(signal.SIGINT)
    files = list(run_folder.glob("events.out.tfevents.*"))
    check(len(files) == 2, "the files are", files)
    loaded = load(run_folder)
    kept = [line for line in metrics_of(run_folder) if "resumed_from" in line]
    check(len(kept) == 1, "the run was not resumed")
    steps = steps_rise(loaded, "run/clock_gap")
    steps_rise(loaded, "train/loss")
    check(kept[0]["samples_trained"] < last_before < steps[-1],
          "steps", kept[0], last_before, steps[-1])


def kept_metrics(run_folder):
    try:
        return (run_folder / "metrics.jsonl").read_text().splitlines()
    except FileNotFoundError:
        return []


def print_tags(run_folder):
    loaded = load(run_folder)
    for tag in loaded.Tags()["scalars"]:
        values = loaded.Scalars(tag)
        print(f"{tag}: {len(values)} values, the last {values[-1].value:g} "
              f"at step {values[-1].step}")
    for tag in loaded.Tags()["histograms"]:
        print(f"{tag}: a histogram of {loaded.Histograms(tag)[-1].histogram_value.num:g}")


def main():
    parser = argparse.ArgumentParser(description="Reads event files with TensorBoard's loader.")
    parser.add_argument("programs", type=Path, nargs="?", help="such as build/release/bin")
    parser.add_argument("--read", type=Path, metavar="RUN", help="prints the tags of a run")
    arguments = parser.parse_args()
    if not (arguments.programs or arguments.read):
        parser.error("give the folder of the programs, or --read RUN")
    try:
        import tensorboard  # noqa: F401
    except ImportError:
        print("skipped: the Python package tensorboard is not installed")
        return 77
    if arguments.read:
        print_tags(arguments.read)
        return 0
    program = arguments.programs.resolve() / "linear-regression"
    with tempfile.TemporaryDirectory(prefix="leeway-tensorboard-") as name:
        try:
            check_values(program, Path(name) / "whole")
            check_resumed(program, Path(name) / "resumed")
            return 0
        except Failed as failure:
            print(failure)
            return 1


if __name__ == "__main__":
    sys.exit(main())
