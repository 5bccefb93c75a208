#!/usr/bin/env python3
"""Checks the page of a run in headless Chromium.

usage: page_test.py [URL] [--state FILE] [--screenshots DIR] [--seconds 60] [--chromium PROGRAM]

With URL, checks the page that a server shows there. --state is the state that it shows, as JSON;
without it the test asks URL for /state. Figures are compared only if the run has ended, because the
figures of a live run change. Without URL, the test serves synthetic runs itself (mock_server.py)
and checks more: hostile names, a stream of 30 changes a second for --seconds, a lost connection,
the stop button, predictions, and a report in one file.

The test needs Chromium, Chart.js and a client of the DevTools protocol:

    apt-get install -y --no-install-recommends chromium libjs-chart.js python3-venv
    python3 -m venv build/page-test
    build/page-test/bin/pip install playwright axe-playwright-python
    build/page-test/bin/python tests/dashboard/page_test.py

axe-playwright-python contains axe.min.js, so that nothing else is downloaded. Exit code 1: a check
failed, and its text says which one.
"""
import argparse
import json
import sys
import time
import urllib.parse
import urllib.request
from pathlib import Path

from playwright.sync_api import sync_playwright

sys.path.insert(0, str(Path(__file__).parent))
import expected  # noqa: E402
import mock_checks  # noqa: E402

WIDTHS = (360, 1600)
THEMES = ("light", "dark")
HEADINGS = {"lost": "Time lost", "staleness": "Staleness map", "blocked": "Blocked on",
            "leads": "Leads", "loss": "Loss", "pipeline": "Pipelines",
            "alive": "Alive, taking part, contributing", "throughput": "Throughput",
            "predictions": "What would help"}


# The name of the focused element, null if it was focused before, and its outline.
FOCUSED = """(() => {
  const node = document.activeElement;
  window.focusedBefore ??= new Set([document.body]);
  const isNew = !focusedBefore.has(node);
  focusedBefore.add(node);
  const name = node.id || node.getAttribute('aria-label') || node.textContent.trim();
  return [isNew ? name : null, getComputedStyle(node).outlineStyle];
})()"""

# The sentence of a view, and the role and text of its pictures, at one moment.
PICTURES = """(name) => {
  const view = document.getElementById(name);
  return [view.querySelector('.sentence').textContent.trim(),
          [...view.querySelectorAll('canvas, svg')].map((picture) =>
            [picture.getAttribute('role'), picture.getAttribute('aria-label')])];
}"""


class Checks:
    """Counts checks, and prints those that fail."""

    def __init__(self):
        self.passed = 0
        self.failed = []

    def that(self, holds, text):
        if holds:
            self.passed += 1
        else:
            self.failed.append(text)
            print(f"FAILED: {text}", flush=True)

    def equal(self, found, wanted, text):
        self.that(found == wanted, f"{text}: found {found!r}, expected {wanted!r}")


def wait_until(page, expression, limit=20):
    """Waits for an expression. The page's policy forbids the eval of wait_for_function."""
    until = time.monotonic() + limit
    while not page.evaluate(expression):
        if time.monotonic() > until:
            raise TimeoutError(expression)
        page.wait_for_timeout(50)


class Page:
    """A page in its own window, with the errors that it has caused."""

    def __init__(self, browser, url, width=1600, theme="light", height=1000):
        self.context = browser.new_context(viewport={"width": width, "height": height},
                                           color_scheme=theme)
        self.page = self.context.new_page()
        self.errors = []
        self.page.on("console", self.console)
        self.page.on("pageerror", lambda error: self.errors.append(f"exception: {error}"))
        self.page.on("requestfailed", self.request_failed)
        self.page.on("response", lambda answer: answer.status >= 400 and self.errors.append(
            f"{answer.status}: {answer.url}"))
        self.page.goto(url, wait_until="domcontentloaded")
        wait_until(self.page, "document.getElementById('waiting').hidden")
        self.page.wait_for_timeout(300)

    def request_failed(self, request):
        # The page itself closes the stream of an ended run.
        is_stream = urllib.parse.urlsplit(request.url).path.endswith("/events")
        if not (is_stream and "ERR_ABORTED" in str(request.failure)):
            self.errors.append(f"request failed: {request.url} ({request.failure})")

    def console(self, message):
        if message.type in ("error", "warning"):
            self.errors.append(f"console: {message.text}")

    def __enter__(self):
        return self.page, self.errors

    def __exit__(self, *_):
        self.context.close()


