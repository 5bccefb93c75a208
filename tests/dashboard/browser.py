"""The frame of the tests that look at real runs in headless Chromium."""
import argparse
from pathlib import Path

import page_test
from playwright.sync_api import sync_playwright


def run_checks(description, check):
    """Calls check(checks, browser, arguments), prints the result, and returns the exit code."""
    parser = argparse.ArgumentParser(description=description.split("\n")[0])
    parser.add_argument("programs", type=lambda text: Path(text).resolve())
    parser.add_argument("--screenshots")
    parser.add_argument("--chromium", default="/usr/bin/chromium")
    arguments = parser.parse_args()
    checks = page_test.Checks()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=arguments.chromium,
                                             args=["--no-sandbox", "--disable-gpu"])
        try:
            check(checks, browser, arguments)
        finally:
            browser.close()
    print(f"{checks.passed} checks passed, {len(checks.failed)} failed")
    return 1 if checks.failed else 0
