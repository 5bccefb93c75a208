"""The models of bench/models.hpp in PyTorch: the same layers in the same places, so that the names of weights agree."""

import torch.nn as nn

INPUTS = {"mlp": (784,), "lenet": (1, 28, 28), "vgg": (3, 32, 32), "resnet": (3, 32, 32)}


class Residual(nn.Module):
    """body(x) + shortcut(x); without a shortcut, body(x) + x."""

    def __init__(self, body, shortcut=()):
        super().__init__()
        self.body = nn.Sequential(*body)
        self.shortcut = nn.Sequential(*shortcut)

    def forward(self, x):
        return self.body(x) + self.shortcut(x)


def residual_block(inputs, outputs, stride):
    body = [
        nn.Conv2d(inputs, outputs, 3, stride, padding=1, bias=False),
        nn.BatchNorm2d(outputs),
        nn.ReLU(),
        nn.Conv2d(outputs, outputs, 3, padding=1, bias=False),
        nn.BatchNorm2d(outputs),
    ]
    if stride == 1:
        return Residual(body)
    return Residual(body, [nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs)])


def resnet():
    layers = [nn.Conv2d(3, 16, 3, padding=1, bias=False), nn.BatchNorm2d(16), nn.ReLU()]
    channels = 16
    for outputs in (16, 32, 64):
        for block in range(2):
            layers += [residual_block(channels, outputs, 2 if block == 0 and outputs > 16 else 1), nn.ReLU()]
            channels = outputs
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10))


def make(name):
    """The model, with weights as PyTorch initialises them."""
    if name == "mlp":
        return nn.Sequential(
            nn.Flatten(), nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 256), nn.ReLU(), nn.Linear(256, 10)
        )
    if name == "lenet":
        return nn.Sequential(
            nn.Conv2d(1, 6, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(6, 16, 5), nn.ReLU(),
            nn.MaxPool2d(2), nn.Flatten(), nn.Linear(400, 120), nn.ReLU(), nn.Linear(120, 84), nn.ReLU(),
            nn.Linear(84, 10),
        )  # fmt: skip
    if name == "vgg":
        return nn.Sequential(
            nn.Conv2d(3, 64, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(64, 128, 3, padding=1), nn.ReLU(),
            nn.MaxPool2d(2), nn.Flatten(), nn.Linear(128 * 64, 256), nn.ReLU(), nn.Linear(256, 10),
        )  # fmt: skip
    if name == "resnet":
        return resnet()
    raise ValueError(f"no model {name!r}; there are {', '.join(INPUTS)}")
