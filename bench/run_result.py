"""Runs scenario programs and node agents, for benchmarks."""

import argparse
import json
import re
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path


def benchmark_arguments(description, **lists):
    """The arguments of a benchmark that repeats runs of a scenario. `arguments` follow `--`; `lists` are further ones with
    several values, and their defaults."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", default="5")
    parser.add_argument("--scenario", default="fashion-mlp")
    parser.add_argument("--build", default="build/release")
    for name, values in lists.items():
        parser.add_argument(f"--{name}", nargs="+", default=values)
    parser.add_argument("arguments", nargs="*", help="further arguments of the scenario")
    return parser.parse_args()


def processor():
    """The model of this machine's processor, or None."""
    found = re.search(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text())
    return found[1] if found else None


def output_of(*command):
    """Runs the command and returns its output. Exits if the command fails."""
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))} failed:\n{done.stdout}{done.stderr}")
    return done.stdout


def result_of(*command):
    """Runs the command quietly and returns its result.json. Exits if the command fails."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "run"
        output_of(*command, "--out", out, "--quiet")
        return json.loads((out / "result.json").read_text())


def median_and_spread(values):
    """The median, and half the range relative to it."""
    median = statistics.median(values)
    return median, (max(values) - min(values)) / 2 / median


class Nodes:
    """Node agents on this host, each a process. `addresses` is the value of --nodes."""

    def __init__(self, binaries, count=2, arguments=()):
        self.agents, addresses = [], []
        for _ in range(count):
            agent = subprocess.Popen([binaries / "leeway", "node", "--listen", "127.0.0.1:0", *arguments],
                                     stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
            self.agents.append(agent)
            addresses.append(self.address_of(agent))
        self.addresses = ",".join(addresses)

    def address_of(self, agent):
        for line in agent.stdout:
            if found := re.search(r"127\.0\.0\.1:\d+", line):
                return found[0]
        self.stop()
        sys.exit("a node agent did not start")

    def stop(self):
        for agent in self.agents:
            agent.terminate()
            agent.wait(30)
