#!/usr/bin/env python3
"""Runs that write checkpoints on a disk with faults.

usage: faulty_disk.py FOLDER_OF_PROGRAMS --calls LIBRARY [--cases N] [--seed S]
       faulty_disk.py FOLDER_OF_PROGRAMS --mounts

--calls: the LIBRARY (faulty_disk.cpp) makes write, fsync or rename fail after a number of calls, or
stores less than the program writes, or something else. Without --cases, tries all calls of the
first checkpoints.

--mounts: a disk that is full from some moment on, one that is full for a while, a folder that
becomes read-only, and run folders on small disks. Exit code 77: skipped, because mounting is not permitted.

Every other run must end with code 0 and the weights of a run on a good disk, and name the file and the
cause of each failure. Every checkpoint that is listed as intact can be resumed, bit for bit.
"""
import argparse
import json
import os
import random
import re
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "cluster"))
from soak import Failed, comes_true  # noqa: E402
from kill_and_resume import manifests, write_plan  # noqa: E402

EPOCHS = 2
FLAGS = ["--workers", "2", "--shards", "2", "--staleness", "bsp", "--optimizer", "momentum",
         "--batch", "16", "--quiet"]
CAUSES = {"write": "No space left on device", "fsync": "Input/output error",
          "rename": "Input/output error"}


class Disk:
    """A folder in which runs store their checkpoints."""

    def __init__(self, programs, folder):
        self.leeway = programs / "leeway"
        self.folder = folder
        self.checkpoints = folder / "checkpoints"
        self.fresh = 0
        write_plan(folder)
        self.whole = self.run(EPOCHS, "--checkpoint-every", "none")

    def command(self, *arguments):
        return [self.leeway, *map(str, arguments)]

    def new_folder(self):
        self.fresh += 1
        return self.folder / f"run{self.fresh}"

    def run(self, epochs, *flags, environment={}, code=0):
        """Runs the plan, and returns the folder of the run."""
        out = self.new_folder()
        self.must(code, "run", self.folder / "plan.toml", *FLAGS, "--epochs", epochs, "--out", out,
                  *flags, environment=environment)
        return out

    def must(self, code, *arguments, environment={}):
        """Returns the output."""
        done = subprocess.run(self.command(*arguments), capture_output=True, text=True,
                              env={**os.environ, **environment})
        if done.returncode != code:
            raise Failed(f"{' '.join(map(str, arguments))}: code {done.returncode}, not {code}:\n"
                         f"{done.stdout}{done.stderr}")
        return done.stdout + done.stderr

    def must_equal(self, run):
        if (run / "weights.safetensors").read_bytes() != \
                (self.whole / "weights.safetensors").read_bytes():
            raise Failed(f"the weights of {run} differ from those of a run on a good disk")

    def results(self, run):
        """The written checkpoints and the errors of the others. Each error names a file."""
        checkpoints = json.loads((run / "result.json").read_text())["checkpoints"]
        errors = [one["error"] for one in checkpoints if "error" in one]
        for error in errors:
            if not error.startswith(str(self.checkpoints)):
                raise Failed(f"an error names no file: {error}")
        return [one["number"] for one in checkpoints if "error" not in one], errors

    def errors(self, run):
        return self.results(run)[1]

    def intact(self):
        """The checkpoints that are listed as intact, and those that are listed as damaged."""
        numbers = manifests(self.checkpoints)
        if not numbers:
            return [], []
        done = subprocess.run(self.command("checkpoints", self.checkpoints, "--verify"),
                              capture_output=True, text=True)
        intact = [int(n) for n in re.findall(r"^ +(\d{6}) .* ok$", done.stdout, re.MULTILINE)]
        damaged = sorted(set(numbers) - set(intact))
        if bool(damaged) != (done.returncode == 1) or len(damaged) != done.stdout.count("damaged:"):
            raise Failed(f"--verify: code {done.returncode}\n{done.stdout}{done.stderr}")
        return intact, damaged

    def must_resume(self, number):
        """Resumes from a checkpoint in another folder: with the same weights at the end."""
        out = self.new_folder()
        manifest = json.loads((self.checkpoints / f"{number:06}/manifest.json").read_text())
        arguments = ["resume", self.checkpoints / f"{number:06}", "--checkpoint-every", "none",
                     "--checkpoint-dir", f"{out}/checkpoints", "--out", out, "--quiet"]
        supply = manifest["scheduler"]["supply"]
        if supply["fresh"] == EPOCHS * 10_000 and not supply["returned"]:  # the end of the run
            if "epochs are trained" not in self.must(2, *arguments):
                raise Failed(f"resuming checkpoint {number} is refused for another reason")
            return
        self.must(0, *arguments)
        self.must_equal(out)


