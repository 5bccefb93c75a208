#!/usr/bin/env python3
"""Checks the pages of real runs in headless Chromium: live, recorded and as one file.

usage: real_pages.py PROGRAMS [--screenshots DIR] [--chromium PROGRAM]

PROGRAMS is the folder of the built programs. Needs the packages that page_test.py names. For a run
on threads, a pipelined one and a simulated one, the live page must work while the run trains, and
the figures of the recorded page must equal result.json.
"""
import json
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from browser import run_checks  # noqa: E402
import page_test  # noqa: E402

# Runs that train until they are stopped, with a straggler.
ENDLESS = ["--epochs", "1000000", "--evaluate-every", "5"]
RUNS = {
    "threads": ["fashion-mlp", *ENDLESS],
    "pipeline": ["pipeline-gpt", *ENDLESS],
    "simulation": ["linear-regression", "--simulate", "--workers", "100", "--slow", "3:4x",
                   *ENDLESS],
}


def url_in(path, process):
    """The URL of a page, when the program has printed it."""
    for _ in range(600):
        found = re.search(r"page: (http\S+)", path.read_text())
        if found:
            return found[1]
        if process.poll() is not None:
            break
        time.sleep(0.1)
    raise RuntimeError(f"no page: {path.read_text()}")


def check_result(checks, state, folder, label):
    result = json.loads((folder / "result.json").read_text())
    totals = state["totals"]
    for key, name in (("iterations", "iterations"), ("parked_pulls", "parked_pulls"),
                      ("push_bytes", "pushed_bytes"), ("pull_bytes", "pulled_bytes")):
        checks.equal(totals[key], result[name], f"{label}: {key}")
    computed = sum(worker["compute_seconds"] for worker in result["workers"])
    waited = sum(worker["wait_seconds"] for worker in result["workers"])
    for name, found, wanted in (("compute", totals["compute"], computed),
                                ("wait", totals["wait"], waited)):
        # An interrupted run ends inside of iterations, and stages wait after their last operation.
        checks.that(abs(found - wanted) <= 0.03 * (computed + waited),
                    f"{label}: {name} is {found}, in the result {wanted}")


def check_run(checks, chromium, programs, name, words, screenshots):
    with tempfile.TemporaryDirectory() as root:
        folder, log = Path(root) / "run", Path(root) / "log"
        with log.open("w") as out:
            run = subprocess.Popen([programs / words[0], *words[1:], "--serve", "0", "--trace",
                                    "--out", folder], stdout=out, stderr=out)
            url = url_in(log, run)
            time.sleep(4)
            state = page_test.state_of(url, None)
            checks.that(state["totals"]["iterations"] > 0, f"{name}: the run trains")
            with page_test.Page(chromium, url) as (page, errors):
                page_test.check_views(checks, page, state, f"{name}, live")
                page_test.check_axe(checks, page, f"{name}, live")
                page.click("#stop")
                page.click("dialog button.danger")
                checks.equal(run.wait(60), 130, f"{name}: exit code of the stopped run")
                checks.equal(errors, [], f"{name}, live: errors")
            view_log = Path(root) / "view"
            with view_log.open("w") as out:
                view = subprocess.Popen([programs / "leeway", "view", folder], stdout=out,
                                        stderr=out)
                recorded = url_in(view_log, view)
                state = page_test.state_of(recorded, None)
                check_result(checks, state, folder, name)
                page_test.check_page(checks, chromium, recorded, state, name, screenshots)
                view.terminate()
                view.wait(30)
        report = folder / "report.html"
        subprocess.run([programs / "leeway", "report", folder], check=True, capture_output=True)
        checks.that(report.stat().st_size < 2_000_000, f"{name}: the report is below 2 MB")
        with page_test.Page(chromium, report.as_uri()) as (page, errors):
            page_test.check_views(checks, page, state, f"{name}, report")
            page_test.check_figures(checks, page, state, f"{name}, report")
            checks.equal(errors, [], f"{name}, report: errors")


def check_all(checks, chromium, arguments):
    for name, words in RUNS.items():
        check_run(checks, chromium, arguments.programs, name, words, arguments.screenshots)


if __name__ == "__main__":
    sys.exit(run_checks(__doc__, check_all))
