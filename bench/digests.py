#!/usr/bin/env python3
"""Digests of the weights that ten bsp runs compute, to compare two builds bit for bit.

    bench/digests.py build/release/bin > new.txt      # one line per run: sha256 and name
    bench/digests.py build/release/bin --expect old.txt
    bench/digests.py build/release/bin --expect bench/baselines/2-core-vm.digests    # on that machine

A digest covers the names, shapes and data of all tensors. It depends on the processor, because
oneDNN selects kernels by instruction set, so compare builds on one machine only. The runs cover one
process, the simulator, three node processes and pipelines.
"""

import argparse
import hashlib
import json
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

from run_result import Nodes

MLP = ["fashion-mlp", "--staleness", "bsp", "--slow", "none", "--epochs", "0.2"]
RUNS = {
    "local-bsp": MLP,
    "local-one-worker-micro-batches": MLP + ["--workers", "1", "--batch", "256", "--micro-batches", "4"],
    "local-adamw-three-shards": MLP + ["--optimizer", "adamw", "--lr", "0.001", "--shards", "3"],
    "local-lenet": ["fashion-lenet", "--staleness", "bsp", "--epochs", "0.3", "--warmup", "0"],
    "simulated-bsp": MLP + ["--simulate"],
    "simulated-ssp-stragglers": ["fashion-mlp", "--simulate", "--epochs", "0.2", "--staleness", "3"],
    "simulated-crash": MLP + ["--simulate", "--fault", "2:crash(5ms)@20"],
    "cluster-bsp": MLP + ["--nodes", "NODES"],
    "pipeline-1f1b": MLP + ["--stages", "2", "--pipelines", "2", "--micro-batches", "4"],
    "pipeline-gpt": ["pipeline-gpt", "--staleness", "bsp", "--iterations", "12", "--schedule", "interleaved",
                     "--chunks", "2", "--micro-batches", "4"],
}


def digest_of(weights):
    """sha256 over the tensors of a safetensors file, in order of their names."""
    data = weights.read_bytes()
    (size,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8 : 8 + size])
    digest = hashlib.sha256()
    for name in sorted(header):
        if name == "__metadata__":
            continue
        tensor = header[name]
        begin, end = tensor["data_offsets"]
        digest.update(f"{name} {tensor['dtype']} {tensor['shape']}".encode())
        digest.update(data[8 + size + begin : 8 + size + end])
    return digest.hexdigest()


def run(binaries, arguments, folder, nodes):
    arguments = [nodes.addresses if argument == "NODES" else argument for argument in arguments]
    done = subprocess.run([binaries / arguments[0], *arguments[1:], "--quiet", "--out", folder],
                          capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"digests: {' '.join(arguments)} exited with code {done.returncode}:\n{done.stderr}")
    return digest_of(Path(folder) / "weights.safetensors")


def main():
    parser = argparse.ArgumentParser(description="Digests of the weights that ten runs compute.")
    parser.add_argument("binaries", type=Path, help="folder of the programs, such as build/release/bin")
    parser.add_argument("--expect", type=Path, help="output of another build; exit 1 if a digest differs")
    options = parser.parse_args()
    binaries = options.binaries.resolve()
    expected = {}
    if options.expect:
        lines = [line.split() for line in options.expect.open() if not line.startswith("#")]
        expected = {name: digest for digest, name in lines}
    nodes = Nodes(binaries)
    different = 0
    try:
        with tempfile.TemporaryDirectory() as folder:
            for name, arguments in RUNS.items():
                digest = run(binaries, arguments, str(Path(folder) / name), nodes)
                other = expected.get(name, digest)
                different += other != digest
                print(digest, name, *([] if other == digest else [f"(expected {other})"]), flush=True)
    finally:
        nodes.stop()
    if different:
        sys.exit(f"digests: {different} of {len(RUNS)} runs differ")


if __name__ == "__main__":
    main()