def wrong_calls(disk, library, call, works, how):
    """One run whose disk has this fault."""
    shutil.rmtree(disk.checkpoints, ignore_errors=True)
    flags = ["--checkpoint-every", "300it", "--keep", "2", "--checkpoint-dir", disk.checkpoints]
    fault = {"LD_PRELOAD": str(library),
             "LEEWAY_FAULTY_DISK": f"{disk.checkpoints} {call} {works} {how}"}
    out = disk.new_folder()
    done = subprocess.run(disk.command("run", disk.folder / "plan.toml", *FLAGS, "--epochs", EPOCHS,
                                       "--out", out, *flags),
                          capture_output=True, text=True, env={**os.environ, **fault})
    text = done.stdout + done.stderr
    if done.returncode == 2:  # before the run begins, it writes its name
        if f"{disk.checkpoints / 'run'}: " not in text and f"{disk.checkpoints}: " not in text:
            raise Failed(f"the run is refused for another reason: {text}")
        return "refused"
    if done.returncode != 0:
        raise Failed(f"the run ends with code {done.returncode}:\n{text}")
    disk.must_equal(out)
    written, errors = disk.results(out)
    cause = {"short": "; check the disk"}.get(how, CAUSES[call])
    if [error for error in errors if cause not in error]:
        raise Failed(f"errors without the cause: {errors}")
    intact, damaged = disk.intact()
    if damaged and how != "flips":
        raise Failed(f"damaged checkpoints: {damaged}")
    if how == "once" and len(errors) > 1:
        raise Failed(f"after one failure: {errors}")
    if not set(written[-2:]) <= {*intact, *damaged}:
        raise Failed(f"checkpoints {written} are written, but {intact} are left")
    remains = len([entry for entry in disk.checkpoints.glob("[0-9]*")]) - len(intact + damaged)
    if remains > 1:
        raise Failed(f"{remains} incomplete checkpoints are left")
    for number in damaged:
        refused = disk.must(2, "resume", disk.checkpoints / f"{number:06}", "--out",
                            disk.new_folder(), "--checkpoint-every", "none")
        if f"{disk.checkpoints / f'{number:06}'}/" not in refused or "damaged" not in refused:
            raise Failed(f"a damaged checkpoint is not named: {refused}")
    for number in intact:
        disk.must_resume(number)
    return f"{len(errors)} failed, {len(intact)} intact, {len(damaged)} damaged"


def check_calls(disk, library, cases, seed):
    all_cases = [(call, works, how)
                 for call, how, count in [("write", "fails", 40), ("write", "once", 40),
                                          ("write", "short", 40), ("write", "flips", 60),
                                          ("fsync", "fails", 40), ("fsync", "once", 40),
                                          ("rename", "fails", 20), ("rename", "once", 20)]
                 for works in range(count)]
    if cases:
        all_cases = random.Random(seed).sample(all_cases, cases)
    for case in all_cases:
        try:
            print(*case, wrong_calls(disk, library, *case), flush=True)
        except Failed as failure:
            raise Failed(f"{' '.join(map(str, case))}: {failure}")


