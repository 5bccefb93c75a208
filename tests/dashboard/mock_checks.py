"""Checks that need synthetic runs: hostile names, streams, lost connections, stop, reports."""
import re
import tempfile
import time
from pathlib import Path

import mock_server
import mock_state

MEASURE = """() => {
  window.measured = {long: [], frames: [], drawn: [], last: performance.now()};
  new MutationObserver(() => measured.drawn.push(performance.now())).observe(
    document.querySelector('[data-figure=samples] .value'), {childList: true, subtree: true});
  new PerformanceObserver((list) => list.getEntries().forEach((entry) =>
    measured.long.push(entry.duration))).observe({type: 'longtask'});
  const frame = (now) => {
    measured.frames.push(now - measured.last);
    measured.last = now;
    requestAnimationFrame(frame);
  };
  requestAnimationFrame(frame);
}"""


def run(checks, browser, arguments, test):
    for kind in ("straggler", "thousand", "pipeline"):
        server = mock_server.serve(kind, ended=True)
        test.check_page(checks, browser, server.url, mock_state.state(server.run), kind,
                        arguments.screenshots)
        server.shutdown()
    live(checks, browser, test)
    updates_axis(checks, browser, test)
    operations(checks, browser, test)
    hostile(checks, browser, test)
    connection(checks, browser, test)
    report(checks, browser, test)
    states(checks, browser, test, arguments.screenshots)
    stream(checks, browser, test, arguments.seconds)


def live(checks, browser, test):
    server = mock_server.serve("straggler", rate=5)
    state = mock_state.state(server.run)
    with test.Page(browser, server.url) as (page, errors):
        test.check_views(checks, page, state, "live")
        test.check_keyboard(checks, page, state, "live")
        test.check_scrubbing(checks, page, state, "live")
        test.check_axe(checks, page, "live")
        before = page.text_content("[data-figure=samples] .value")
        page.wait_for_timeout(700)
        checks.that(page.text_content("[data-figure=samples] .value") != before,
                    "figures of a live run change")
        page.click("#predict")
        test.wait_until(page, "document.querySelector('#predictions tbody tr') !== null")
        checks.equal(len(page.query_selector_all("#predictions tbody tr")),
                     len(mock_state.PREDICTED), "predicted rows")
        test.check_axe(checks, page, "predictions")
        checks.equal(errors, [], "live: errors")
    test.check_theme(checks, browser, server.url)
    server.shutdown()


def updates_axis(checks, browser, test):
    """The axis of updates grows with the intervals, also without a new point of the curve."""
    server = mock_server.serve("straggler", ended=True)
    with test.Page(browser, server.url) as (page, errors):
        page.click("#loss button:text-is('Updates')")
        page.wait_for_timeout(300)
        ends = "Chart.getChart(document.querySelector('#loss canvas')).scales.x.max"
        before = page.evaluate(ends)
        page.evaluate("""() => {
          const {run, cards} = Leeway;
          const list = run.state.intervals.map((one) => ({...one, updates: one.updates + 1000}));
          cards.changed(run.applyChange({intervals: {from: 0, list}}));
        }""")
        page.wait_for_timeout(1500)
        checks.that(page.evaluate(ends) > before + 100_000, "the axis of updates follows intervals")
        checks.equal(errors, [], "axis of updates: errors")
    server.shutdown()


def operations(checks, browser, test):
    """A recorded page reads the operations of a selected time; a report lacks old ones."""
    server = mock_server.serve("pipeline", ended=True)
    state = mock_state.state(server.run)
    with test.Page(browser, server.url) as (page, errors):
        test.check_operations(checks, page, "operations")
        checks.equal(errors, [], "operations: errors")
    server.shutdown()
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "report.html"
        file.write_text(one_file(state))
        with test.Page(browser, file.as_uri()) as (page, _):
            page.focus("#scrub")
            page.keyboard.press("Home")
            test.wait_until(page, "document.querySelector('#pipeline .caption').textContent"
                                  ".endsWith('leeway view RUN shows those of any time.')")


