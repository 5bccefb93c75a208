#!/usr/bin/env python3
"""Training while processes of workers and shards are killed and stopped: throughput kept, time without updates, time to return.

usage: storm.py FOLDER_OF_PROGRAMS [--base 60] [--storm 150] [--every 15] [--seed 1] [--json] [--keep]
                [--picture FILE.svg] [--peer COMMAND]

fashion-mlp with 4 workers and 2 shards with standbys, ssp(3), batch 64, --silence 500ms, on six node agents of
`leeway up --restart`: one for each worker, and two with a primary and the other shard's standby. Each worker is paced to a
third of a core (--slow all:3x), so that the others do not get faster while one is down. The data is
unpacked before, so that a worker that starts again can read it at once.

The phases: fault-free (--base s), storm (--storm s), settling (20 s, or a fifth of the storm if it is shorter), fault-free
(half of --base). In the storm a random process is killed (kill -9) every --every s, the first after a third of that. At about
half of the time from every third kill to the next, a random process is stopped (SIGSTOP) for a third of --every.
The seed determines times and victims. A fault waits until all shards have standbys in sync, and at least 1.5 s after the
one before.

Each sample of each epoch must be trained once, otherwise the exit code is 1. All figures come from the events of the run:
  samples/s        samples that the scheduler knows to be trained
  share kept       samples/s in the storm / samples/s without faults; corrected: / the part of the workers that was not down or
                   stopped at that time
  stall            after a kill or stop: the longest time in which no worker begins an iteration, which needs weights of all
                   shards; until the next fault, at most 10 s
  contributes      worker: from the start of its new process to its next iteration; shard: from the kill until all its shards
                   have a standby in sync again, on any node. Actors move during the storm: a kill counts for workers and
                   shards by what it ended, and for none if its node had no actor.
  contributing     the mean share of the workers whose latest iteration began in the last 0.5 s

--peer also runs another program with the same --base, --storm, --every and --seed, afterwards, and prints its last line of
output. Needs an otherwise idle machine.
"""
import argparse
import bisect
import contextlib
import gzip
import json
import os
import random
import re
import shlex
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from run_events import RunEvents, not_once

WORKERS, SHARDS, BATCH = 4, 2, 64
NODES = SHARDS + WORKERS
PLACE = "shard0=1,shard1=2,standby0=2,standby1=1," + ",".join(f"worker{i}={3 + i}" for i in range(WORKERS))
NAMES = ["shard 0 and standby 1", "shard 1 and standby 0"] + [f"worker {i}" for i in range(WORKERS)]
RECENT = 0.5  # s; a worker contributes while its latest iteration began so recently
START_LIMIT = 60  # s
DATA = Path("/usr/share/datasets/fashion-mnist")
BIN = 0.25  # s of the picture
NOTICE = 1.0  # s; within which a loss is noticed
PAUSE = 1.5  # s; between the end of a fault and the next one
WATCHED = 10  # s; of a stall


def fail(text):
    sys.exit(f"storm: {text}")


class Agents:
    """`leeway up --restart`, and its processes by node."""

    def __init__(self, bin_folder, folder):
        self.log = folder / "up.log"
        with self.log.open("w") as log:
            self.up = subprocess.Popen([bin_folder / "leeway", "up", str(NODES), "--restart", "--silence", "500ms"],
                                       stdout=log, stderr=log)
        until = time.monotonic() + START_LIMIT
        while not (found := re.search(r"--nodes (\S+)", self.log.read_text())):
            if time.monotonic() > until or self.up.poll() is not None:
                self.stop()
                fail(f"the nodes do not start:\n{self.log.read_text()}")
            time.sleep(0.02)
        self.addresses = found[1].split(",")
        self.first = self.children()  # in the order of the nodes

    def children(self):
        return [int(pid) for pid in Path(f"/proc/{self.up.pid}/task/{self.up.pid}/children").read_text().split()]

    def process_of(self, node):
        """The id of the node's process; None while it has none."""
        for pid in self.children():
            try:
                words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            if self.addresses[node].encode() in words or (pid == self.first[node] and b"127.0.0.1:0" in words):
                return pid
        return None

    def stop(self):
        for pid in self.children() if self.up.poll() is None else []:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)
        self.up.terminate()
        try:
            self.up.wait(30)
        except subprocess.TimeoutExpired:
            self.up.kill()