class Mount:
    """A mount that is removed at the end."""

    def __init__(self, folder, *arguments):
        folder.mkdir(exist_ok=True)
        self.folder = folder
        self.run("mount", *arguments, str(folder))

    def run(self, *command):
        subprocess.run(command, check=True, capture_output=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.run("umount", str(self.folder))


def start(disk, *flags):
    """Starts a long run. Returns it, its folder, and a function for the lines of its metrics."""
    out = disk.new_folder()
    process = subprocess.Popen(disk.command("run", disk.folder / "plan.toml", *FLAGS, "--epochs",
                                            "100000", "--out", out, *flags),
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    def checkpoints(failed):
        metrics = out / "metrics.jsonl"
        text = metrics.read_text() if metrics.exists() else ""
        lines = [json.loads(line) for line in text.split("\n")[:-1]]
        return [line["checkpoint"] for line in lines
                if "checkpoint" in line and ("error" in line) == failed]

    return process, out, checkpoints


def wait_for(condition, process, what):
    if not comes_true(lambda: condition() or process.poll() is not None) or not condition():
        process.kill()
        raise Failed(f"{what}: {process.communicate()[0]}")


def full_for_good(disk):
    """The disk has room for some checkpoints, but not for all that are to be kept."""
    with Mount(disk.checkpoints, "-t", "tmpfs", "-o", "size=48k", "tmpfs"):
        out = disk.new_folder()
        text = disk.must(0, "run", disk.folder / "plan.toml", *FLAGS[:-1], "--epochs", EPOCHS,
                         "--out", out, "--checkpoint-every", "100it", "--keep", "100",
                         "--checkpoint-dir", disk.checkpoints)
        errors = disk.errors(out)
        if not errors or any("No space left on device" not in error for error in errors):
            raise Failed(f"errors on a full disk: {errors}")
        if f"{len(errors)} could not be written: {errors[-1]}" not in text:
            raise Failed(f"the summary does not name the failure {errors[-1]}:\n{text}")
        disk.must_equal(out)
        intact, damaged = disk.intact()
        if not intact or damaged:
            raise Failed(f"intact {intact}, damaged {damaged}")
        for number in intact[:3] + intact[-1:]:
            disk.must_resume(number)
        # On the full disk, the run continues as well.
        disk.must(0, "resume", disk.checkpoints, "--epochs", EPOCHS + 1, "--quiet", "--out",
                  disk.new_folder())
        return f"{len(errors)} failed, {len(intact)} intact"


def full_for_a_while(disk):
    """Another program fills the disk, and frees it later."""
    with Mount(disk.checkpoints, "-t", "tmpfs", "-o", "size=512k", "tmpfs"):
        process, out, checkpoints = start(disk, "--checkpoint-every", "100it", "--checkpoint-dir",
                                          disk.checkpoints)
        wait_for(lambda: checkpoints(failed=False), process, "no checkpoint")
        ballast = disk.checkpoints / "ballast"

        def fill():  # again when the run has removed a checkpoint
            with ballast.open("ab", buffering=0) as file:
                try:
                    while file.write(bytes(4096)):
                        pass
                except OSError:
                    pass
            return len(checkpoints(failed=True)) > 3

        wait_for(fill, process, "no failure")
        ballast.unlink()
        last = max(checkpoints(failed=True))
        wait_for(lambda: max(checkpoints(failed=False)) > last, process, "no checkpoint later")
        process.send_signal(signal.SIGINT)
        process.communicate()
        if process.returncode != 130:
            raise Failed(f"code {process.returncode} after Ctrl-C")
        intact, damaged = disk.intact()
        if len(intact) != 3 or damaged:
            raise Failed(f"intact {intact}, damaged {damaged}")
        left = {entry.name for entry in disk.checkpoints.iterdir()}
        if left != {"run", *(f"{number:06}" for number in intact)}:
            raise Failed(f"the folder holds {sorted(left)}")
        return f"{len(disk.errors(out))} failed, {len(intact)} intact"


def read_only(disk):
    """The folder becomes read-only during the run."""
    with Mount(disk.checkpoints, "--bind", str(disk.checkpoints)) as mount:
        process, out, checkpoints = start(disk, "--checkpoint-every", "100it", "--checkpoint-dir",
                                          disk.checkpoints)
        wait_for(lambda: checkpoints(failed=False), process, "no checkpoint")

        def protect():  # refused while a file is being written
            command = ["mount", "-o", "remount,bind,ro", str(mount.folder)]
            return subprocess.run(command, capture_output=True).returncode == 0

        wait_for(protect, process, "the folder does not become read-only")
        wait_for(lambda: len(checkpoints(failed=True)) > 2, process, "no failure")
        process.send_signal(signal.SIGINT)
        text = process.communicate()[0]
        if process.returncode != 130:
            raise Failed(f"code {process.returncode} after Ctrl-C: {text}")
        errors = disk.errors(out)
        if any("Read-only file system" not in error for error in errors):
            raise Failed(f"errors of a read-only folder: {errors}")
        intact, damaged = disk.intact()
        if not intact or damaged:
            raise Failed(f"intact {intact}, damaged {damaged}")
        refused = disk.must(2, "run", disk.folder / "plan.toml", *FLAGS, "--out", disk.new_folder(),
                            "--checkpoint-dir", disk.checkpoints / "new")
        if f"{disk.checkpoints}/new: cannot be created: Read-only file system" not in refused:
            raise Failed(f"a read-only folder is refused for another reason: {refused}")
        # A read-only checkpoint can be resumed in another folder.
        epochs = json.loads((out / "result.json").read_text())["samples_trained"] / 10_000 + 1
        out = disk.new_folder()
        disk.must(0, "resume", disk.checkpoints, "--epochs", epochs, "--checkpoint-dir",
                  f"{out}/checkpoints", "--out", out, "--quiet")
        return f"{len(errors)} failed, {len(intact)} intact"


def full_run_folder(disk):
    """The disk of the run folder has room for some of the files only. The run must train all of its
    samples, keep what fits, and name the rest with the cause."""
    place = disk.folder / "small"
    place.mkdir()
    least, found = None, set()
    for pages, trace in [*((pages, []) for pages in range(1, 30)), (8, ["--trace"]), (8, ["--trace-json"]),
                         (8, ["--trace-messages"])]:
        with Mount(place, "-t", "tmpfs", "-o", f"size={4 * pages}k", "tmpfs"):
            out = place / "run"
            done = subprocess.run(
                disk.command("run", disk.folder / "plan.toml", *FLAGS[:-1], "--epochs", EPOCHS,
                             "--checkpoint-every", "none", "--out", out, *trace),
                capture_output=True, text=True)
            text = done.stdout + done.stderr
            if done.returncode == 2:  # there was no room for the plan
                if "No space left on device" not in text or least is not None:
                    raise Failed(f"{pages} pages: refused for another reason: {text}")
                continue
            least = least or pages
            if f"samples trained {EPOCHS * 10_000:,}" not in text:
                raise Failed(f"{pages} pages: the run did not train all samples: {text}")
            kept = re.search(rf"^Kept in {out}: (.*)$", text, re.MULTILINE)
            there = {entry.name for entry in out.iterdir() if entry.stat().st_size > 0}
            # An incomplete messages.bin counts as lost.
            lost = {"messages.bin"} & there
            if lost and f"Incomplete: {out}/messages.bin: cannot be written" not in text:
                raise Failed(f"{pages} pages: lost messages are not named: {text}")
            if kept is None or not set(kept[1].split(", ")) == there - lost:
                raise Failed(f"{pages} pages: the folder holds {sorted(there)}: {text}")
            missing = set(re.findall(rf"^Not kept: {out}/(\S+): .*No space left", text,
                                     re.MULTILINE))
            files = {"plan.json", "result.json", "curves.svg", "weights.safetensors"}
            if missing & there or not missing | there >= files:
                raise Failed(f"{pages} pages: names {sorted(missing)} as missing: {text}")
            found.add(len(missing))
            is_lost = bool(missing & {"result.json", "weights.safetensors"})
            if done.returncode != (1 if is_lost else 0):
                raise Failed(f"{pages} pages: code {done.returncode}: {text}")
            if is_lost and "training has ended, but" not in text:
                raise Failed(f"{pages} pages: no error: {text}")
            if "weights.safetensors" in there:
                disk.must_equal(out)
            if "result.json" in there:
                json.loads((out / "result.json").read_text())
            elif "weights.safetensors" in there:
                raise Failed(f"{pages} pages: the weights are there, but not the result: {text}")
            for name in {"metrics.jsonl", "events.jsonl"} & there:
                written = (out / name).read_text().split("\n")
                if written.pop() != "" or any(not json.loads(line) for line in written):
                    raise Failed(f"{pages} pages: {name} ends inside of a line")
    if found != {0, 1, 2, 3}:
        raise Failed(f"the numbers of missing files are {found}")
    return f"starts with {least} pages"


def check_mounts(disk):
    for case in (full_for_good, full_for_a_while, read_only, full_run_folder):
        try:
            print(case.__name__, case(disk), flush=True)
        except Failed as failure:
            raise Failed(f"{case.__name__}: {failure}")


def enter_own_mounts():
    """Restarts the program in a new mount namespace, which ends with it."""
    if os.environ.get("LEEWAY_OWN_MOUNTS"):
        return
    with tempfile.TemporaryDirectory() as folder:
        mounting = ["unshare", "--mount", "mount", "-t", "tmpfs", "tmpfs", folder]
        if shutil.which("unshare") is None or subprocess.run(mounting).returncode != 0:
            print("skipped: mounting is not permitted")
            sys.exit(77)
    os.environ["LEEWAY_OWN_MOUNTS"] = "1"
    os.execvp("unshare", ["unshare", "--mount", sys.executable, *sys.argv])


def main():
    parser = argparse.ArgumentParser(description="Writes checkpoints on a disk with faults.")
    parser.add_argument("programs", type=Path, help="folder with leeway: build/release/bin")
    parser.add_argument("--calls", type=Path, metavar="LIBRARY", help="calls that fail")
    parser.add_argument("--mounts", action="store_true", help="full and read-only disks")
    parser.add_argument("--cases", type=int, help="number of drawn cases of --calls [all]")
    parser.add_argument("--seed", type=int, default=secrets.randbelow(1_000_000))
    arguments = parser.parse_args()
    if arguments.mounts:
        enter_own_mounts()
    folder = Path(tempfile.mkdtemp(prefix="leeway-disk-"))
    try:
        disk = Disk(arguments.programs.resolve(), folder)
        if arguments.calls:
            check_calls(disk, arguments.calls.resolve(), arguments.cases, arguments.seed)
        if arguments.mounts:
            check_mounts(disk)
    except Failed as failure:
        print(f"seed {arguments.seed}: FAILED: {failure}\nkept: {folder}")
        sys.exit(1)
    shutil.rmtree(folder)


if __name__ == "__main__":
    main()
