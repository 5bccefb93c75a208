#!/usr/bin/env python3
"""Runs that are killed while they write checkpoints, and resumed.

usage: kill_and_resume.py FOLDER_OF_PROGRAMS [--kills 8] [--seed S]

Each run has a seed, which determines its model, policy, interval of checkpoints, and the kind and
time of each kill. Every process of the run gets SIGKILL: the program, and the nodes of a cluster
if it runs on one. Half of the kills wait until a checkpoint is incomplete, the others come at a
random time. After a kill, no checkpoint may be damaged or lost, and the run is resumed on threads
or on a new cluster.

The nodes of some clusters have disks of their own: a folder mounted over --checkpoint-dir. The
copies there must be as intact as the checkpoints at the program. (Not where mounting is not
permitted.)

A run under bsp must end with the weights of an uninterrupted run, bit for bit. Every run must
train each sample of each epoch once. Two more cases: a run killed before its first checkpoint, and
Ctrl-C. The first failure prints the seed and the logs, keeps the folder, and exits with code 1.
`--kills 1 --seed S` repeats a run, except for the timing of processes.
"""
import argparse
import functools
import json
import os
import random
import secrets
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "cluster"))
from soak import Failed, Process, comes_true, shared_memory  # noqa: E402

SAMPLES = 10_000  # training samples
MARK = "kill_and_resume"
MOUNTED = ["unshare", "--mount", "sh", "-c", 'mount --bind "$0" "$1" && shift && exec "$@"']
PLAN = """name = "kills"
model = [{{ linear.outputs = 64 }}, "relu", {{ linear.outputs = 2 }}]
data.csv.train = "{}/data.csv"
"""


def write_plan(folder):
    lines = SAMPLES * 5 // 4  # a fifth is test data
    rows = (f"{i % 7},{i % 5},{int(i % 7 > 3)}\n" for i in range(lines))
    (folder / "data.csv").write_text("x,y,label\n" + "".join(rows))
    (folder / "plan.toml").write_text(PLAN.format(folder))


def manifests(checkpoints):
    """The numbers of the complete checkpoints."""
    return sorted(int(path.parent.name) for path in checkpoints.glob("[0-9]*/manifest.json"))


def has_incomplete(checkpoints):
    return any(not (path / "manifest.json").exists() for path in checkpoints.glob("[0-9]*"))


@functools.cache
def can_mount():
    return subprocess.run([*MOUNTED, "/mnt", "/mnt", "true"], capture_output=True).returncode == 0


def tensors_in(files):
    """The bytes of each tensor in safetensors files. Slices of a tensor are put together."""
    found = {}
    for file in files:
        content = file.read_bytes()
        header_size = struct.unpack("<Q", content[:8])[0]
        data = content[8 + header_size:]
        for name, entry in json.loads(content[8:8 + header_size]).items():
            if name == "__metadata__":
                continue
            begin, end = entry["data_offsets"]
            name, _, rows = name.partition("[")
            first_row = int(rows.split(":")[0]) if rows else 0
            found.setdefault(name, {})[first_row] = data[begin:end]
    return {name: b"".join(rows[row] for row in sorted(rows)) for name, rows in found.items()}


class Cluster:
    """The program of a run, and the nodes that it uses. Without nodes, it runs on threads."""

    def __init__(self, run, node_count, arguments):
        self.processes = []
        run.attempts.append(self)
        name = f"{len(run.attempts)}"
        listen = ["--listen", "127.0.0.1:0", "--silence", "20s"]
        for node in range(node_count):
            words = [*run.mounted(node), run.bin / "leeway", "node", *listen]
            self.processes.append(Process(f"{name}-node{node + 1}", words, run.folder, MARK, "/"))
        addresses = [node.address() for node in self.processes]
        if None in addresses:
            raise Failed("a node agent does not print its address")
        if node_count > 0:
            arguments = [*arguments, "--nodes", ",".join(addresses), "--silence", "20s"]
        command = [run.bin / "leeway", *arguments, "--quiet"]
        self.program = Process(f"{name}-program", command, run.folder, MARK, run.folder)
        self.processes.append(self.program)

    def has_ended(self):
        return self.program.has_ended()

    def freeze(self):
        """Returns when all threads of all processes are stopped."""
        for process in self.processes:
            process.signal(signal.SIGSTOP)
        for process in self.processes:
            if not process.has_ended():
                os.waitid(os.P_PID, process.popen.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)

    def thaw(self):
        for process in self.processes:
            process.signal(signal.SIGCONT)

    def kill(self):
        for process in self.processes:
            process.kill()
        for process in self.processes:
            process.popen.wait()

    def must_end(self, code):
        if not comes_true(self.has_ended):
            raise Failed("the program does not end")
        if self.program.popen.returncode != code:
            raise Failed(f"the program ended with code {self.program.popen.returncode}, not {code}")
        self.kill()


