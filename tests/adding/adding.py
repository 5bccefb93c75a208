#!/usr/bin/env python3
"""Applies the examples of docs/adding.md to a copy of the tree and counts the files that they touch.

With --build, also builds the copy and runs the additions: training with each of them in simulation,
and round trips of the message.
"""

import argparse
import pathlib
import re
import shutil
import subprocess
import sys

OTHER_FOLDERS = {"bench", "cmake", "docs", "tests"}  # beside those that CMakeLists.txt lists
FILES = ["CMakeLists.txt", "CMakePresets.json", "leeway.hpp", "testing.hpp"]
# The product files that an addition may touch.
MOST = {"optimizer": 5, "consistency_policy": 5, "straggler": 5, "layer": 5, "message": 3}


def fail(text):
    sys.exit("adding.py: " + text)


def run(command, **options):
    done = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, **options)
    if done.returncode != 0:
        fail(f"{' '.join(map(str, command))} ended with {done.returncode}:\n{done.stdout}")
    return done.stdout


def copy_tree(source, copy):
    """Unchanged files keep their times, so that a second build of the copy is short."""
    copy.mkdir(parents=True, exist_ok=True)
    built = re.search(r"foreach\(folder ([^)]*)\)", (source / "CMakeLists.txt").read_text())[1].split()
    for name in sorted({folder.split("/")[0] for folder in built} | OTHER_FOLDERS):
        shutil.rmtree(copy / name, ignore_errors=True)
        shutil.copytree(source / name, copy / name)
    for name in FILES:
        shutil.copy2(source / name, copy / name)


def apply_examples(source, copy):
    page = (source / "docs/adding.md").read_text()
    for kind, most in MOST.items():
        patch = source / f"docs/adding/{kind}.patch"
        row = re.search(rf"\(adding/{kind}\.patch\) \| (\d+) \|", page)
        if not row:
            fail(f"docs/adding.md has no row with adding/{kind}.patch")
        run(["patch", "-p1", "--fuzz=0", "--batch", "--no-backup-if-mismatch", "-i", patch], cwd=copy)
        files = re.findall(r"^\+\+\+ b/(\S+)$", patch.read_text(), re.MULTILINE)
        if len(files) > most:
            fail(f"{kind}: {len(files)} files, more than {most}: {' '.join(files)}")
        if len(files) != int(row[1]):
            fail(f"{kind}: docs/adding.md says {row[1]} files, the patch has {len(files)}")
        print(f"{kind}: {len(files)} files")


# The example layer in a model that is trained with the example's optimizer, policy and straggler.
PLAN = """
name = "additions"
model = [{ linear = { outputs = 16 } }, { scale = { factor = 0.5 } }, "relu", { linear = { outputs = 4 } }]
data = { synthetic = { samples = 400, test_samples = 100, clusters = { classes = 4, features = 8 } } }
optimizer = { learning_rate = 0.01, rmsprop = { alpha = 0.9 } }
consistency = { absorbing = { factor = 2, length = 2 } }
stragglers = [{ worker = 1, cold_start = { factor = 3, iterations = 10 } }]
shards = 1
workers = 2
batch = 10
stop = { epochs = 5 }
host = "simulated"
"""


def build_and_run(copy, launcher, compiler, work):
    build = copy / "build/release"
    # Without optimisation: compiling takes longer than the runs below.
    run(["cmake", "--preset", "release", "-DCMAKE_BUILD_TYPE=Debug", "-DCMAKE_CXX_FLAGS_DEBUG=",
         f"-DCMAKE_CXX_COMPILER={compiler}", f"-DCMAKE_CXX_COMPILER_LAUNCHER={launcher}",
         "-DLEEWAY_TESTS=ON", "-DLEEWAY_BENCH=OFF", "-DLEEWAY_CUDA=OFF"],
        cwd=copy)
    run(["cmake", "--build", build, "--target", "leeway", "fashion-mlp", "envelope_test"])
    run([build / "tests/envelope_test"])
    plan = work / "additions.toml"
    plan.write_text(PLAN)
    out = run([build / "bin/leeway", "run", plan, "--no-out"])
    accuracy = re.search(r"test accuracy +(\d+\.\d+)%", out)
    if not accuracy or float(accuracy[1]) < 80:
        fail("the run with all additions has not learned:\n" + out)
    run([build / "bin/fashion-mlp", "--simulate", "--gradients", "none", "--epochs", "0.05", "--optimizer", "rmsprop",
         "--staleness", "absorbing(4,2)", "--slow", "1:cold-start(4x/20)", "--no-out"])
    print("built and run")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source", type=pathlib.Path, help="root of the tree")
    parser.add_argument("work", type=pathlib.Path, help="folder for the copy")
    parser.add_argument("--build", action="store_true", help="build the copy and run the additions; takes minutes")
    parser.add_argument("--compiler", default="c++", help="C++ compiler (default: %(default)s)")
    parser.add_argument("--launcher", default="", help="of the compiler, such as ccache")
    given = parser.parse_args()
    copy = given.work / "tree"
    copy_tree(given.source, copy)
    apply_examples(given.source, copy)
    if given.build:
        build_and_run(copy, given.launcher, given.compiler, given.work)


if __name__ == "__main__":
    main()
