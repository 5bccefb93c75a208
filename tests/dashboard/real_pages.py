#!/usr/bin/env python3
"""Checks the pages of real runs in headless Chromium: live, recorded and as one file.

usage: real_pages.py PROGRAMS [--screenshots DIR] [--chromium PROGRAM]

PROGRAMS is the folder of the built programs. Needs the packages that page_test.py names. For a run
on threads, a pipelined one, a simulated one and one on two nodes, the live page must work while the
run trains, and the figures of the recorded page must equal result.json. Pages of runs whose names
are random markup must show the names as text.
"""
import contextlib
import json
import random
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
    "cluster": ["fashion-mlp", *ENDLESS],
}
NODES = {"cluster": 2}
# Parts of names, of which a browser could take some for markup or script. Names have no slash.
MARKUP = ["<img src=x onerror=alert(1)>", "<script>alert(2)", "<!--", "-->",
          "<svg onload=alert(3)>", "<title>", "<b>", "&lt;b&gt;", "&#x3c;", '"', "'", "`",
          "${alert(4)}", "{{7*7}}",
          "\\u003c", "%3Cb%3E", "javascript:alert(5)", "\u2028", "\u202e", "\U0001d54f", "\u00e9",
          "]]>", "<b onmouseover=alert(6)>", " ", "name"]
MOST_BYTES = 100  # of a name
NAMED_RUNS = 6
PLAN = """
data.synthetic = {samples = 200, test_samples = 20, clusters = {classes = 4, features = 8}}
model = [{linear.outputs = 4}]
shards = 1
stop.epochs = 1
"""


def text_in(path, process, pattern):
    """The text of the pattern's group, when the program has printed it."""
    for _ in range(600):
        found = re.search(pattern, path.read_text())
        if found:
            return found[1]
        if process.poll() is not None:
            break
        time.sleep(0.1)
    raise RuntimeError(f"no {pattern}: {path.read_text()}")


def url_in(path, process):
    return text_in(path, process, r"page: (http\S+)")


def check_result(checks, state, folder, label):
    result = json.loads((folder / "result.json").read_text())
    totals = state["totals"]
    for key, name in (("iterations", "iterations"), ("parked_pulls", "parked_pulls"),
                      ("push_bytes", "pushed_bytes"), ("pull_bytes", "pulled_bytes"),
                      ("stage_bytes", "stage_bytes"), ("max_clock_gap", "max_clock_gap")):
        checks.equal(totals[key], result[name], f"{label}: {key}")
    computed = sum(worker["compute_seconds"] for worker in result["workers"])
    waited = sum(worker["wait_seconds"] for worker in result["workers"])
    for name, found, wanted in (("compute", totals["compute"], computed),
                                ("wait", totals["wait"], waited)):
        # An interrupted run ends inside of iterations, and stages wait after their last operation.
        checks.that(abs(found - wanted) <= 0.03 * (computed + waited),
                    f"{label}: {name} is {found}, in the result {wanted}")


@contextlib.contextmanager
def nodes(programs, count, root):
    """The flags of a run on this number of nodes; none without nodes."""
    agents, addresses = [], []
    try:
        for number in range(count):
            log = root / f"node{number}"
            with log.open("w") as out:
                agents.append(subprocess.Popen([programs / "leeway", "node", "--listen",
                                                "127.0.0.1:0"], stdout=out, stderr=out))
            addresses.append(text_in(log, agents[-1], r"listening on ([^\s:]+:\d+)"))
        yield ["--nodes", ",".join(addresses)] if addresses else []
    finally:
        for agent in agents:
            agent.terminate()
            agent.wait(30)


def check_run(checks, chromium, programs, name, words, screenshots):
    with tempfile.TemporaryDirectory() as root, nodes(programs, NODES.get(name, 0),
                                                      Path(root)) as flags:
        folder, log = Path(root) / "run", Path(root) / "log"
        with log.open("w") as out:
            run = subprocess.Popen([programs / words[0], *words[1:], *flags, "--serve", "0",
                                    "--trace", "--out", folder], stdout=out, stderr=out)
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
                if state["pipeline"]:
                    with page_test.Page(chromium, recorded) as (page, errors):
                        page_test.check_operations(checks, page, name)
                        checks.equal(errors, [], f"{name}, operations: errors")
                view.terminate()
                view.wait(30)
        report = folder / "report.html"
        subprocess.run([programs / "leeway", "report", folder], check=True, capture_output=True)
        checks.that(report.stat().st_size < 2_000_000, f"{name}: the report is below 2 MB")
        with page_test.Page(chromium, report.as_uri()) as (page, errors):
            page_test.check_views(checks, page, state, f"{name}, report")
            page_test.check_figures(checks, page, state, f"{name}, report")
            checks.equal(errors, [], f"{name}, report: errors")


def check_names(checks, chromium, programs, seed):
    """Runs with random markup as their names."""
    numbers = random.Random(seed)
    for _ in range(NAMED_RUNS):
        name = "".join(numbers.choices(MARKUP, k=numbers.randint(1, 4))).strip() or "name"
        while len(name.encode()) > MOST_BYTES:
            name = name[:-1]
        label = f"seed {seed}, the name {name!r}"
        with tempfile.TemporaryDirectory() as root:
            folder, plan, log = Path(root) / "run", Path(root) / "plan.toml", Path(root) / "view"
            plan.write_text(f"name = {json.dumps(name, ensure_ascii=False)}\n{PLAN}")
            made = subprocess.run([programs / "leeway", "run", plan, "--simulate", "--trace",
                                   "--quiet", "--out", folder], capture_output=True, text=True)
            checks.equal(made.returncode, 0, f"{label}: the run: {made.stderr}")
            if made.returncode:
                continue
            with log.open("w") as out:
                view = subprocess.Popen([programs / "leeway", "view", folder], stdout=out,
                                        stderr=out)
            subprocess.run([programs / "leeway", "report", folder], check=True, capture_output=True)
            for kind, url in (("page", url_in(log, view)),
                              ("report", (folder / "report.html").as_uri())):
                with page_test.Page(chromium, url) as (page, errors):
                    shown = page.evaluate("document.getElementById('name').textContent")
                    checks.equal(shown, name, f"{label}: {kind}")
                    elements = "document.querySelectorAll('main img, main b, h1 *').length"
                    checks.equal(page.evaluate(elements), 0, f"{label}: {kind}: made elements")
                    page.wait_for_timeout(300)
                    checks.equal(errors, [], f"{label}: {kind}: errors")
            view.terminate()
            view.wait(30)


def check_all(checks, chromium, arguments):
    check_names(checks, chromium, arguments.programs, time.time_ns() % 1_000_000)
    for name, words in RUNS.items():
        check_run(checks, chromium, arguments.programs, name, words, arguments.screenshots)


if __name__ == "__main__":
    sys.exit(run_checks(__doc__, check_all))
