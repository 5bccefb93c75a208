"""The models of bench/models.hpp in PyTorch, with the same names of weights."""

import torch
import torch.nn as nn

INPUTS = {"mlp": (784,), "lenet": (1, 28, 28), "vgg": (3, 32, 32), "resnet": (3, 32, 32), "gpt": (64,)}
CLASSES = {"gpt": 65}  # other models have 10


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


class Positions(nn.Module):
    """Adds a learned row to each token's features."""

    def __init__(self, tokens, features):
        super().__init__()
        self.weight = nn.Parameter(0.02 * torch.randn(tokens, features))

    def forward(self, x):
        return x + self.weight


class Attention(nn.Module):
    """Causal attention; the input holds queries, keys and values side by side."""

    def __init__(self, heads, tokens):
        super().__init__()
        self.heads = heads
        later = torch.triu(torch.ones(tokens, tokens, dtype=torch.bool), 1)
        self.register_buffer("later", later, persistent=False)

    def forward(self, x):
        batch, tokens, features = x.shape[0], x.shape[1], x.shape[2] // 3
        split = x.view(batch, tokens, 3, self.heads, features // self.heads)
        q, k, v = split.permute(2, 0, 3, 1, 4)
        logits = (q @ k.transpose(-1, -2)) * (features // self.heads) ** -0.5
        weights = logits.masked_fill(self.later, float("-inf")).softmax(-1)
        return (weights @ v).transpose(1, 2).reshape(batch, tokens, features)


class Unembedding(nn.Module):
    """Logits for each row of an embedding table, whose weight it shares."""

    def __init__(self, embedding):
        super().__init__()
        self.weight = embedding.weight

    def forward(self, x):
        return nn.functional.linear(x, self.weight)


def gpt(layers=2, width=128, heads=4, tokens=64, vocabulary=65):
    embedding = nn.Embedding(vocabulary, width)
    modules = [embedding, Positions(tokens, width)]
    for _ in range(layers):
        qkv, out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        up, down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        modules.append(Residual([nn.LayerNorm(width), qkv, Attention(heads, tokens), out]))
        modules.append(Residual([nn.LayerNorm(width), up, nn.GELU(), down]))
    return nn.Sequential(*modules, nn.LayerNorm(width), Unembedding(embedding))


def batch(name, samples, device="cpu"):
    """Random (x, labels): images with one class each, or windows with one class per token."""
    classes, shape = CLASSES.get(name, 10), INPUTS[name]
    if name == "gpt":
        return tuple(torch.randint(0, classes, (samples, *shape), device=device) for _ in range(2))
    return torch.rand(samples, *shape, device=device), torch.randint(0, classes, (samples,), device=device)


def loss(logits, labels):
    """The mean cross entropy over all labels."""
    return nn.functional.cross_entropy(logits.reshape(-1, logits.shape[-1]), labels.reshape(-1))


def make(name):
    """The model, with PyTorch's initial weights."""
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
    if name == "gpt":
        return gpt()
    raise ValueError(f"unknown model {name!r}; known are {', '.join(INPUTS)}")