def axe_source():
    import axe_playwright_python
    return (Path(axe_playwright_python.__file__).parent / "axe.min.js").read_text()


def check_axe(checks, page, label):
    """No violation of any rule, best practices included."""
    page.evaluate(axe_source())
    result = page.evaluate("axe.run(document, {resultTypes: ['violations']})")
    for violation in result["violations"]:
        nodes = [node["html"][:160] + " " + node["failureSummary"][:200]
                 for node in violation["nodes"][:3]]
        checks.that(False, f"{label}: axe {violation['id']}: {nodes}")
    checks.that(not result["violations"], f"{label}: axe found violations")


def check_views(checks, page, state, label):
    for name, heading in HEADINGS.items():
        shown = name != "pipeline" or state["pipeline"] is not None
        checks.equal(page.is_visible(f"#{name}"), shown, f"{label}: view {name} is visible")
        if not shown:
            continue
        checks.equal(page.text_content(f"#{name} h2"), heading, f"{label}: heading of {name}")
        sentence, pictures = page.evaluate(PICTURES, name)
        checks.that(sentence, f"{label}: view {name} has a sentence")
        for role, text in pictures:
            checks.equal(role, "img", f"{label}: role of {name}'s picture")
            checks.that(text and sentence in text,
                        f"{label}: {name}'s picture has the sentence as its text, not {text!r}")


def check_width(checks, page, label):
    widths = page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
    checks.that(widths[0] <= widths[1], f"{label}: scrolls sideways, {widths[0]} of {widths[1]}")


def check_figures(checks, page, state, label):
    for name, text in expected.figures(state).items():
        found = page.text_content(f"[data-figure={name}] .value")
        checks.equal(found, text, f"{label}: figure {name}")
    rows = page.query_selector_all("#lost .scroll tbody tr")
    first = [cell.text_content() for cell in rows[0].query_selector_all("th, td")]
    checks.equal(first[2], expected.first_culprit(state), f"{label}: share of the first culprit")


def check_tables(checks, page, label):
    for details in page.query_selector_all(".card:not([hidden]) details"):
        details.query_selector("summary").click()
    page.wait_for_timeout(300)
    for name in HEADINGS:
        rows = page.query_selector_all(f"#{name} details tr")
        if page.query_selector(f"#{name}:not([hidden]) details"):
            checks.that(2 <= len(rows) <= 22, f"{label}: the table of {name} has {len(rows)} rows")


def check_keyboard(checks, page, state, label):
    """Tab reaches all controls, and each shows that it has the focus."""
    reached = []
    for _ in range(80):
        page.keyboard.press("Tab")
        name, outline = page.evaluate(FOCUSED)
        if name is None:
            break
        reached.append(name)
        checks.that(outline != "none", f"{label}: {name!r} shows the focus")
    wanted = ["scrub", "theme", "select-all", "By worker", "Samples"]
    if state["run"]["can_stop"] and not state["ended"]:
        wanted += ["stop", "select-now"]
    for name in wanted:
        checks.that(name in reached, f"{label}: Tab reaches {name}, not only {reached}")


def check_scrubbing(checks, page, state, label):
    """The first interval is selected by keyboard; the views show its figures."""
    page.focus("#scrub")
    page.keyboard.press("Home")
    page.wait_for_timeout(400)
    interval = state["intervals"]["list"][0]
    waits = sum(seconds for _, _, seconds in interval["waits"])
    spent = waits + interval["compute"]  # 0 before the first iteration
    share = expected.share(waits / spent if spent else 0)
    caption = page.text_content("#lost .caption")
    checks.that(f"{share} of worker time" in caption,
                f"{label}: interval 0 waits {share}, but the caption is {caption!r}")
    checks.equal(page.get_attribute("#select-all", "aria-pressed"), "false",
                 f"{label}: the whole run is selected while an interval is")
    page.keyboard.press("End")
    page.wait_for_timeout(200)
    pressed = "#select-all" if state["ended"] else "#select-now"
    checks.equal(page.get_attribute(pressed, "aria-pressed"), "true", f"{label}: End returns")


