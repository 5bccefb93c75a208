#!/usr/bin/env python3
"""Compiles each header on its own: sources that are compiled in groups hide missing includes of headers.

A header that many others include is compiled once and precompiled. A header is compiled with a precompiled one only if it
includes that one itself, directly or not. So it gets nothing that it lacks, as long as headers include others at their
beginning.
"""

import argparse
import concurrent.futures
import itertools
import os
import pathlib
import re
import subprocess
import sys
import tempfile

INCLUDE = re.compile(r'^#include (?:"([^"]+)"|(<[^>]+>))', re.MULTILINE)
MOST_PRECOMPILED = 16  # each has up to 100 MB


class Compiler:
    def __init__(self, command, folder, jobs):
        self.command = command
        self.folder = folder
        self.jobs = jobs
        self.numbers = itertools.count()  # of files

    def run(self, *arguments):
        return subprocess.run([*self.command, *arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    def each(self, call, items):
        with concurrent.futures.ThreadPoolExecutor(self.jobs) as pool:
            return dict(zip(items, pool.map(call, items)))

    def write(self, header, ending):
        path = self.folder / f"{next(self.numbers)}{ending}"
        path.write_text(f"#include {header if header.startswith('<') else chr(34) + header + chr(34)}\n")
        return str(path)

    def external_files(self, header):
        """The files that an external header includes; none if it is missing, as one of another version may be."""
        made = self.run("-M", "-x", "c++", self.write(header, ".cpp"))
        if made.returncode != 0:
            return set()
        return set(made.stdout.split(":", 1)[1].replace("\\\n", " ").split()[1:])

    def precompile(self, header):
        source = self.write(header, ".hpp")
        made = self.run("-x", "c++-header", source, "-o", source + ".gch")
        return source if made.returncode == 0 else None  # its error is found again below

    def check(self, header, precompiled):
        source = self.write(header, ".cpp")
        first = ["-Winvalid-pch", "-include", precompiled] if precompiled else []
        made = self.run(*first, "-fsyntax-only", source)
        return made.stdout or (f"{header}: the compiler ended with {made.returncode}" if made.returncode else "")


def closures(headers, roots):
    """By header: the headers that it includes, directly or not, with itself; external ones with their brackets."""
    direct = {}

    def read(header):
        if header in direct:
            return
        direct[header] = set()
        path = next((root / header for root in roots if (root / header).is_file()), None)
        if header.startswith("<") or not path:
            return
        for own, external in INCLUDE.findall(path.read_text()):
            direct[header].add(own or external)
            read(own or external)

    for header in headers:
        read(header)
    closed = {}
    for header in direct:
        found, open_ = {header}, [header]
        while open_:
            new = direct[open_.pop()] - found
            found |= new
            open_ += new
        closed[header] = found
    return closed


def choose(headers, closed, bytes_of):
    """Headers to precompile, so that the bytes that are left to compile are few: each time the best next one."""
    best = {header: None for header in headers}
    saved = {header: 0 for header in headers}
    candidates = {header for headers in closed.values() for header in headers}
    for _ in range(MOST_PRECOMPILED):
        def gain(candidate):
            return sum(max(0, bytes_of[candidate] - saved[header]) for header in headers
                       if candidate in closed[header] and candidate != header) - 2 * bytes_of[candidate]
        chosen = max(sorted(candidates), key=gain)
        if gain(chosen) <= 0:
            break
        for header in headers:
            if chosen in closed[header] and chosen != header and bytes_of[chosen] > saved[header]:
                best[header], saved[header] = chosen, bytes_of[chosen]
    return best


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source", type=pathlib.Path, help="root of the tree")
    parser.add_argument("folders", help="folders of the tree with headers, comma-separated")
    parser.add_argument("command", nargs="+", help="the compiler and its options")
    parser.add_argument("--generated", type=pathlib.Path, action="append", default=[], help="folder of generated headers")
    parser.add_argument("--libraries", default="", help="folders of the headers of libraries, separated by semicolons")
    parser.add_argument("--work", default=None, help="folder for temporary files, up to 2 GB")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="parallel compilers (default: one per core)")
    given = parser.parse_args()
    headers = sorted(str(path.relative_to(given.source)) for folder in given.folders.split(",")
                     for path in (given.source / folder).rglob("*.hpp")
                     if not path.relative_to(given.source).is_relative_to("kernels/cuda"))  # for nvcc
    if len(headers) < 100:
        sys.exit(f"only {len(headers)} headers in {given.folders}")
    roots = [given.source, *given.generated]
    libraries = {path for path in given.libraries.split(";") if path and path != "/usr/include"}
    options = [f"-I{root}" for root in roots] + [f"-isystem{path}" for path in sorted(libraries)]
    with tempfile.TemporaryDirectory(dir=given.work) as name:
        compiler = Compiler([*given.command, *options], pathlib.Path(name), given.jobs)
        closed = closures(headers, roots)
        files = compiler.each(compiler.external_files, sorted(h for h in closed if h.startswith("<")))
        sizes = {}

        def bytes_of(header):
            paths = {path for one in closed[header] for path in files.get(one, ())}
            for path in paths - sizes.keys():
                sizes[path] = os.path.getsize(path)
            return sum(sizes[path] for path in paths) + 5000 * len(closed[header])

        best = choose(headers, closed, {header: bytes_of(header) for header in closed})
        made = compiler.each(compiler.precompile, sorted({chosen for chosen in best.values() if chosen}))
        found = compiler.each(lambda header: compiler.check(header, made.get(best[header])), headers)
    errors = [text for text in found.values() if text]
    print(f"{len(headers)} headers, {len(errors)} with errors; {len(made)} headers were precompiled")
    if errors:
        sys.exit("\n".join(errors))


if __name__ == "__main__":
    main()