def hostile(checks, browser, test):
    server = mock_server.serve("straggler", ended=True, hostile=True)
    with test.Page(browser, server.url) as (page, errors):
        checks.equal(page.text_content("#name"), server.run.name, "markup in the run's name")
        checks.that(server.run.row_names[3] in page.text_content("#lost"),
                    "markup in a worker's name is shown as text")
        for details in page.query_selector_all(".card:not([hidden]) summary"):
            details.click()
        page.wait_for_timeout(300)
        checks.equal(page.evaluate("document.querySelectorAll('main img, main b, h1 *').length"),
                     0, "elements made of names")
        test.check_width(checks, page, "hostile names")
        checks.equal(errors, [], "hostile names: errors")
    with test.Page(browser, server.url, width=360) as (page, _):
        test.check_width(checks, page, "hostile names, 360 px")
    server.shutdown()


def connection(checks, browser, test):
    """A lost connection is shown and made again; the stop button ends the run."""
    server = mock_server.serve("straggler", rate=5)
    with test.Page(browser, server.url) as (page, errors):
        checks.equal(page.text_content("#connection"), "live", "state of the connection")
        server.lost.set()
        test.wait_until(page, "document.getElementById('connection').dataset.kind === 'lost'")
        checks.equal(page.text_content("#connection"), "connection lost, retrying",
                     "text of a lost connection")
        server.lost.clear()
        test.wait_until(page, "document.getElementById('connection').dataset.kind === 'live'")
        errors.clear()
        page.focus("#stop")
        page.keyboard.press("Enter")
        checks.that(page.is_visible("#confirm"), "the stop button asks for confirmation")
        page.keyboard.press("Escape")
        page.wait_for_timeout(200)
        checks.that(not server.stopped.is_set(), "Escape does not stop the run")
        page.click("#stop")
        page.click("#confirm button.danger")
        test.wait_until(page, "document.getElementById('connection').dataset.kind === 'ended'")
        checks.that(server.stopped.is_set(), "the confirmed button stops the run")
        test.wait_until(page, "document.getElementById('stop').hidden")
        checks.equal(page.get_attribute("#select-all", "aria-pressed"), "true",
                     "an ended run shows the whole run")
        checks.equal(errors, [], "connection: errors")
    server.shutdown()


def one_file(state):
    """The page with all files and the state inlined, as a report is."""
    folder = mock_server.PAGE
    html = (folder / "index.html").read_text()

    def script(match):
        name = match.group(1)
        file = mock_server.CHART if name == "chart.js" else folder / name
        return f"<script>{file.read_text()}</script>"

    html = re.sub(r'<link rel="icon"[^>]*>\n', "", html)
    html = re.sub(r'<link rel="stylesheet" href="([^"]*)">',
                  lambda m: f"<style>{(folder / m.group(1)).read_text()}</style>", html)
    html = re.sub(r'<script src="([^"]*)" defer></script>', script, html)
    text = mock_server.json.dumps(state).replace("<", "\\u003c")
    return html.replace("<!-- state -->",
                        f'<script type="application/json" id="state">{text}</script>')


def report(checks, browser, test):
    for file in mock_server.PAGE.glob("*.js"):
        checks.that("</script" not in file.read_text(), f"{file.name} can be inlined")
    server = mock_server.serve("pipeline", ended=True, hostile=True)
    state = mock_state.state(server.run)
    server.shutdown()
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "report.html"
        file.write_text(one_file(state))
        with test.Page(browser, file.as_uri()) as (page, errors):
            test.check_views(checks, page, state, "report")
            test.check_figures(checks, page, state, "report")
            test.check_scrubbing(checks, page, state, "report")
            checks.that(page.is_hidden("#stop"), "a report has no stop button")
            test.check_axe(checks, page, "report")
            checks.equal(errors, [], "report: errors")
        print(f"report in one file: {file.stat().st_size / 1000:,.0f} kB")


def variants(state):
    """States of runs with less than the usual."""
    nothing = {"from": 0, "list": []}
    start = {key: 0 for key in state["totals"]}
    yield "without events", dict(
        state, run=dict(state["run"], has_events=False, kind="recorded"), intervals=nothing,
        leads_by_row=[], leads_by_shard=[], blocked=[], marks=[])
    yield "without a bound", dict(state, bound=None, sentences={key: "" for key in
                                                                state["sentences"]})
    yield "without losses", dict(state, train=[], test=[], run=dict(
        state["run"], has_losses=False, has_accuracy=False))
    yield "at its start", dict(
        state, now=0, ended=None, totals=start, causes=[], intervals=nothing, train=[], test=[],
        marks=[], blocked=[], leads_by_row=[], leads_by_shard=[],
        sentences={key: "" for key in state["sentences"]})
    names = [{"name": f"{'long name ' * 30}{i}"} for i in range(len(state["run"]["rows"]))]
    yield "with lost events", dict(state, totals=dict(state["totals"], lost_events=1234))
    yield "with long names", dict(state, run=dict(state["run"], rows=names, name="name" * 100),
                                  cause_names=[row["name"] for row in names] + ["x" * 400] * 5)