class Run:
    """A run, from its start over its kills to its end."""

    def __init__(self, programs, seed):
        self.bin = programs
        self.seed = seed
        self.random = random.Random(seed)
        self.folder = Path(tempfile.mkdtemp(prefix="leeway-kills-"))
        self.out = self.folder / "run"
        self.checkpoints = self.out / "checkpoints"
        self.attempts = []
        self.kills = self.incomplete = 0
        write_plan(self.folder)
        self.draw()
        self.place = []
        if self.own_disks:
            self.checkpoints = self.folder / "checkpoints"
            self.checkpoints.mkdir()
            self.place = ["--checkpoint-dir", self.checkpoints]

    def draw(self):
        pick = self.random
        self.staleness = pick.choice(["bsp", "bsp", "0", "3", "asp"])
        self.stages = pick.choice([1, 1, 2])
        self.epochs = pick.choice([10, 20])
        self.flags = ["--shards", "2", "--staleness", self.staleness, "--epochs", str(self.epochs),
                      "--optimizer", pick.choice(["momentum", "adam"]), "--batch", "16"]
        self.flags += ["--workers", str(pick.choice([2, 4])), "--stages", str(self.stages)]
        self.every = ["--checkpoint-every", f"{pick.randint(1, 5)}it",
                      "--keep", str(pick.randint(1, 3))]
        self.own_disks = pick.random() < 0.3 and can_mount()
        self.story = [" ".join(self.flags + self.every) + (", own disks" * self.own_disks)]

    def copies(self, node):
        """The folder that a node with its own disk sees in the place of self.checkpoints."""
        return self.folder / f"disk{node + 1}"

    def mounted(self, node):
        """The first words of the command line of a node."""
        if not self.own_disks:
            return []
        self.copies(node).mkdir(exist_ok=True)
        return [*MOUNTED, self.copies(node), self.checkpoints]

    def changes(self):
        """Flags that change a run that need not stay the same bit for bit."""
        if self.staleness == "bsp":
            return []
        return ["--workers", self.random.choice(["2", "4"]),
                "--shards", self.random.choice(["1", "2"])]

    def start(self, *more):
        """Starts the run, or resumes it if it has a checkpoint."""
        node_count = self.random.choice([0, 2] if self.own_disks else [0, 0, 0, 2])
        self.node_count = node_count
        self.newest_before = max(manifests(self.checkpoints), default=0)
        if manifests(self.checkpoints):
            arguments = ["resume", self.out, *self.changes(), *more]
        else:
            shutil.rmtree(self.out, ignore_errors=True)
            arguments = ["run", self.folder / "plan.toml", *self.flags, *self.every, *self.place,
                         "--out", self.out, *more]
        self.story.append(f"{node_count} nodes" if node_count else "threads")
        return Cluster(self, node_count, arguments)

    def catch_incomplete(self, cluster):
        """Stops all processes while a checkpoint is incomplete. False if the run has ended."""
        while not cluster.has_ended():
            if has_incomplete(self.checkpoints):
                cluster.freeze()
                if has_incomplete(self.checkpoints):
                    return True
                cluster.thaw()
        return False

    def kill(self, cluster):
        """Kills the run at a drawn time. False if it has ended before."""
        newest = max(manifests(self.checkpoints), default=0)
        if self.random.random() < 0.9:  # the others may come before the first new checkpoint
            comes_true(lambda: cluster.has_ended()
                       or max(manifests(self.checkpoints), default=0) > newest)
        aimed = self.random.random() < 0.5
        time.sleep(self.random.uniform(0, 0.2))
        if aimed:
            self.catch_incomplete(cluster)
        if cluster.has_ended():
            return False
        newest = max(manifests(self.checkpoints), default=0)
        cluster.kill()
        if cluster.program.popen.returncode != -signal.SIGKILL:
            return False
        self.kills += 1
        hit = has_incomplete(self.checkpoints)
        self.incomplete += hit
        self.story[-1] += f" killed {'in a checkpoint' if hit else 'without one'} after {newest}"
        if max(manifests(self.checkpoints), default=0) < newest:
            raise Failed(f"checkpoint {newest} is lost")
        return True

    def check_kept(self):
        """All visible checkpoints must be intact."""
        self.check_intact(self.out, manifests(self.checkpoints))
        if self.own_disks and manifests(self.checkpoints):
            self.check_copies()

    def check_copies(self):
        """The disks of both nodes together must hold intact checkpoints. A node whose shards have
        moved away keeps the remains of old ones."""
        gathered = self.folder / "gathered"
        shutil.rmtree(gathered, ignore_errors=True)
        # A node without copies may have the mark of an earlier run, which had no checkpoint.
        for node in sorted((0, 1), key=lambda node: manifests(self.copies(node))[-1:]):
            if self.copies(node).exists():
                shutil.copytree(self.copies(node), gathered, dirs_exist_ok=True)
        here, copied = manifests(self.checkpoints), manifests(gathered)
        if copied and copied[-1] > here[-1]:
            raise Failed(f"the nodes have checkpoint {copied[-1]}, the program only {here[-1]}")
        # The program's manifest comes first.
        missing = set(self.new_on_nodes(here)) - set(copied) - {here[-1]}
        if missing:
            raise Failed(f"the nodes have no copies of the checkpoints {sorted(missing)}")
        for number in set(copied) - set(here):
            shutil.rmtree(gathered / f"{number:06}")
        if set(copied) & set(here):
            self.check_intact(gathered, manifests(gathered))

    def new_on_nodes(self, numbers):
        """The checkpoints that the last attempt wrote, if it ran on nodes."""
        return [number for number in numbers if self.node_count and number > self.newest_before]

    def check_intact(self, run, numbers):
        done = subprocess.run([self.bin / "leeway", "checkpoints", run, "--verify"],
                              capture_output=True, text=True)
        if not numbers:
            if done.returncode == 0:
                raise Failed(f"no checkpoint is complete, but some are listed:\n{done.stdout}")
            return
        lines = [line.split() for line in done.stdout.splitlines()[2:]]
        listed = [(line[0], line[-1]) for line in lines]
        if done.returncode != 0 or listed != [(f"{number:06}", "ok") for number in numbers]:
            raise Failed(f"checkpoints {numbers} are not all intact:\n{done.stdout}{done.stderr}")

    def has_all(self):
        """True if the latest checkpoint is of the end."""
        number = max(manifests(self.checkpoints), default=0)
        if number == 0:
            return False
        manifest = json.loads((self.checkpoints / f"{number:06}/manifest.json").read_text())
        supply = manifest["scheduler"]["supply"]
        return supply["fresh"] == self.epochs * SAMPLES and not supply["returned"]

    def check_refused_at_end(self):
        """A run with a result cannot be resumed, and its last checkpoint has the weights of the end."""
        refused = subprocess.run([self.bin / "leeway", "resume", self.out], capture_output=True,
                                 text=True)
        if refused.returncode != 2 or f"all {self.epochs} epochs are trained" not in refused.stderr:
            raise Failed(f"resuming a trained run: {refused.returncode}: {refused.stderr}")
        if self.staleness == "bsp":
            latest = self.checkpoints / f"{max(manifests(self.checkpoints)):06}"
            if tensors_in(latest.glob("weights-*")) != tensors_in([self.uninterrupted()]):
                raise Failed("the last checkpoint differs from an uninterrupted run")

    def check_end(self):
        result = json.loads((self.out / "result.json").read_text())
        if result["samples_trained"] != self.epochs * SAMPLES:
            raise Failed(f"{result['samples_trained']} samples were trained, "
                         f"not {self.epochs * SAMPLES}")
        for line in (self.out / "metrics.jsonl").read_text().splitlines():
            json.loads(line)
        found = (self.out / "weights.safetensors").read_bytes()
        if self.staleness == "bsp" and found != self.uninterrupted().read_bytes():
            raise Failed("the weights differ from those of an uninterrupted run")

    def uninterrupted(self):
        """The weights of a run with the same settings, without kills and checkpoints."""
        whole = self.folder / "whole"
        arguments = ["run", self.folder / "plan.toml", *self.flags, "--checkpoint-every", "none",
                     "--out", whole]
        Cluster(self, 0, arguments).must_end(0)
        return whole / "weights.safetensors"

    def end(self):
        for attempt in self.attempts:
            attempt.kill()


