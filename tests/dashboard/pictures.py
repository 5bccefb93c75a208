#!/usr/bin/env python3
"""Makes the pictures of pages in docs/pictures, from three runs.

usage: pictures.py PROGRAMS [--out DIR] [--only NAME] [--chromium PROGRAM]

PROGRAMS is the folder of the built programs. Needs the packages that page_test.py names. The runs
are one on threads with a slow worker, a pipelined one and one of 64 workers with bursts; the latter
two are simulated. The pages of runs without stages have predictions.
"""
import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright

sys.path.insert(0, str(Path(__file__).parent))
import page_test  # noqa: E402
from real_pages import url_in  # noqa: E402

DOCS = Path(__file__).resolve().parents[2] / "docs" / "pictures"
# The words of a run, the theme of its picture, and the share of the run that is selected, if any.
RUNS = {
    "threads": (["fashion-mlp", "--epochs", "5", "--evaluate-every", "1", "--checkpoint-every",
                 "2s"], "dark", None),
    "pipeline": (["pipeline-gpt", "--simulate", "--gradients", "none", "--stages", "4",
                  "--pipelines", "2", "--micro-batches", "8", "--staleness", "1", "--slow",
                  "5:1.7x", "--epochs", "0.1"], "light", 0.5),
    "simulation": (["fashion-mlp", "--simulate", "--gradients", "none", "--workers", "64",
                    "--shards", "4", "--staleness", "4", "--batch", "16", "--epochs", "4",
                    "--world", "speed=0.2,link=100", "--slow", "all:4x@8%/10", "--fault",
                    "9:crash(1s)@30"], "dark", None),
}


def select(page, share):
    """Selects the interval at a share of the run."""
    page.evaluate("""(share) => {
      const scrub = document.getElementById('scrub');
      scrub.value = Math.round(share * scrub.max);
      scrub.dispatchEvent(new Event('input'));
    }""", share)
    page.wait_for_timeout(1500)


def take(browser, programs, name, out):
    words, theme, selected = RUNS[name]
    with tempfile.TemporaryDirectory() as root:
        folder, log = Path(root) / "run", Path(root) / "view"
        subprocess.run([programs / words[0], *words[1:], "--trace", "--quiet", "--out", folder],
                       check=True, stdout=subprocess.DEVNULL)
        with log.open("w") as text:
            view = subprocess.Popen([programs / "leeway", "view", folder], stdout=text, stderr=text)
        try:
            with page_test.Page(browser, url_in(log, view), 1600, theme) as (page, errors):
                if page.is_visible("#predict"):
                    page.click("#predict")
                    page_test.wait_until(page, "document.querySelector('#predictions tbody tr')"
                                               " !== null", 600)
                if selected is not None:
                    select(page, selected)
                # The header stays at the top of the window, which a click may have scrolled.
                page.evaluate("window.scrollTo(0, 0)")
                page.mouse.move(0, 0)
                page.wait_for_timeout(1000)
                page.screenshot(path=out / f"page-{name}.png", full_page=True)
                if errors:
                    raise RuntimeError(f"the page of {name}: {errors}")
        finally:
            view.terminate()
            view.wait(30)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("programs", type=lambda text: Path(text).resolve())
    parser.add_argument("--out", type=Path, default=DOCS)
    parser.add_argument("--only", choices=RUNS)
    parser.add_argument("--chromium", default="/usr/bin/chromium")
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=arguments.chromium,
                                             args=["--no-sandbox", "--disable-gpu"])
        for name in [arguments.only] if arguments.only else RUNS:
            take(browser, arguments.programs, name, arguments.out)
        browser.close()


if __name__ == "__main__":
    main()