def states(checks, browser, test, screenshots=None):
    server = mock_server.serve("straggler", ended=True)
    whole = mock_state.state(server.run)
    server.shutdown()
    with tempfile.TemporaryDirectory() as folder:
        for name, state in variants(whole):
            file = Path(folder) / "report.html"
            file.write_text(one_file(state))
            for width in test.WIDTHS:
                with test.Page(browser, file.as_uri(), width) as (page, errors):
                    label = f"run {name}, {width} px"
                    test.check_views(checks, page, state, label)
                    test.check_width(checks, page, label)
                    test.check_axe(checks, page, label)
                    lost = state["totals"]["lost_events"]
                    checks.equal(page.is_visible("#incomplete"), lost > 0,
                                 f"{label}: says that events were lost")
                    checks.that(not re.search("NaN|undefined|Infinity", page.inner_text("body")),
                                f"{label}: shows an invalid number")
                    checks.equal(errors, [], f"{label}: errors")
                    if screenshots:
                        page.screenshot(path=Path(screenshots) / f"{label}.png", full_page=True)


def quantile(values, q):
    return sorted(values)[int(q * (len(values) - 1))]


def stream(checks, browser, test, seconds):
    """64 rows x 240 intervals, 30 changes a second: no long task, and a bounded heap."""
    server = mock_server.serve("thousand", seconds=236.0, rate=30)
    intervals = len(mock_state.state(server.run)["intervals"]["list"])
    checks.that(intervals > 230, f"the stream begins with {intervals} intervals")
    with test.Page(browser, server.url) as (page, errors):
        paint = page.evaluate(
            "performance.getEntriesByName('first-contentful-paint')[0]?.startTime")
        checks.that(paint is not None and paint < 1000, f"first paint after {paint} ms")
        devtools = page.context.new_cdp_session(page)
        devtools.send("Performance.enable")
        heaps = []

        def busy():
            metrics = devtools.send("Performance.getMetrics")["metrics"]
            return next(m["value"] for m in metrics if m["name"] == "TaskDuration")

        page.wait_for_timeout(2000)
        page.evaluate(MEASURE)
        began, busy_before = time.monotonic(), busy()
        while time.monotonic() < began + seconds:
            page.wait_for_timeout(min(5000, 1000 * seconds / 4))
            devtools.send("HeapProfiler.collectGarbage")
            heaps.append(devtools.send("Runtime.getHeapUsage")["usedSize"] / 1e6)
        measured = page.evaluate("measured")
        took = time.monotonic() - began
        busy_share = (busy() - busy_before) / took
        longest = max(measured["long"], default=0)
        frames = measured["frames"][1:]
        drawn = len(measured["drawn"]) / took
        gaps = [b - a for a, b in zip(measured["drawn"], measured["drawn"][1:])]
        print(f"stream, {seconds:.0f} s: first paint {paint:.0f} ms; frames median "
              f"{quantile(frames, 0.5):.1f} ms, 95% {quantile(frames, 0.95):.1f} ms, longest "
              f"{max(frames):.0f} ms; {drawn:.1f} changes/s drawn; {len(measured['long'])} tasks "
              f"above 50 ms, longest {longest:.0f} ms; main thread busy {busy_share:.1%}; heap "
              f"{heaps[0]:.1f} to {heaps[-1]:.1f} MB")
        # The median depends on the machine; the least shows that no timer delays changes.
        checks.that(min(gaps) < 70, f"changes are drawn at least {min(gaps):.0f} ms apart")
        checks.that(longest <= 200, f"longest task {longest:.0f} ms")
        checks.that(heaps[-1] < heaps[0] + 6, f"the heap grows: {heaps} MB")
        checks.equal(errors, [], "stream: errors")
    server.shutdown()