def kill_and_resume(run, kills):
    """Kills the run up to `kills` times, and lets it end."""
    while run.kills < kills:
        cluster = run.start()
        ended = not run.kill(cluster)
        if ended:
            break
        run.check_kept()
        if run.has_all() and (run.out / "result.json").exists():
            run.story.append("at its end")
            return run.check_refused_at_end()
    else:
        cluster = run.start()
    cluster.must_end(0)
    run.check_kept()
    run.check_end()


def kill_before_first(run, _):
    """A run killed before its first checkpoint cannot be resumed."""
    run.every = ["--checkpoint-every", "10h"]
    run.flags[run.flags.index("--epochs") + 1] = "100000"
    cluster = run.start()
    metrics = run.out / "metrics.jsonl"
    if not comes_true(lambda: metrics.exists() and metrics.stat().st_size > 0):
        raise Failed("the run does not begin")
    cluster.kill()
    refused = subprocess.run([run.bin / "leeway", "resume", run.out], capture_output=True,
                             text=True)
    if refused.returncode != 2 or f"{run.out}: holds no checkpoint; " not in refused.stderr:
        raise Failed(f"resuming without a checkpoint: {refused.returncode}: {refused.stderr}")


def interrupt(run, _):
    """Ctrl-C writes a checkpoint; the resumed run ends as an uninterrupted one, bit for bit."""
    run.staleness = run.flags[run.flags.index("--staleness") + 1] = "bsp"
    run.every = ["--checkpoint-every", "10h"]
    cluster = run.start()
    metrics = run.out / "metrics.jsonl"
    if not comes_true(lambda: metrics.exists() and metrics.stat().st_size > 0):
        raise Failed("the run does not begin")
    cluster.program.signal(signal.SIGINT)
    if comes_true(cluster.has_ended) and cluster.program.popen.returncode == 0:
        run.story.append("ended before the signal")
    else:
        cluster.must_end(130)
        if len(manifests(run.checkpoints)) != 1:
            raise Failed(f"checkpoints after Ctrl-C: {manifests(run.checkpoints)}")
        run.start().must_end(0)
    run.check_kept()
    run.check_end()


