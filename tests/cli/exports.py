#!/usr/bin/env python3
"""Trained models outside of Leeway: predictions of exported files equal those of the run.

usage: exports.py FOLDER_OF_PROGRAMS                 reads the files with Python alone
       exports.py FOLDER_OF_PROGRAMS --frameworks    runs them with PyTorch and ONNX Runtime

Without --frameworks, this program computes a small network by itself: from the weights and their
metadata, and from the graph of the ONNX file. Exit code 77: skipped, because a framework or the
export is missing.
"""
import argparse
import csv
import importlib.util
import io
import json
import math
import random
import re
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

class Failed(Exception):
    pass


def check(condition, *text):
    if not condition:
        raise Failed(" ".join(map(str, text)))


def run(*command, code=0):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    check(done.returncode == code, *command, "has code", done.returncode, done.stdout, done.stderr)
    return done.stdout + (done.stderr if code else "")


def write_table(path, rows, seed, regression):
    """Columns of very different size, so that raw numbers are useless to the trained weights."""
    draw = random.Random(seed)
    with path.open("w") as file:
        print("small,large,shifted,label", file=file)
        for _ in range(rows):
            a, b, c = draw.gauss(0, 1), draw.gauss(0, 1), draw.gauss(0, 1)
            answer = (a > 0) + (b + c > 0)
            label = 1000 + 50 * a - 20 * b if regression else answer
            print(f"{1e-4 * a:.9g},{5e4 * b + 1e4:.9g},{c + 300:.9g},{label:.9g}", file=file)


PLAN = """
name = "exported"
workers = 2
shards = 1
consistency = "bsp"
batch = 20
model = [{{ linear.outputs = 16 }}, "{activation}", {{ linear.outputs = {outputs} }}]
loss = "{loss}"
[optimizer]
learning_rate = {rate}
momentum.factor = 0.9
[stop]
epochs = 20
[data.csv]
train = "{folder}/train.csv"
test = "{folder}/test.csv"
regression = {regression}
"""


def trained(leeway, folder, regression=False):
    """Trains a model, and returns the folder of its run."""
    folder.mkdir()
    write_table(folder / "train.csv", 1200, 1, regression)
    write_table(folder / "test.csv", 400, 2, regression)
    (folder / "plan.toml").write_text(PLAN.format(
        folder=folder, activation="tanh" if regression else "relu", outputs=1 if regression else 3,
        rate=1e-6 if regression else 0.05, regression=str(regression).lower(),
        loss="mean_squared_error" if regression else "softmax_cross_entropy"))
    run(leeway, "run", folder / "plan.toml", "--quiet", "--out", folder / "run")
    return folder / "run"


def table(text):
    return list(csv.DictReader(io.StringIO(text)))


def without_labels(folder):
    """The test file with its columns in another order, another column, and no labels."""
    rows = table((folder / "test.csv").read_text())
    path = folder / "unlabelled.csv"
    with path.open("w") as file:
        print("id,shifted,small,large", file=file)
        for i, row in enumerate(rows):
            print(i, row["shifted"], row["small"], row["large"], sep=",", file=file)
    return path, rows


# ---- a network in plain Python ----


def read_weights(path):
    data = path.read_bytes()
    (size,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8 : 8 + size])
    metadata = header.pop("__metadata__")
    tensors = {}
    for name, entry in header.items():
        begin, end = (8 + size + offset for offset in entry["data_offsets"])
        tensors[name] = (entry["shape"], struct.unpack(f"<{(end - begin) // 4}f", data[begin:end]))
    return tensors, metadata


def linear(x, weight, bias):
    (outputs, inputs), values = weight
    return [sum(w * v for w, v in zip(values[o * inputs : (o + 1) * inputs], x)) + bias[1][o]
            for o in range(outputs)]


def softmax(y):
    top = max(y)
    powers = [math.exp(v - top) for v in y]
    return [power / sum(powers) for power in powers]


def near(left, right, tolerance):
    return all(abs(a - b) <= tolerance * max(1, abs(a), abs(b)) for a, b in zip(left, right))


def probabilities(row, classes):
    return [float(row[name]) for name in classes]


def check_weights(run_folder, rows, predictions):
    """Only the file of weights: raw numbers in, Leeway's probabilities out."""
    tensors, metadata = read_weights(run_folder / "weights.safetensors")
    text = (run_folder / "preprocessing.json").read_text()
    check(metadata["leeway.preprocessing"] == text, "the metadata has another preprocessing")
    about = json.loads(text)
    for row, predicted in zip(rows, predictions):
        x = [(float(row[c["name"]]) - c["mean"]) / c["deviation"] for c in about["columns"]]
        hidden = [max(0, v) for v in linear(x, tensors["0.weight"], tensors["0.bias"])]
        found = softmax(linear(hidden, tensors["2.weight"], tensors["2.bias"]))
        check(near(found, probabilities(predicted, about["classes"]), 1e-4), found, predicted)


