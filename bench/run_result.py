"""Runs a scenario program and reads its result, for benchmarks."""

import json
import subprocess
import sys
import tempfile
from pathlib import Path


def result_of(*command):
    """Runs the command quietly and returns its result.json. Exits if the command fails."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "run"
        done = subprocess.run([*command, "--out", out, "--quiet"], capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(f"{' '.join(map(str, command))} failed:\n{done.stdout}{done.stderr}")
        return json.loads((out / "result.json").read_text())
