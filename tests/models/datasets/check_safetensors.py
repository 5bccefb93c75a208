#!/usr/bin/env python3
"""Reads a safetensors file of F32 tensors strictly by the format, using only the standard library.

usage: check_safetensors.py INPUT OUTPUT
Fails with a message if INPUT breaks a rule. Otherwise writes OUTPUT: the tensors in reverse order, all values doubled.
"""
import json
import math
import struct
import sys


def require(condition, message):
    if not condition:
        sys.exit(f"check_safetensors: {message}")


def refuse_twice(pairs):
    names = [name for name, _ in pairs]
    require(len(names) == len(set(names)), f"a name is given twice among {names}")
    return dict(pairs)


def read(path):
    with open(path, "rb") as file:
        content = file.read()
    (length,) = struct.unpack("<Q", content[:8])
    header = content[8 : 8 + length]
    data = content[8 + length :]
    require(length % 8 == 0, "the header's length is not a multiple of 8")
    require(header.startswith(b"{") and header.rstrip(b" ").endswith(b"}"), "the header's padding is wrong")
    entries = json.loads(header.decode("utf-8"), object_pairs_hook=refuse_twice)
    metadata = entries.pop("__metadata__", {})
    require(all(isinstance(value, str) for value in metadata.values()), "metadata is not text")

    tensors, position = [], 0
    for name, entry in sorted(entries.items(), key=lambda item: item[1]["data_offsets"]):
        require(set(entry) == {"dtype", "shape", "data_offsets"}, f"{name}: keys {set(entry)}")
        require(entry["dtype"] == "F32", f"{name}: dtype {entry['dtype']}")
        begin, end = entry["data_offsets"]
        require(begin == position and begin % 4 == 0, f"{name}: begins at {begin}, not {position}")
        require(end - begin == 4 * math.prod(entry["shape"]), f"{name}: shape {entry['shape']}")
        tensors.append((name, entry["shape"], struct.unpack(f"<{(end - begin) // 4}f", data[begin:end])))
        position = end
    require(position == len(data), f"{len(data) - position} bytes belong to no tensor")
    return tensors, metadata


def write(path, tensors, metadata):
    header, data = {"__metadata__": metadata}, b""
    for name, shape, values in tensors:
        begin = len(data)
        data += struct.pack(f"<{len(values)}f", *values)
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [begin, len(data)]}
    text = json.dumps(header, indent=1).encode("utf-8")
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + data)


def main():
    tensors, metadata = read(sys.argv[1])
    doubled = [(name, shape, [2 * value for value in values]) for name, shape, values in tensors]
    write(sys.argv[2], reversed(doubled), metadata)


main()
