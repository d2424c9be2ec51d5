"""Reads and writes safetensors files, by Python's standard library alone."""

import json
import struct
from array import array


def read_safetensors(path):
    """name -> (shape, floats), of a file of f32."""
    data = path.read_bytes()
    size = struct.unpack("<Q", data[:8])[0]
    tensors = {}
    for name, entry in json.loads(data[8:8 + size]).items():
        if name == "__metadata__":
            continue
        begin, end = (8 + size + at for at in entry["data_offsets"])
        tensors[name] = entry["shape"], array("f", data[begin:end])
    return tensors


def write_safetensors(path, tensors):
    """tensors: name -> (safetensors' dtype, shape, bytes); the widest elements first, so that each is aligned."""
    widths = {"I64": 8, "F32": 4, "F16": 2, "BF16": 2, "I8": 1, "U8": 1}
    header, at = {}, 0
    for name, (dtype, shape, data) in sorted(tensors.items(), key=lambda item: (-widths[item[1][0]], item[0])):
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [at, at + len(data)]}
        at += len(data)
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + b"".join(tensors[name][2] for name in header))


def half(values):
    return struct.pack(f"<{len(values)}e", *values)


def bfloat(values):
    """The upper halves of f32, rounded to nearest even; they are finite."""
    bits = array("I", array("f", values).tobytes())
    return array("H", (bit + 0x7fff + (bit >> 16 & 1) >> 16 for bit in bits)).tobytes()