# ---- ONNX in plain Python: https://protobuf.dev/programming-guides/encoding ----


def fields(data):
    """Number and value of each field of a Protocol Buffers message."""
    at = 0

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    while at < len(data):
        key = varint()
        kind = key & 7
        if kind == 0:
            value = varint()
        else:
            size = {1: 8, 5: 4}.get(kind) or varint()
            value, at = data[at : at + size], at + size
        yield key >> 3, value


def all_of(data, number):
    return [value for key, value in fields(data) if key == number]


class OnnxFile:
    """The operations that a small network needs, for one sample."""

    def __init__(self, path):
        model = path.read_bytes()
        (graph,) = all_of(model, 7)
        self.version = all_of(all_of(model, 8)[0], 2)[0]
        self.nodes = all_of(graph, 1)
        self.outputs = [all_of(value, 1)[0].decode() for value in all_of(graph, 12)]
        self.constants = {}
        for tensor in all_of(graph, 5):
            kind = {1: "f", 11: "d"}[all_of(tensor, 2)[0]]
            raw = all_of(tensor, 9)[0]
            values = struct.unpack(f"<{len(raw) // struct.calcsize(kind)}{kind}", raw)
            self.constants[all_of(tensor, 8)[0].decode()] = (all_of(tensor, 1), values)

    def __call__(self, x):
        values = {"x": x, **{name: list(found[1]) for name, found in self.constants.items()}}
        for node in self.nodes:
            names = [name.decode() for name in all_of(node, 1)]
            operation = all_of(node, 4)[0].decode()
            inputs = [values[name] for name in names]
            if operation == "Gemm":
                result = linear(inputs[0], *(self.constants[name] for name in names[1:]))
            else:
                result = self.compute(operation, inputs)
            values[all_of(node, 2)[0].decode()] = result
        return values[self.outputs[0]]

    @staticmethod
    def compute(operation, inputs):
        x, *others = inputs
        if others:
            other = others[0] * len(x) if len(others[0]) == 1 else others[0]
            pairs = list(zip(x, other))
        return {
            "Cast": lambda: x,
            "Sub": lambda: [a - b for a, b in pairs],
            "Div": lambda: [a / b for a, b in pairs],
            "Mul": lambda: [a * b for a, b in pairs],
            "Add": lambda: [a + b for a, b in pairs],
            "Relu": lambda: [max(0, v) for v in x],
            "Tanh": lambda: [math.tanh(v) for v in x],
            "Softmax": lambda: softmax(x),
        }[operation]()


def exports_onnx(leeway, run_folder):
    """The ONNX file, or None if this build cannot write one."""
    done = subprocess.run([leeway, "export", run_folder, "--onnx"], capture_output=True, text=True)
    if done.returncode == 2 and "built without ONNX" in done.stderr:
        print("skipped: this leeway was built without ONNX")
        return None
    check(done.returncode == 0, done.stderr)
    return run_folder / "onnx/model.onnx"


def check_classes(leeway, folder):
    run_folder = trained(leeway, folder)
    accuracy = json.loads((run_folder / "result.json").read_text())["test_accuracy"]
    check(accuracy > 0.9, "the model learns", accuracy)
    file, rows = without_labels(folder)
    predictions = table(run(leeway, "predict", run_folder, file))
    right = sum(row["label"] == found["predicted"] for row, found in zip(rows, predictions))
    check(right / len(rows) == accuracy, "predictions have the accuracy", right / len(rows))
    for row in predictions:
        check(abs(sum(probabilities(row, "012")) - 1) < 1e-5, row)
    run(leeway, "predict", run_folder / "weights.safetensors", file, "--out", folder / "out.csv")
    check(table((folder / "out.csv").read_text()) == predictions, "--out differs")
    for extra in ([], ["--data", folder / "test.csv"]):
        text = run(leeway, "evaluate", run_folder, *extra)
        check(f"accuracy  {100 * accuracy:.2f}%" in text, text)
    check_weights(run_folder, rows, predictions)
    onnx = exports_onnx(leeway, run_folder)
    if onnx:
        network = OnnxFile(onnx)
        check(network.version == 13 and network.outputs == ["probabilities"], network.outputs)
        for row, found in zip(rows, predictions):
            x = [float(row[name]) for name in ("small", "large", "shifted")]
            check(near(network(x), probabilities(found, "012"), 1e-4), row, found)
    run(leeway, "export", run_folder, "--torch")
    compile((run_folder / "torch/model.py").read_text(), "model.py", "exec")
    return run_folder, file, predictions


