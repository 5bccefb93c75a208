#!/usr/bin/env python3
"""Consecutive runs on clusters of local processes while nodes are killed, stopped, restarted, leave and join.

usage: soak.py FOLDER_OF_PROGRAMS [--minutes 3] [--runs N] [--seed S] [--replicas 1|2] [--kills N]

Each run has its own cluster and seed. The seed determines the model (linear-regression, or a small MLP with two shards),
the numbers of nodes and workers, the transport, TLS, the staleness, and the faults with their times and nodes. In half of
the runs each shard has a standby, and every node may have faults: one at a time, so that no shard loses both replicas. In
the others node 1, with the shards and worker 0, has no fault, because a run does not survive its loss. Each run must train
each sample of each epoch once and end by itself. Then all agents must be free and end on a signal. No process and no file
in /dev/shm may be left.

With --kills, every shard has a standby, and all faults are kills (kill -9) of nodes, which start again: ten in a run, until
N nodes have been killed.

Repeats for the given minutes or N runs, and prints one line per run. The first failure ends the soak with exit code 1. It
prints the seed, the log of every process, and the folder, which is kept. `--runs 1 --seed S` repeats a run, except for the
timing of processes.
"""
import argparse
import itertools
import os
import random
import re
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from run_events import RunEvents, not_once

SAMPLES = 10_000  # training samples of linear-regression and of the plan
PLAN = """name = "soak"
model = [{ linear.outputs = 16 }, "relu", { linear.outputs = 2 }]
data.csv.train = "data.csv"
"""
SILENCE = 4.0  # seconds without a sign of life, after which a node is silent
PATIENCE = 90  # seconds; enough on a machine under full load
MARK = "LEEWAY_SOAK"  # in the environment of every process of a soak
LISTENING = re.compile(r"listening on ([^\s:]+:\d+)")
# Valid reasons to refuse a node that joins: the program knows of no missing worker, or the run is over.
REFUSED = re.compile(r"has all its \d+ workers|the job of .* has ended|is gone: |no process listens there")


class Failed(Exception):
    pass


def comes_true(condition, limit=PATIENCE):
    until = time.monotonic() + limit
    while not condition():
        if time.monotonic() > until:
            return condition()
        time.sleep(0.02)
    return True


def shared_memory():
    return {entry.name for entry in os.scandir("/dev/shm") if entry.stat().st_uid == os.getuid()}


class Process:
    """A program with its output in a file. The signals that it got determine its valid exit codes."""

    def __init__(self, name, arguments, folder, mark, cwd):
        self.name = name
        self.log = folder / f"{name}.log"
        self.joins = name.startswith("joins")
        self.killed = self.interrupted = False
        self.resume_at = None
        with self.log.open("w") as log:
            self.popen = subprocess.Popen(arguments, stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=cwd,
                                          env={**os.environ, MARK: mark})

    def output(self):
        return self.log.read_text(errors="replace")

    def address(self):
        """The address at which the program listens; None if it does not print one."""
        comes_true(lambda: LISTENING.search(self.output()) or self.has_ended())
        found = LISTENING.search(self.output())
        return found and found[1]

    def is_free(self):
        jobs = [line for line in self.output().splitlines() if " the job of " in line]
        return not jobs or jobs[-1].endswith("free")

    def has_ended(self):
        return self.popen.poll() is not None

    def signal(self, number):
        if not self.has_ended():
            self.popen.send_signal(number)

    def kill(self):
        self.killed = True
        self.signal(signal.SIGKILL)

    def stop(self, seconds):
        self.signal(signal.SIGSTOP)
        self.resume_at = time.monotonic() + seconds

    def resume_when_due(self):
        if self.resume_at and time.monotonic() >= self.resume_at:
            self.resume_at = None
            self.signal(signal.SIGCONT)

    def end(self):
        self.interrupted = True
        self.signal(signal.SIGINT)

    def codes(self):
        """The valid exit codes."""
        codes = {-signal.SIGKILL} if self.killed else {0}
        if self.joins:  # a joining node may end with the job, or be refused, just before a signal
            codes |= {0, 2} if REFUSED.search(self.output()) else {0}
            codes |= {-signal.SIGINT} if self.interrupted else set()
        return codes

    def must_end(self):
        if not comes_true(self.has_ended):
            raise Failed(f"{self.name} has not ended within {PATIENCE} s")
        if self.popen.returncode not in self.codes():
            allowed = " or ".join(map(str, sorted(self.codes())))
            raise Failed(f"{self.name} has ended with code {self.popen.returncode}, not {allowed}")


