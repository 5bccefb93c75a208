#!/usr/bin/python3
"""Samples per second of training a model with momentum SGD on synthetic data in PyTorch, like train_bench.

usage: torch_train.py MODEL [--batch 64] [--threads 1] [--seconds 1.5] [--device cpu]
                      [--precision fp32]
"""

import argparse
import time

import torch

import models

BATCHES = 64  # in memory


def main():
    parser = argparse.ArgumentParser(description="Samples per second of training a model in PyTorch.")
    parser.add_argument("model", choices=models.INPUTS)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=1.5)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--precision", default="fp32", choices=["fp32", "tf32", "bf16"], help="bf16: autocast")
    args = parser.parse_args()

    torch.set_num_threads(args.threads)
    torch.manual_seed(0)
    torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = args.precision == "tf32"
    device = torch.device(args.device)
    model = models.make(args.model).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.001, momentum=0.9)
    x, labels = models.batch(args.model, BATCHES * args.batch, device)

    def step(index):
        first = index % BATCHES * args.batch
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast(device.type, torch.bfloat16, enabled=args.precision == "bf16"):
            loss = models.loss(model(x[first : first + args.batch]), labels[first : first + args.batch])
        loss.backward()
        optimizer.step()

    def run(seconds):
        """Runs steps for about `seconds`; returns their number and the time."""
        steps, began = 0, time.perf_counter()
        while time.perf_counter() - began < seconds:
            step(steps)
            steps += 1
        if device.type == "cuda":
            torch.cuda.synchronize()
        return steps, time.perf_counter() - began

    run(args.seconds / 5)
    steps, seconds = run(args.seconds)
    print(f"{args.model} batch {args.batch} torch {torch.__version__}: {steps * args.batch / seconds:.1f} samples/s")


if __name__ == "__main__":
    main()