def check_regression(leeway, folder):
    run_folder = trained(leeway, folder, regression=True)
    file, rows = without_labels(folder)
    predictions = table(run(leeway, "predict", run_folder, file))
    error = sum(abs(float(row["label"]) - float(found["predicted"]))
                for row, found in zip(rows, predictions)) / len(rows)
    text = run(leeway, "evaluate", run_folder)
    reported = float(re.search(r"mean absolute error +(\S+)", text)[1])
    check(abs(error - reported) < 1e-3 * error, error, text)
    onnx = exports_onnx(leeway, run_folder)
    if onnx:
        network = OnnxFile(onnx)
        for row, found in zip(rows, predictions):
            x = [float(row[name]) for name in ("small", "large", "shifted")]
            check(near(network(x), [float(found["predicted"])], 1e-4), row, found)
    return run_folder, file, predictions


def check_refusals(leeway, folder, run_folder):
    """Models and arguments that are refused, by name."""
    folder.mkdir()
    (folder / "text").write_text("the cat sat on the mat. " * 40)
    (folder / "plan.toml").write_text(
        'name = "letters"\nshards = 1\nmodel = [{ embedding.features = 4 }, "unembedding"]\n'
        f'[stop]\nepochs = 1\n[data.text]\nfile = "{folder}/text"\ncontext = 8\n')
    run(leeway, "run", folder / "plan.toml", "--quiet", "--out", folder / "run")
    for words, expected in (
            (["predict", folder / "run", folder / "text"], "leeway sample"),
            (["export", run_folder], "give --torch or --onnx"),
            (["export", folder / "none", "--torch"], "does not exist"),
            (["evaluate", folder], "is not a run folder"),
            (["evaluate", run_folder, "--labels", "x"], "--data")):
        text = run(leeway, *words, code=2)
        check(expected in text, words, text)
    done = subprocess.run([leeway, "export", folder / "run", "--onnx"], capture_output=True,
                          text=True)
    check(done.returncode == 2 and ("layer 0 (embedding)" in done.stderr
                                    or "built without ONNX" in done.stderr), done.stderr)
    check("accuracy" in run(leeway, "evaluate", folder / "run"), "text is not evaluated")
    picture = folder / "picture.svg"
    run(leeway, "evaluate", run_folder, "--picture", picture)
    check(picture.read_text().endswith("</svg>\n"), "no picture")


def check_frameworks(runs):
    missing = [name for name in ("torch", "numpy", "onnxruntime")
               if importlib.util.find_spec(name) is None]
    for run_folder, file, predictions in runs:
        if "torch" not in missing:
            found = table(run(sys.executable, run_folder / "torch/model.py", file))
            check(len(found) == len(predictions), len(found))
            for left, right in zip(found, predictions):
                check(left["predicted"] == right["predicted"] or "0" not in right, left, right)
                check(near(map(float, left.values()), map(float, right.values()), 1e-4), left)
        if not {"numpy", "onnxruntime"} & set(missing) and (run_folder / "onnx").exists():
            import numpy
            import onnxruntime
            session = onnxruntime.InferenceSession(str(run_folder / "onnx/model.onnx"))
            rows = [[float(row[name]) for name in ("small", "large", "shifted")]
                    for row in table(file.read_text())]
            for left, right in zip(session.run(None, {"x": numpy.float32(rows)})[0], predictions):
                values = [float(v) for name, v in right.items() if name != "predicted" or
                          len(right) == 1]
                check(near(left.tolist(), values, 1e-4), left, right)
    for name in missing:
        print(f"skipped: {name} is not installed")
    return 77 if missing else 0


def main():
    parser = argparse.ArgumentParser(description="Compares exported models with their runs.")
    parser.add_argument("programs", type=Path, help="folder with leeway: build/release/bin")
    parser.add_argument("--frameworks", action="store_true", help="with PyTorch and ONNX Runtime")
    arguments = parser.parse_args()
    leeway = arguments.programs.resolve() / "leeway"
    with tempfile.TemporaryDirectory(prefix="leeway-exports-") as name:
        folder = Path(name)
        try:
            runs = [check_classes(leeway, folder / "classes"),
                    check_regression(leeway, folder / "regression")]
            if not arguments.frameworks:
                check_refusals(leeway, folder / "refused", runs[0][0])
                return 0
            run(leeway, "export", runs[1][0], "--torch")
            return check_frameworks(runs)
        except Failed as failure:
            print(failure)
            return 1


if __name__ == "__main__":
    sys.exit(main())