class Events(RunEvents):
    """The events of the run, by kind. Times are in seconds of the run."""

    def __init__(self, path):
        super().__init__(path, "step_started", "trained", "evicted")
        self.offset = -float("inf")  # run time - monotonic time; an event is read after it has happened
        self.steps, self.trained, self.evicted, self.replicas = [], [], [], []

    def poll(self):
        events, now = super().poll(), time.monotonic()
        for event in events:
            at, kind = 1e-9 * event["ns"], event["event"]
            self.offset = max(self.offset, at - now)
            if kind == "step_started":
                self.steps.append((at, int(event["actor"].split()[1])))
            elif kind == "evicted":
                self.evicted.append((at, event["worker"]))
            elif kind == "trained":
                self.trained.append((at, event["epoch"], event["begin"], event["end"]))
            else:
                self.replicas.append((at, kind, event["shard"]))


class Storm:
    def __init__(self, arguments, agents, folder):
        self.arguments, self.agents = arguments, agents
        self.kills, self.stops = [], []  # (time, node, process, time of the new one or None), (time, node, process, time of its end)
        self.settled_at = 0.0
        storm = arguments.storm
        self.phases = [arguments.base, storm, min(20, storm / 5), arguments.base / 2]
        self.out = folder / "run"
        data = folder / "data"
        data.mkdir()
        for packed in DATA.glob("*.gz"):
            (data / packed.stem).write_bytes(gzip.decompress(packed.read_bytes()))
        self.events = Events(self.out / "events.jsonl")
        program = [arguments.programs.resolve() / "fashion-mlp", "--nodes", ",".join(self.agents.addresses),
                   "--data", data, "--place", PLACE, "--workers", str(WORKERS), "--shards", str(SHARDS), "--replicas", "2",
                   "--staleness", "3", "--batch", str(BATCH), "--slow", "all:3x", "--fault", "none", "--epochs", "10000",
                   "--seconds", str(sum(self.phases) + START_LIMIT), "--evaluate-every", "0", "--silence", "500ms",
                   "--checkpoint-every", "none", "--trace-json", "--out", self.out]
        self.log = folder / "program.log"
        with self.log.open("w") as log:
            self.program = subprocess.Popen(program, stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def until(self, time_limit):
        """Reads events until then. Notes when killed processes have started again."""
        while time.monotonic() < time_limit:
            if self.program.poll() is not None:
                fail(f"the program has ended with code {self.program.returncode}:\n{self.log.read_text()}")
            for i, (at, node, pid, started) in enumerate(self.kills):
                if started is None and self.agents.process_of(node) not in (None, pid):
                    self.kills[i] = (at, node, pid, time.monotonic())
            self.events.poll()
            time.sleep(0.005)

    def faults(self):
        """(second of the storm, kill or stop, node) in order."""
        pick = random.Random(self.arguments.seed)
        every, storm = self.arguments.every, self.arguments.storm
        plan, number, at = [], 0, every / 3
        while at < storm:
            plan.append((at, "kill", pick.randrange(NODES)))
            stopped = pick.randrange(NODES)
            if number % 3 == 2 and at + 0.8 * every < storm:
                plan.append((at + 7 / 15 * every, "stop", stopped))
            number, at = number + 1, at + every
        return plan

    def settle(self):
        """Waits until the next fault loses no shard."""
        limit = time.monotonic() + START_LIMIT
        while self.events.lacking or time.monotonic() < self.settled_at:
            if time.monotonic() > limit:
                fail(f"shards {sorted(self.events.lacking)} get no standby:\n{self.log.read_text()}")
            self.until(time.monotonic() + 0.05)

    def cause(self, kind, node):
        self.settle()
        pid = self.agents.process_of(node)
        if pid is None:
            return
        now = time.monotonic()
        if kind == "kill":
            os.kill(pid, signal.SIGKILL)
            self.kills.append((now, node, pid, None))
        else:
            os.kill(pid, signal.SIGSTOP)
            self.until(now + self.arguments.every / 3)
            os.kill(pid, signal.SIGCONT)
            self.stops.append((now, node, pid, time.monotonic()))
        self.settled_at = time.monotonic() + PAUSE

    def go(self):
        limit = time.monotonic() + START_LIMIT
        while not self.events.steps:
            if time.monotonic() > limit:
                fail(f"no training:\n{self.log.read_text()}")
            self.until(time.monotonic() + 0.02)
        begin = time.monotonic() + 3
        self.until(begin)
        self.bounds = [begin + sum(self.phases[:i]) for i in range(len(self.phases) + 1)]
        self.until(self.bounds[1])
        for at, kind, node in self.faults():
            self.until(self.bounds[1] + at)
            self.cause(kind, node)
        self.settle()
        self.until(self.bounds[4])
        self.program.send_signal(signal.SIGINT)
        self.program.wait(60)
        self.events.poll()

    # ---- figures ----

    def samples_per_second(self, begin, end):
        return sum(last - first for at, _, first, last in self.events.trained if begin <= at < end) / (end - begin)

    def stall(self, begin, end):
        times = [at for at, _ in self.steps]
        inside = [begin, *times[bisect.bisect(times, begin):bisect.bisect(times, end)], end]
        return max(after - before for before, after in zip(inside, inside[1:]))

    def ended_by(self, fault):
        """The workers that a kill or stop has ended, and the shards that have lost a primary or a standby by it."""
        at = fault[0]
        workers = {worker for when, worker in self.events.evicted if at < when < at + NOTICE}
        lost = [(kind, shard) for when, kind, shard in self.events.replicas if at < when < at + NOTICE]
        return (workers, {shard for kind, shard in lost if kind == "primary_lost"},
                {shard for kind, shard in lost if kind != "standby_in_sync"})

    def worker_contributes(self, kill):
        """The latest of the kill's workers, in seconds after the new process; None if one did not before the end."""
        _, _, _, started = kill
        if started is None:
            return None
        back = [next((at for at, one in self.steps if one == worker and at > started), None) for worker in self.ended_by(kill)[0]]
        return None if None in back else max(back) - started

    def shard_contributes(self, kill):
        """Seconds from the kill to standbys in sync of all its shards; None if not before the end."""
        killed = kill[0]
        in_sync = [next((at for at, kind, one in self.events.replicas if (kind, one) == ("standby_in_sync", shard) and at > killed), None)
                   for shard in self.ended_by(kill)[2]]
        return None if None in in_sync else max(in_sync) - killed

    def contributing(self, begin, end):
        """The mean share of the workers with a recent iteration, looked at every 10 ms."""
        hits, moments = 0, int((end - begin) / 0.01)
        for worker in range(WORKERS):
            times = [at for at, one in self.steps if one == worker]
            for moment in range(moments):
                at = begin + 0.01 * moment
                latest = bisect.bisect(times, at) - 1
                hits += latest >= 0 and times[latest] > at - RECENT
        return hits / (moments * WORKERS)

    def unavailable(self, begin, end):
        """The share of the workers' time in which a worker had no process, or a stopped one."""
        downs = [max(0, min(end, fault[3] or end) - fault[0]) * len(self.ended_by(fault)[0]) for fault in self.kills + self.stops]
        return sum(downs) / (WORKERS * (end - begin))

    def check_once(self):
        """The number of complete epochs, and of samples in all epochs that were trained never or more than once."""
        epochs = {}
        for _, epoch, first, last in self.events.trained:
            epochs.setdefault(epoch, []).append((first, last))
        samples = max(last for ranges in epochs.values() for _, last in ranges)
        latest = max(epochs)
        wrong = sum(not_once(epochs.get(epoch, []), samples) for epoch in range(latest))
        seen = set()  # the last epoch may lack samples
        for first, last in epochs[latest]:
            wrong += len(seen.intersection(range(first, last)))
            seen.update(range(first, last))
        return latest, wrong

    def figures(self):
        self.steps = sorted(self.events.steps)
        offset = self.events.offset
        self.kills, self.stops = ([(at + offset, node, pid, until and until + offset) for at, node, pid, until in faults]
                                  for faults in (self.kills, self.stops))
        base, storm, settle, again, end = (bound + offset for bound in self.bounds)
        free = statistics.mean([self.samples_per_second(base, storm)] * 2 + [self.samples_per_second(again, end)])
        in_storm = self.samples_per_second(storm, settle)
        begins = sorted(at for at, _, _, _ in self.kills + self.stops) + [end]
        watched = lambda at: min(at + WATCHED, begins[bisect.bisect(begins, at)])
        stalls = lambda faults: [self.stall(at, watched(at)) for at, _, _, _ in faults]
        epochs, not_once = self.check_once()
        kills_of = lambda what: [kill for kill in self.kills if self.ended_by(kill)[what]]
        of_workers, of_primaries, of_replicas = kills_of(0), kills_of(1), kills_of(2)
        only_workers = [kill for kill in of_workers if kill not in of_primaries]
        return {
            "fault_free": free, "storm": in_storm, "kept": in_storm / free,
            "kept_corrected": in_storm / free / (1 - self.unavailable(storm, settle)),
            "stall_fault_free": max(self.stall(base, storm), self.stall(again, end)),
            "stall_worker_killed": stalls(only_workers), "stall_shard_killed": stalls(of_primaries),
            "stall_stopped": stalls(self.stops),
            "killed": [[at, NAMES[node]] for at, node, _, _ in self.kills],
            "stopped": [[at, NAMES[node]] for at, node, _, _ in self.stops],
            "new_process": [started and started - at for at, _, _, started in self.kills],
            "worker_contributes": [self.worker_contributes(kill) for kill in of_workers],
            "shard_contributes": [self.shard_contributes(kill) for kill in of_replicas],
            "contributing": self.contributing(storm, settle), "epochs": epochs, "samples_not_once": not_once,
        }

    def draw(self, path):
        """Samples/s of the storm over time, with the faults, as SVG. After figures()."""
        begin, end = (bound + self.events.offset for bound in self.bounds[1:3])
        bins = [0] * int((end - begin) / BIN)
        for at, _ in self.steps:
            if begin <= at < begin + len(bins) * BIN:
                bins[int((at - begin) / BIN)] += BATCH / BIN
        width, height, left, top = 800, 180, 60, 24
        most = max(bins)
        x = lambda at: left + (at - begin) / (end - begin) * width
        y = lambda rate: top + height * (1 - rate / most)
        line = " ".join(f"{x(begin + (i + 0.5) * BIN):.1f},{y(rate):.1f}" for i, rate in enumerate(bins))
        shapes = [f'<rect x="{x(at):.1f}" y="{top}" width="{x(until) - x(at):.1f}" height="{height}" fill="#ddd"/>'
                  for at, _, _, until in self.stops]
        for kill in self.kills:
            workers, primaries, _ = self.ended_by(kill)
            color = "#d62728" if primaries else "#ff7f0e" if workers else "#7f7f7f"
            shapes.append(f'<line x1="{x(kill[0]):.1f}" y1="{top}" x2="{x(kill[0]):.1f}" y2="{top + height}" stroke="{color}"/>')
        labels = [(left - 6, y(rate) + 4, "end", f"{rate:,.0f}") for rate in (0, most / 2, most)]
        labels += [(x(begin + at), top + height + 16, "middle", f"{at} s") for at in range(0, int(end - begin) + 1, 30)]
        labels.append((left, 14, "start", "samples/s; kill of a node with a primary (red), with a worker only (orange), of another (grey); "
                       "stopped node (grey area)"))
        texts = [f'<text x="{at:.0f}" y="{down:.0f}" text-anchor="{anchor}">{text}</text>' for at, down, anchor, text in labels]
        path.write_text(f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {left + width + 20} {top + height + 26}" '
                        'font-family="sans-serif" font-size="12">\n<rect width="100%" height="100%" fill="white"/>\n'
                        + "\n".join(shapes) + f'\n<polyline points="{line}" fill="none" stroke="#1f77b4" stroke-width="1.5"/>\n'
                        + "\n".join(texts) + "\n</svg>\n")


def spread(values):
    known = [value for value in values if value is not None]
    missing = f", {len(values) - len(known)} never" if len(known) < len(values) else ""
    return f"{statistics.median(known):.3f} ({min(known):.3f} to {max(known):.3f}){missing}" if known else "-" + missing


def print_table(figures):
    rows = [("fault-free samples/s", f"{figures['fault_free']:.0f}"),
            ("samples/s in the storm", f"{figures['storm']:.0f}"),
            ("share kept", f"{figures['kept']:.3f}, corrected {figures['kept_corrected']:.3f}"),
            ("longest stall without faults, s", f"{figures['stall_fault_free']:.3f}"),
            ("kills", f"{len(figures['killed'])}: of primaries {len(figures['stall_shard_killed'])}, of workers only "
                      f"{len(figures['stall_worker_killed'])}"),
            ("stall, only workers killed, s", spread(figures["stall_worker_killed"])),
            ("stall, primary killed, s", spread(figures["stall_shard_killed"])),
            ("stall, process stopped, s", spread(figures["stall_stopped"])),
            ("kill to new process, s", spread(figures["new_process"])),
            ("new process to its worker, s", spread(figures["worker_contributes"])),
            ("kill to standbys in sync, s", spread(figures["shard_contributes"])),
            ("share of workers contributing", f"{figures['contributing']:.3f}"),
            ("samples not trained once", str(figures["samples_not_once"]))]
    for name, text in rows:
        print(f"{name:34} {text}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("programs", type=Path)
    parser.add_argument("--base", type=float, default=60)
    parser.add_argument("--storm", type=float, default=150)
    parser.add_argument("--every", type=float, default=15)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", action="store_true", help="print one line of JSON instead of a table")
    parser.add_argument("--keep", action="store_true", help="keep the folder with the logs and the run")
    parser.add_argument("--picture", type=Path, help="an SVG file of samples/s and faults over time")
    parser.add_argument("--peer", help="command of another program, run afterwards")
    arguments = parser.parse_args()
    if not DATA.is_dir():
        print(f"skipped: there is no {DATA} (package dataset-fashion-mnist)")
        sys.exit(77)
    folder = Path(tempfile.mkdtemp(prefix="leeway-storm."))
    agents = Agents(arguments.programs.resolve(), folder)
    storm = None
    try:
        storm = Storm(arguments, agents, folder)
        storm.go()
    except BaseException:
        print(f"storm: the logs are in {folder}", file=sys.stderr)
        raise
    finally:
        if storm:
            storm.program.kill()
            storm.program.wait()
        agents.stop()
    figures = storm.figures()
    if arguments.json:
        print(json.dumps(figures))
    else:
        print_table(figures)
    if arguments.picture:
        storm.draw(arguments.picture)
    if figures["samples_not_once"] or figures["epochs"] == 0 or storm.program.returncode not in (0, 130):
        fail(f"exit code {storm.program.returncode}, {figures['epochs']} complete epochs, {figures['samples_not_once']} samples were "
             f"not trained once; see {folder}")
    if arguments.keep:
        print(f"kept: {folder}", file=sys.stderr)
    else:
        shutil.rmtree(folder)
    if arguments.peer:
        same = ["--base", arguments.base, "--storm", arguments.storm, "--every", arguments.every, "--seed", arguments.seed]
        done = subprocess.run([*shlex.split(arguments.peer), *map(str, same)], capture_output=True, text=True)
        print(done.stdout.splitlines()[-1] if done.stdout else done.stderr)


if __name__ == "__main__":
    main()
