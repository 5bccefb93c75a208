#!/usr/bin/env python3
"""Cost of checkpoints during a run: the same run with and without checkpoints, interleaved.

usage: checkpoint_cost.py [--rounds 5] [--every 2s] [--iterations 130] [--build build/release] [--send]

With --send, shard and workers are on a node agent that does not see the run's folder, so that it
sends its files to the program; the processor time is that of both. Needs root.

The model has 13.7 million weights with momentum, 109 MB; two workers, one shard. Prints processor
time, samples per second, parked pulls and waiting, and the processor time of one checkpoint. Its
share of a run with a checkpoint every 30 s follows from the processor time of the run per second.
"""

import argparse
import json
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

LAYERS = ", ".join(['{ linear.outputs = 2048 }, "relu"'] * 4 + ["{ linear.outputs = 10 }"])
PLAN = f"""name = "checkpoint-cost"
model = [{LAYERS}]
[data.synthetic]
samples = 20000
test_samples = 100
clusters = {{ classes = 10, features = 512, spread = 3.0 }}
"""
FLAGS = ["--workers", "2", "--shards", "1", "--optimizer", "momentum", "--lr", "0.01", "--batch",
         "256", "--staleness", "3", "--epochs", "0", "--evaluate-every", "0", "--quiet"]


class Agent:
    """A node agent in a mount namespace in which `folder` is another one."""

    def __init__(self, leeway, folder):
        elsewhere = tempfile.mkdtemp(dir=".")
        self.folder = elsewhere
        mount = 'mount --bind "$0" "$1" && shift && exec "$@"'
        self.process = subprocess.Popen(
            ["unshare", "--mount", "sh", "-c", mount, elsewhere, folder, leeway, "node", "--listen",
             "127.0.0.1:0"], stderr=subprocess.PIPE, text=True)
        line = self.process.stderr.readline()
        mark = "listening on "
        if mark not in line:
            sys.exit(f"the agent did not start: {line}{self.process.stderr.read()}")
        self.flags = ["--nodes", line.split(mark)[1].strip(), "--place", "shards=1,workers=1"]

    def end(self):
        """Ends it. Returns its use of resources."""
        self.process.send_signal(signal.SIGINT)
        self.process.stderr.close()
        _, _, usage = os.wait4(self.process.pid, 0)
        shutil.rmtree(self.folder)
        return usage


def run(leeway, iterations, every, send):
    """Runs the plan. Returns its figures."""
    with tempfile.TemporaryDirectory(dir=".") as name:
        folder = Path(name).absolute()
        (folder / "plan.toml").write_text(PLAN)
        agent = Agent(leeway, folder) if send else None
        began = time.monotonic()
        process = subprocess.Popen([leeway, "run", folder / "plan.toml", *FLAGS, "--iterations",
                                    str(iterations), "--checkpoint-every", every,
                                    "--out", folder / "run", *(agent.flags if agent else [])])
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.monotonic() - began
        used = [usage] + ([agent.end()] if agent else [])
        if status != 0:
            sys.exit(f"the run ended with status {status}")
        processor = sum(one.ru_utime + one.ru_stime for one in used)
        result = json.loads((folder / "run/result.json").read_text())
        checkpoints = result.get("checkpoints", [])
        if any("error" in one for one in checkpoints):
            sys.exit(f"a checkpoint failed: {checkpoints}")
        return {"processor time, s": processor,
                "processors used": processor / seconds,
                "samples/s": result["samples_per_second"],
                "parked pulls": result["parked_pulls"],
                "waiting, s": sum(worker["wait_seconds"] for worker in result["workers"]),
                "peak memory, MB": sum(one.ru_maxrss for one in used) * 1024e-6,
                "checkpoints": len(checkpoints)}


def spread(values):
    return f"{statistics.median(values):10.3f} ({min(values):.3f} to {max(values):.3f})"


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--every", default="2s", help="interval of the checkpoints [2s]")
    parser.add_argument("--iterations", type=int, default=130)
    parser.add_argument("--send", action="store_true", help="a node sends its files")
    parser.add_argument("--build", type=Path, default=Path("build/release"))
    options = parser.parse_args()
    rounds = []
    for number in range(options.rounds):
        leeway = (options.build / "bin/leeway").absolute()
        rounds.append([run(leeway, options.iterations, every, options.send)
                       for every in ("none", options.every)])
        print(f"round {number + 1} of {options.rounds}", file=sys.stderr)
    print(f"median (range) of {options.rounds} rounds; without checkpoints, every {options.every}")
    for name in rounds[0][0]:
        without, having = [a[name] for a, _ in rounds], [b[name] for _, b in rounds]
        ratios = [b / a for a, b in zip(without, having) if a > 0]
        print(f"  {name:18} {spread(without)}  {spread(having)}"
              + (f"  ratio {spread(ratios)}" if ratios else ""))
    used = statistics.median(a["processors used"] for a, _ in rounds)
    costs = [(b["processor time, s"] - a["processor time, s"]) / b["checkpoints"]
             for a, b in rounds]
    print(f"  processor time of a checkpoint, s: {spread(costs)}")
    print(f"  share of a run with one every 30 s: {statistics.median(costs) / (30 * used):.3%}")


if __name__ == "__main__":
    main()