def check_operations(checks, page, label):
    """The strip of the pipelines shows operations of the first interval, with their tips."""
    page.focus("#scrub")
    page.keyboard.press("Home")
    caption = "document.querySelector('#pipeline .caption').textContent"
    wait_until(page, f"{caption}.startsWith('Operations, ')")
    checks.that(page.evaluate(caption).startswith("Operations, 0.0"),
                f"{label}: the strip begins with the run, not {page.evaluate(caption)!r}")
    strip = page.locator("#pipeline canvas").first
    strip.scroll_into_view_if_needed()
    box = strip.bounding_box()
    tips = set()
    for share in range(6, 98, 2):
        page.mouse.move(box["x"] + box["width"] * share / 100, box["y"] + 16)
        if page.is_visible("#tip"):
            tips.add(page.text_content("#tip"))
    checks.that(any("iteration 0" in tip for tip in tips),
                f"{label}: operations of iteration 0 have tips, not {tips}")


def state_of(url, file):
    if file:
        return json.loads(Path(file).read_text())
    parts = urllib.parse.urlsplit(url)
    address = parts._replace(path=parts.path.rstrip("/") + "/state").geturl()
    with urllib.request.urlopen(address) as answer:
        return json.load(answer)


def check_page(checks, browser, url, state, label, screenshots=None):
    for theme in THEMES:
        for width in WIDTHS:
            name = f"{label}, {theme}, {width} px"
            with Page(browser, url, width, theme) as (page, errors):
                check_width(checks, page, name)
                check_views(checks, page, state, name)
                if screenshots:
                    folder = Path(screenshots)
                    folder.mkdir(parents=True, exist_ok=True)
                    page.screenshot(path=folder / f"{label}-{width}-{theme}.png", full_page=True)
                if state["ended"]:
                    check_figures(checks, page, state, name)
                check_axe(checks, page, name)
                if width == WIDTHS[1]:
                    check_keyboard(checks, page, state, name)
                    check_tables(checks, page, name)
                    check_scrubbing(checks, page, state, name)
                    check_width(checks, page, name)
                    check_axe(checks, page, f"{name}, tables open")
                checks.equal(errors, [], f"{name}: errors")


def check_theme(checks, browser, url):
    with Page(browser, url) as (page, errors):
        before = page.evaluate("getComputedStyle(document.body).backgroundColor")
        page.click("#theme")
        after = page.evaluate("getComputedStyle(document.body).backgroundColor")
        checks.that(before != after, "the theme button changes the background")
        page.reload()
        wait_until(page, "document.getElementById('waiting').hidden")
        checks.equal(page.evaluate("getComputedStyle(document.body).backgroundColor"), after,
                     "the theme is kept after a reload")
        checks.equal(errors, [], "theme: errors")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("url", nargs="?")
    parser.add_argument("--state")
    parser.add_argument("--screenshots")
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--chromium", default="/usr/bin/chromium")
    arguments = parser.parse_args()
    checks = Checks()
    began = time.monotonic()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=arguments.chromium,
            args=["--no-sandbox", "--disable-gpu", "--enable-precise-memory-info"])
        try:
            if arguments.url:
                state = state_of(arguments.url, arguments.state)
                check_page(checks, browser, arguments.url, state, "page", arguments.screenshots)
                check_theme(checks, browser, arguments.url)
            else:
                mock_checks.run(checks, browser, arguments, sys.modules[__name__])
        finally:
            browser.close()
    print(f"{checks.passed} checks passed, {len(checks.failed)} failed, "
          f"{time.monotonic() - began:.0f} s")
    return 1 if checks.failed else 0


if __name__ == "__main__":
    sys.exit(main())
