#!/usr/bin/python3
"""Checks that Leeway and PyTorch compute the same logits, loss and gradients to 1e-4 from the same weights and batch.

usage: same_answers.py [--models mlp,lenet,vgg,resnet,gpt] [--build build/release] [--device cpu]
                       [--precision fp32]

With --precision bf16, errors are distances to PyTorch's results in fp32, and at most twice those of PyTorch's autocast.
Needs Debian's python3-torch and python3-numpy. A file that Leeway saves holds the weights under PyTorch's names.
"""

import argparse
import json
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy
import torch

import models

TOLERANCE = 1e-4  # relative to the largest element of a tensor


def load(path):
    """The f32 tensors of a safetensors file, by name."""
    raw = Path(path).read_bytes()
    (length,) = struct.unpack("<Q", raw[:8])
    header = json.loads(raw[8 : 8 + length])
    header.pop("__metadata__", None)
    tensors = {}
    for name, entry in header.items():
        begin, end = entry["data_offsets"]
        values = numpy.frombuffer(raw, "<f4", (end - begin) // 4, 8 + length + begin)
        tensors[name] = torch.from_numpy(values.copy()).reshape(entry["shape"])
    return tensors


def difference(ours, theirs):
    """The largest difference, relative to the largest expected number, or to 0.001 if all are smaller."""
    return ((ours - theirs).abs().max() / max(1e-3, theirs.abs().max())).item()


def load_model(name, tensors):
    """PyTorch's model with the weights of the file."""
    model = models.make(name).train()
    weights = {key: tensors[key] for key in model.state_dict() if key in tensors}
    unknown = model.load_state_dict(weights, strict=False)
    # A tied weight has the name of its first use.
    named = dict(model.named_parameters())
    twice = {key for key, value in model.state_dict(keep_vars=True).items() if value.requires_grad and key not in named}
    missing = [key for key in unknown.missing_keys if not key.endswith("num_batches_tracked") and key not in twice]
    if missing or unknown.unexpected_keys:
        sys.exit(f"{name}: names differ: missing {missing}, unexpected {unknown.unexpected_keys}")
    return model


def pytorch(name, tensors, autocast):
    """Logits, loss and gradients by name, computed by PyTorch on the CPU."""
    model = load_model(name, tensors)
    with torch.autocast("cpu", torch.bfloat16, enabled=autocast):
        logits = model(tensors["x"].long() if name in models.CLASSES else tensors["x"])
        loss = models.loss(logits, tensors["labels"].long())
    loss.backward()
    found = {"logits": logits.detach().float().reshape(tensors["logits"].shape), "loss": loss.detach().float().reshape(1)}
    return found | {"gradient." + key: parameter.grad for key, parameter in model.named_parameters()}


def compare(name, tensors):
    """Yields (name, difference) of the logits, of the loss and of the worst gradient."""
    theirs = pytorch(name, tensors, autocast=False)
    differences = {key: difference(tensors[key], theirs[key]) for key in theirs}
    worst = max((key for key in theirs if key.startswith("gradient.")), key=differences.get)
    for key in ("logits", "loss", worst):
        yield key, differences[key]


def compare_rounded(name, tensors):
    """Yields (name, distance to fp32, autocast's distance) of the logits and of the gradient that compares worst."""
    exact, autocast = pytorch(name, tensors, autocast=False), pytorch(name, tensors, autocast=True)

    def distance(to, key):
        return ((to[key] - exact[key]).norm() / exact[key].norm()).item()

    rows = {key: (distance(tensors, key), distance(autocast, key)) for key in exact if key != "loss"}
    worst = max(rows, key=lambda key: rows[key][0] / (rows[key][1] + 1e-3))
    for key in dict.fromkeys(("logits", worst)):
        yield key, *rows[key]


def main():
    parser = argparse.ArgumentParser(description="Checks that Leeway and PyTorch agree.")
    parser.add_argument("--models", default=",".join(models.INPUTS))
    parser.add_argument("--build", default="build/release")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--precision", default="fp32", choices=["fp32", "bf16"])
    args = parser.parse_args()
    program = Path(args.build) / "bench" / "answers"
    good = True
    with tempfile.TemporaryDirectory() as folder:
        for name in args.models.split(","):
            path = Path(folder) / f"{name}.safetensors"
            subprocess.run([program, name, path, "--device", args.device, "--precision", args.precision], check=True)
            tensors = load(path)
            if args.precision == "bf16":
                for what, ours, theirs in compare_rounded(name, tensors):
                    agrees = ours <= 2 * theirs + 1e-3
                    good &= agrees
                    print(f"{name:8}{what:40}{ours:10.1e}{theirs:10.1e}  {'ok' if agrees else 'WORSE'}")
                continue
            for what, worst in compare(name, tensors):
                agrees = worst <= TOLERANCE
                good &= agrees
                print(f"{name:8}{what:40}{worst:10.1e}  {'ok' if agrees else 'DIFFERS'}")
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