class Run:
    """One cluster and one job on it. `story` lists the random values and the faults."""

    def __init__(self, bin_folder, seed, folder, replicas, only_kills):
        self.bin = bin_folder
        self.replicas = 2 if only_kills else replicas
        self.kills = 0
        self.folder = folder
        self.mark = f"{os.getpid()}-{seed}"
        self.random = random.Random(seed)
        self.processes = []
        self.draw(only_kills)

    def draw(self, only_kills):
        pick = self.random
        self.node_count = pick.randint(2, 4)
        self.workers = pick.randint(2, 5)
        self.shards = pick.randint(1, 2)  # linear-regression has one block
        self.epochs = pick.randint(2, 4)
        self.transport = pick.choice(["auto", "tcp", "shm"])
        self.tls = pick.random() < 0.25
        staleness = pick.choice(["bsp", "1", "3", "asp"])
        others = [str(node) for node in range(2, self.node_count + 1)]
        place = ["shards=1", "worker0=1"] + [f"worker{i}={pick.choice(['0', *others])}" for i in range(1, self.workers)]
        if pick.random() < 0.3:
            place[-1] = f"worker{self.workers - 1}=later"
        self.flags = ["--workers", str(self.workers), "--shards", str(self.shards), "--epochs", str(self.epochs),
                      "--staleness", staleness, "--place", ",".join(place), "--batch", "16", "--slow", "all:pauses(4ms/1)"]
        # Faults and their times, in percent of all samples; at most 80, so that they happen during the run.
        kinds = ["kill", "restart", "restart", "stop", "blink", "leave", "join", "join"]
        self.due = sorted((pick.uniform(5, 80), pick.choice(kinds)) for _ in range(pick.randint(2, 8)))
        self.replicas = pick.choice([1, 2]) if self.replicas is None else self.replicas
        if self.replicas > 1:
            self.node_count = max(self.node_count, 3)
            self.flags[self.flags.index("--place") + 1] = "worker0=0"
            self.flags += ["--replicas", "2"]
        if only_kills:
            self.epochs = 6
            self.flags[self.flags.index("--epochs") + 1] = "6"
            self.due = sorted((pick.uniform(3, 90), "restart") for _ in range(10))
        self.settled_at = 0.0  # the latest fault has been noticed
        self.events = RunEvents(self.folder / "run/events.jsonl")
        self.story = [f"{self.node_count} nodes, {self.transport}{' with TLS' if self.tls else ''}, {' '.join(self.flags[:8])}, "
                      f"replicas {self.replicas}"]

    def start(self, name, *arguments):
        if self.tls:
            arguments += ("--tls", self.folder / "keys/node")
        # The plan's data file does not exist in the agents' folder, so the program sends the data.
        process = Process(name, [self.bin / arguments[0], *arguments[1:]], self.folder, self.mark,
                          cwd=self.folder if name == "program" else "/")
        self.processes.append(process)
        return process

    def start_all(self):
        if self.tls:
            subprocess.run([self.bin / "leeway", "cert", self.folder / "keys", "--node", "node"], check=True, capture_output=True)
        listen = ["--listen", "127.0.0.1:0", "--silence", f"{SILENCE}s", "--transport", self.transport]
        self.listen = listen[2:]
        self.agents = [self.start(f"node{i + 1}", "leeway", "node", *listen) for i in range(self.node_count)]
        addresses = [agent.address() for agent in self.agents]
        if None in addresses:
            raise Failed("a node agent does not print its address")
        scenario = ["linear-regression"] if self.shards == 1 else ["leeway", "run", self.write_plan()]
        self.joining = ["leeway", "join", None, *listen]
        self.program = self.start("program", *scenario, "--nodes", ",".join(addresses), "--silence", f"{SILENCE}s",
                                  "--transport", self.transport, *self.flags, "--trace-json", "--out", self.folder / "run")
        self.joining[2] = self.program.address()
        if self.joining[2] is None:
            raise Failed("the program does not print its address")

    def write_plan(self):
        rows = (f"{i % 7},{i % 5},{int(i % 7 > 3)}\n" for i in range(SAMPLES * 5 // 4))  # a fifth is test data
        (self.folder / "data.csv").write_text("x,y,label\n" + "".join(rows))
        plan = self.folder / "plan.toml"
        plan.write_text(PLAN)
        return plan

    def percent(self):
        metrics = self.folder / "run/metrics.jsonl"
        found = re.findall(r'"samples": ?(\d+)', metrics.read_text()) if metrics.exists() else []
        return 100 * max(map(int, found), default=0) / (self.epochs * SAMPLES)

    def can_lose_a_node(self):
        """Whether the loss of any node loses no shard: each has two replicas, as far as the scheduler knows."""
        if self.replicas == 1:
            return True
        if time.monotonic() < self.settled_at:
            return False
        self.events.poll()
        return not self.events.lacking

    def cause(self, kind):
        """Causes a fault of a node, or starts a node that joins."""
        seconds = 0
        if kind == "join":
            joined = self.start(f"joins{len(self.agents)}", *self.joining)
            self.agents.append(joined)
            joined.address()  # from then on it handles signals
            return kind
        able = [agent for agent in self.agents[1 if self.replicas == 1 else 0:] if not (agent.has_ended() or agent.killed or agent.interrupted)]
        if not able:
            return f"no node to {kind}"
        agent = self.random.choice(able)
        if kind in ("kill", "restart"):
            agent.kill()
            self.kills += 1
        if kind == "restart":  # with the same arguments, as a service manager does
            agent.popen.wait()
            node = "leeway", "node", "--listen", agent.address(), *self.listen  # the program calls it
            again = self.start(f"{agent.name}-again", *(self.joining if agent.joins else node))
            self.agents.append(again)
            again.address()
        if kind == "leave":
            agent.end()
        if kind in ("stop", "blink"):  # for longer than the silence, or for less
            seconds = self.random.uniform(1.2, 2.5) * SILENCE if kind == "stop" else self.random.uniform(0.1, 0.6) * SILENCE
            agent.stop(seconds)
        self.settled_at = time.monotonic() + (seconds + 1.5 * SILENCE if seconds else 1.5)
        return f"{kind} {agent.name}"

    def watch(self):
        until = time.monotonic() + 4 * PATIENCE
        while not self.program.has_ended():
            for process in self.processes:
                process.resume_when_due()
            percent = self.percent()
            while self.due and self.due[0][0] <= percent and self.can_lose_a_node():
                self.story.append(f"{self.cause(self.due.pop(0)[1])} at {percent:.0f}%")
            if time.monotonic() > until:
                raise Failed(f"the program has not ended within {4 * PATIENCE} s")
            time.sleep(0.01)
        self.program.must_end()

    def check_trained_once(self):
        """Checks by the events of all nodes that each sample of each epoch was trained once."""
        ranges = {}
        for event in RunEvents(self.folder / "run/events.jsonl", "trained").poll():
            if event["event"] == "trained":
                ranges.setdefault(event["epoch"], []).append((event["begin"], event["end"]))
        if len(ranges) != self.epochs:
            raise Failed(f"{len(ranges)} epochs were trained, not {self.epochs}")
        for epoch, trained in ranges.items():
            if wrong := not_once(trained, SAMPLES):
                raise Failed(f"epoch {epoch}: {wrong} samples were trained never or more than once: {sorted(trained)}")

    def check_ends(self):
        for process in self.processes:
            process.resume_at = process.resume_at and 0.001
            process.resume_when_due()
        for agent in self.agents:
            if not (agent.joins or agent.killed or agent.interrupted):
                if not comes_true(lambda: agent.is_free()):
                    raise Failed(f"{agent.name} is not free after the run")
                agent.signal(signal.SIGTERM)
            agent.must_end()

    def left_processes(self):
        left = []
        for environment in Path("/proc").glob("[0-9]*/environ"):
            try:
                if f"{MARK}={self.mark}".encode() in environment.read_bytes().split(b"\0"):
                    left.append(int(environment.parent.name))
            except OSError:
                pass  # ended, or another user's
        return left

    def end(self):
        """Kills all processes that still run."""
        for process in self.processes:
            process.kill()
            process.popen.wait()
        for pid in self.left_processes():
            os.kill(pid, signal.SIGKILL)

    def go(self):
        memory = shared_memory()
        self.start_all()
        self.watch()
        self.check_trained_once()
        self.check_ends()
        if left := self.left_processes():
            raise Failed(f"processes still run: {left}")
        if not comes_true(lambda: shared_memory() <= memory, 5):
            raise Failed(f"left in /dev/shm: {shared_memory() - memory}")


def run_once(bin_folder, seed, replicas, only_kills):
    """The number of killed nodes; None after a failure."""
    folder = Path(tempfile.mkdtemp(prefix="leeway-soak-"))
    run = Run(bin_folder, seed, folder, replicas, only_kills)
    began = time.monotonic()
    try:
        run.go()
    except (Failed, subprocess.CalledProcessError, OSError) as failure:
        print(f"seed {seed}: {'; '.join(run.story)}: FAILED: {failure}", flush=True)
        for process in run.processes:
            print(f"--- {process.name}\n{process.output()}", end="", flush=True)
        print(f"kept: {folder}", flush=True)
        return None
    finally:
        run.end()
    print(f"seed {seed}: {'; '.join(run.story)}: passed in {time.monotonic() - began:.1f} s", flush=True)
    shutil.rmtree(folder)
    return run.kills


def main():
    parser = argparse.ArgumentParser(description="Trains on clusters of local processes while nodes fail, leave and join.")
    parser.add_argument("programs", type=Path, help="folder with leeway and linear-regression, such as build/release/bin")
    parser.add_argument("--minutes", type=float, default=3, help="no run starts later [3]")
    parser.add_argument("--runs", type=int, help="number of runs, instead of minutes")
    parser.add_argument("--seed", type=int, default=secrets.randbelow(1_000_000), help="of the first run; later runs add 1")
    parser.add_argument("--kills", type=int, default=0, help="only kill -9 of nodes, until this number is reached")
    parser.add_argument("--replicas", type=int, choices=[1, 2], help="of each shard in every run; otherwise drawn")
    arguments = parser.parse_args()
    bin_folder = arguments.programs.resolve()
    until = time.monotonic() + 60 * arguments.minutes
    kills = 0
    for done in itertools.count():
        if arguments.kills:
            if kills >= arguments.kills:
                break
        elif done > 0 and (done >= arguments.runs if arguments.runs else time.monotonic() >= until):
            break
        killed = run_once(bin_folder, arguments.seed + done, arguments.replicas, arguments.kills > 0)
        if killed is None:
            sys.exit(1)
        kills += killed
    print(f"{done} runs passed, {kills} nodes were killed")


if __name__ == "__main__":
    main()