def passes(case, programs, seed, kills=0):
    """Returns the run, or None after a failure."""
    memory = shared_memory()
    began = time.monotonic()
    run = Run(programs, seed)
    try:
        case(run, kills)
        run.end()
        if not comes_true(lambda: shared_memory() <= memory, 5):
            raise Failed(f"left in /dev/shm: {shared_memory() - memory}")
    except (Failed, OSError, ValueError) as failure:
        print(f"{case.__name__}, seed {seed}: {'; '.join(run.story)}: FAILED: {failure}")
        run.end()
        for process in (one for attempt in run.attempts[-2:] for one in attempt.processes):
            print(f"--- {process.name}\n{process.output()}", end="")
        print(f"kept: {run.folder}", flush=True)
        return None
    took = time.monotonic() - began
    print(f"{case.__name__}, seed {seed}: {'; '.join(run.story)}: passed in {took:.1f} s",
          flush=True)
    shutil.rmtree(run.folder)
    return run


def main():
    parser = argparse.ArgumentParser(description="Kills runs that write checkpoints.")
    parser.add_argument("programs", type=Path, help="folder with leeway: build/release/bin")
    parser.add_argument("--kills", type=int, default=8, help="in all runs together [8]")
    parser.add_argument("--seed", type=int, default=secrets.randbelow(1_000_000),
                        help="of the first run; later runs add 1")
    arguments = parser.parse_args()
    programs = arguments.programs.resolve()
    for case in (kill_before_first, interrupt):
        if not passes(case, programs, arguments.seed):
            sys.exit(1)
    kills = incomplete = 0
    for seed in range(arguments.seed, sys.maxsize):
        if kills >= arguments.kills:
            break
        run = passes(kill_and_resume, programs, seed, min(4, arguments.kills - kills))
        if not run:
            sys.exit(1)
        kills += run.kills
        incomplete += run.incomplete
    print(f"{kills} kills, {incomplete} of them with an incomplete checkpoint: passed")


if __name__ == "__main__":
    main()
