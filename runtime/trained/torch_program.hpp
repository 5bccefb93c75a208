#pragma once
// The parts of the program that export_torch() writes, which do not depend on the model.

namespace leeway::torch {

inline constexpr const char* kHead = R"PY(
usage: model.py FILE [WEIGHTS]

FILE: a table (CSV) with the columns of the training data, a file of images (IDX), or for a model of
text the text to continue. Prints what `leeway predict` and `leeway sample` print. WEIGHTS: other
weights of this model than those beside this program.

In a program:

    from model import load
    model, preprocessing = load()   # a torch.nn.Module in evaluation mode, and a dict
"""
import csv
import gzip
import io
import json
import struct
import sys
from pathlib import Path

import torch
from torch import nn
)PY";

inline constexpr const char* kResidual = R"PY(

class Residual(nn.Module):
    """y = body(x) + shortcut(x)"""

    def __init__(self, body, shortcut):
        super().__init__()
        self.body, self.shortcut = body, shortcut

    def forward(self, x):
        return self.body(x) + self.shortcut(x)
)PY";

inline constexpr const char* kPositions = R"PY(

class Positions(nn.Module):
    """Adds a learned row to each token."""

    def __init__(self, tokens, features):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(tokens, features))

    def forward(self, x):
        return x + self.weight[: x.shape[1]]
)PY";

inline constexpr const char* kAttention = R"PY(

class Attention(nn.Module):
    """Causal attention over concatenated queries, keys and values."""

    def __init__(self, heads):
        super().__init__()
        self.heads = heads

    def forward(self, x):
        batch, tokens, features = x.shape[0], x.shape[1], x.shape[2] // 3
        q, k, v = x.view(batch, tokens, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        y = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        return y.transpose(1, 2).reshape(batch, tokens, features)
)PY";

inline constexpr const char* kUnembedding = R"PY(

class Unembedding(nn.Module):
    """A score for each token: the product with its row of the embedding."""

    def __init__(self, table):
        super().__init__()
        self.table = [table]  # in a list: the embedding owns the parameter

    def forward(self, x):
        return x @ self.table[0].weight.T
)PY";

inline constexpr const char* kTail = R"PY(

def read_safetensors(path):
    """The F32 tensors of a file by name, and its metadata."""
    data = Path(path).read_bytes()
    (size,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8 : 8 + size])
    metadata = header.pop("__metadata__", {})
    tensors = {}
    for name, entry in header.items():
        begin, end = (8 + size + offset for offset in entry["data_offsets"])
        values = torch.frombuffer(bytearray(data[begin:end]), dtype=torch.float32)
        tensors[name] = values.view(entry["shape"])
    return tensors, metadata


def load(weights=Path(__file__).resolve().parent / "weights.safetensors"):
    """The model in evaluation mode, and its preprocessing (None if the run had none)."""
    tensors, metadata = read_safetensors(weights)
    model = build()
    for name, tensor in model.state_dict().items():
        if name.endswith("num_batches_tracked"):
            tensors[name] = tensor
    model.load_state_dict(tensors)
    text = metadata.get("leeway.preprocessing")
    return model.eval(), json.loads(text) if text else None


def encode(column, field):
    """One entry of a table as the model reads it."""
    missing = field.strip().lower() in ("", "?", "na", "n/a", "nan", "null")
    if missing and "fill" not in column:
        sys.exit(f"model.py: column {column['name']}: the value is missing; fill it in")
    if column["encoding"] == "one_hot":
        return [float(value == field and not missing) for value in column["values"]]
    number = column["fill"] if missing else float(field)
    return [(number - column["mean"]) * (1 / column["deviation"])]


def read_unpacked(path):
    data = Path(path).read_bytes()
    return gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data


def read_table(path, preprocessing):
    data = read_unpacked(path)
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = data.decode("latin-1")
    rows = csv.reader(io.StringIO(text, newline=""), skipinitialspace=True,
                      delimiter=preprocessing["csv"]["separator"])
    rows = [row for row in rows if row]
    columns = preprocessing["columns"]
    if preprocessing["csv"]["header"]:
        names = [name.strip() for name in rows.pop(0)]
    elif len(rows[0]) == len(columns):  # without the label
        names = [column["name"] for column in columns]
    else:
        names = [str(number + 1) for number in range(len(rows[0]))]
    lacking = [column["name"] for column in columns if column["name"] not in names]
    if lacking:
        sys.exit(f"model.py: {path} has no column {lacking[0]}")
    at = [names.index(column["name"]) for column in columns]
    samples = [[x for i, column in zip(at, columns) for x in encode(column, row[i])]
               for row in rows]
    return torch.tensor(samples, dtype=torch.float64).float()


def read_images(path, preprocessing):
    data = read_unpacked(path)
    extents = struct.unpack(f">{data[3]}I", data[4 : 4 + 4 * data[3]])
    pixels = torch.frombuffer(bytearray(data[4 + 4 * data[3] :]), dtype=torch.uint8).float()
    scale = preprocessing["pixels"]
    pixels = pixels * (1 / scale["deviation"]) - scale["mean"] / scale["deviation"]
    return pixels.view(extents[0], *preprocessing["shape"])


def answers(outputs, preprocessing):
    """Probabilities by class, or predictions in the unit of the data."""
    if ANSWERS == "softmax":
        return outputs.softmax(-1)
    if ANSWERS in ("two classes", "shares"):
        outputs = outputs.sigmoid()
    if ANSWERS == "two classes":
        return torch.cat([1 - outputs, outputs], -1)
    target = preprocessing["target"]
    return outputs * target["deviation"] + target["mean"]


def continued(model, preprocessing, text, characters=500, temperature=0.8):
    known = preprocessing["characters"]
    tokens = [known.index(character) for character in text] or [0]
    context = preprocessing["shape"][0]
    for _ in range(characters):
        logits = model(torch.tensor([tokens[-context:]]))[0, -1]
        tokens.append(int(torch.multinomial((logits / temperature).softmax(-1), 1)))
    return text + "".join(known[token] for token in tokens[max(len(text), 1):])


@torch.no_grad()
def main():
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    model, preprocessing = load(*sys.argv[2:])
    if preprocessing is None:
        sys.exit("model.py: the run had no files as its data; use load() in a program")
    if preprocessing["kind"] == "text":
        return print(continued(model, preprocessing, sys.argv[1]))
    read = read_table if preprocessing["kind"] == "table" else read_images
    samples = read(sys.argv[1], preprocessing)
    classes = preprocessing.get("classes", [])
    out = csv.writer(sys.stdout, lineterminator="\n")
    out.writerow(["predicted", *classes])
    for batch in samples.split(256):
        for row in answers(model(batch), preprocessing).tolist():
            name = [classes[max(range(len(row)), key=row.__getitem__)]] if classes else []
            out.writerow([*name, *(f"{value:.9g}" for value in row)])


if __name__ == "__main__":
    main()
)PY";

}  // namespace leeway::torch
