#!/usr/bin/python3
"""Checks that Leeway and PyTorch compute the same logits, loss and gradients to 1e-4 from the same weights and batch.

usage: same_answers.py [--models mlp,lenet,vgg,resnet,gpt] [--build build/release] [--device cpu]

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

TOLERANCE = 1e-4  # relative to the largest element of a tensor, at least 1


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
    """The largest difference, relative to the largest expected number."""
    return ((ours - theirs).abs().max() / max(1.0, theirs.abs().max())).item()


def compare(name, tensors):
    """Yields (name, difference) of the logits, of the loss and of the worst gradient."""
    model = models.make(name).train()
    weights = {key: tensors[key] for key in model.state_dict() if key in tensors}
    unknown = model.load_state_dict(weights, strict=False)
    # A tied weight has the name of its first use.
    named = dict(model.named_parameters())
    twice = {key for key, value in model.state_dict(keep_vars=True).items() if value.requires_grad and key not in named}
    missing = [key for key in unknown.missing_keys if not key.endswith("num_batches_tracked") and key not in twice]
    if missing or unknown.unexpected_keys:
        sys.exit(f"{name}: names differ: missing {missing}, unexpected {unknown.unexpected_keys}")
    logits = model(tensors["x"].long() if name in models.CLASSES else tensors["x"])
    loss = models.loss(logits, tensors["labels"].long())
    loss.backward()
    yield "logits", difference(tensors["logits"], logits.detach().reshape(tensors["logits"].shape))
    yield "loss", difference(tensors["loss"], loss.detach().reshape(1))
    gradients = [
        (difference(tensors["gradient." + key], parameter.grad), "gradient of " + key)
        for key, parameter in model.named_parameters()
    ]
    worst, which = max(gradients)
    yield which, worst


def main():
    parser = argparse.ArgumentParser(description="Checks that Leeway and PyTorch agree to 1e-4.")
    parser.add_argument("--models", default=",".join(models.INPUTS))
    parser.add_argument("--build", default="build/release")
    parser.add_argument("--device", default="cpu")
    args = parser.parse_args()
    program = Path(args.build) / "bench" / "answers"
    good = True
    with tempfile.TemporaryDirectory() as folder:
        for name in args.models.split(","):
            path = Path(folder) / f"{name}.safetensors"
            subprocess.run([program, name, path, "--device", args.device], check=True)
            for what, worst in compare(name, load(path)):
                good &= worst <= TOLERANCE
                print(f"{name:8}{what:40}{worst:10.1e}  {'ok' if worst <= TOLERANCE else 'DIFFERS'}")
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
