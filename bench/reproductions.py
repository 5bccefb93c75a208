#!/usr/bin/python3
"""The figures of docs/reproductions.md: runs the reproductions, and writes their tables into the page.

usage: reproductions.py [--names goodput,ringmaster] [--run] [--full] [--runs runs/reproductions] [--build build/release]
                        [--traces FOLDER] [--write docs/reproductions.md]
       reproductions.py --check docs/reproductions.md

Each reproduction has a folder of its name below --runs. --run makes the runs that it lacks; without, the tables of earlier
runs are taken. --write replaces the text between the two comments of each reproduction whose folder has a table, and adds
the settings of its runs. --check finds parts of the page without a part here, and the other way round.
"""

import argparse
import datetime
import json
import os
import re
import subprocess
import sys
from pathlib import Path

from run_result import processor

# The traces of what-if, which the artifact of its paper has.
TRACES = ("AR.csv.gz", "ST.csv.gz")
NAMES = ("backup-workers", "one-step-delay", "ringmaster", "goodput", "what-if")
BEGIN, END = "<!-- reproductions.py writes {} -->", "<!-- end of {} -->"
# Below it, tables list values of single seeds, which only the run folders keep.
SEEDS = re.compile(r"^.*\bof each seed$", re.IGNORECASE)


def run(name, folder, args):
    """Makes the runs of a reproduction, or those that its folder lacks."""
    command = [Path(args.build) / "bin" / "leeway", "reproduce", name]
    if name == "what-if":
        command += [Path(args.traces) / trace for trace in TRACES]
    command += ["--out", folder] + (["--full"] if args.full else [])
    subprocess.run(list(map(str, command)), check=True)


def without_seeds(table):
    """The lines of a table without the tables of single seeds: a title, an empty line, and rows."""
    kept, skipped = [], 0  # empty lines until the end of such a table
    for line in table.splitlines():
        if SEEDS.match(line):
            skipped = 2
        elif skipped and not line.strip():
            skipped -= 1
        if not skipped:
            kept.append(line.rstrip())
    return re.sub(r"\n{3,}", "\n\n", "\n".join(kept)).strip("\n").splitlines()


def part_of(folder):
    """The text of a part of the page."""
    lines = without_seeds((folder / "table.txt").read_text())
    with open(folder / "trials.jsonl") as trials:
        settings = json.loads(trials.readline())
        count = sum(1 for _ in trials)
    seed = json.loads(settings["plan"])["seed"]
    day = datetime.date.fromtimestamp((folder / "table.txt").stat().st_mtime)
    block = "\n".join(f"    {line}".rstrip() for line in lines)
    return f"\n{block}\n\n{count} runs from `--seed {seed}`, {day}, {os.cpu_count()} cores of {processor() or 'an unknown processor'}.\n"


def write(page, name, text):
    begin, end = BEGIN.format(name), END.format(name)
    content = page.read_text()
    if begin not in content or end not in content:
        sys.exit(f"{page} has no {begin}")
    before, rest = content.split(begin, 1)
    page.write_text(f"{before}{begin}\n{text}\n{end}{rest.split(end, 1)[1]}")


def errors_of(page):
    """Errors: missing, unknown and repeated parts of the page."""
    content = page.read_text()
    begins = re.findall(re.escape(BEGIN).replace(r"\{\}", "(.*)"), content)
    ends = re.findall(re.escape(END).replace(r"\{\}", "(.*)"), content)
    errors = [f"{page} has no {BEGIN.format(name)}" for name in NAMES if name not in begins]
    errors += [f"reproductions.py has no part {name}, which {page} has" for name in begins if name not in NAMES]
    errors += [f"{page} has {BEGIN.format(name)} twice" for name in set(begins) if begins.count(name) > 1]
    if begins != ends:
        errors.append(f"{page}: the comments that begin parts, {', '.join(begins)}, are not those that end them, {', '.join(ends)}")
    errors += [f"{page} does not name `leeway reproduce {name}`" for name in NAMES if f"leeway reproduce {name}" not in content]
    return errors


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--names", default=",".join(NAMES), help="default: all")
    parser.add_argument("--run", action="store_true", help="make the runs")
    parser.add_argument("--full", action="store_true", help="with --run: their long form")
    parser.add_argument("--runs", type=Path, default=Path("runs/reproductions"), help="folder of the run folders")
    parser.add_argument("--build", default="build/release")
    parser.add_argument("--traces", default=".", help=f"folder of {' and '.join(TRACES)}")
    parser.add_argument("--write", type=Path, help="page whose parts are replaced")
    parser.add_argument("--check", type=Path, help="page whose parts are compared with those of this program")
    args = parser.parse_args()
    if args.check:
        errors = errors_of(args.check)
        sys.exit("\n".join(errors) if errors else 0)
    names = args.names.split(",")
    if unknown := [name for name in names if name not in NAMES]:
        sys.exit(f"unknown reproductions: {', '.join(unknown)}; give some of {', '.join(NAMES)}")
    for name in names:
        folder = args.runs / name
        if args.run:
            args.runs.mkdir(parents=True, exist_ok=True)
            run(name, folder, args)
        if not (folder / "table.txt").exists():
            print(f"{folder} has no table; give --run", file=sys.stderr)
            continue
        text = part_of(folder)
        print(f"{name}\n{text}")
        if args.write:
            write(args.write, name, text)


if __name__ == "__main__":
    main()
