"""Stores the weights of a trained model in fewer bits: python3 quantize.py MODEL FORM FOLDER

Reads the graph and the f32 weights of MODEL (digits, chars) and writes graph.json and
weights.safetensors to FOLDER. Each weight of two dims and more becomes, in FORM

  f16, bf16  the same numbers, rounded to nearest even; the graph converts them
  int8       whole numbers from -127 to 127, with an f32 scale for each output channel
  int4       whole numbers from 0 to 15, two a byte, with an f16 scale and the number that stands
             for 0 for each 32 neighbours of an output channel

Norms, biases and statistics stay f32. Nothing is trained again, nothing is drawn at random: the
same files come from the same weights everywhere. Needs the standard library alone.
"""

import json
import struct
import sys
from array import array
from pathlib import Path

from graphs import Graph
from tensor_files import bfloat, half, read_safetensors, write_safetensors

MODELS = Path(__file__).resolve().parent
GROUP = 32


def int8(values, channels):
    """The numbers, and a scale for each channel."""
    size = len(values) // channels
    numbers, scales = array("b"), array("f")
    for channel in range(channels):
        row = values[channel * size:(channel + 1) * size]
        scales.append(max(map(abs, row)) / 127 or 1)
        numbers.extend(round(value / scales[-1]) for value in row)
    return numbers.tobytes(), scales.tobytes()


def int4(values):
    """Two numbers a byte, f16 scales and zero points, for each GROUP values."""
    numbers, scales, zeros = bytearray(), bytearray(), bytearray()
    for begin in range(0, len(values), GROUP):
        group = values[begin:begin + GROUP]
        low, high = min(*group, 0), max(*group, 0)
        scale = half([(high - low) / 15 or 1])
        step = struct.unpack("<e", scale)[0]
        zero = round(-low / step)
        steps = [min(max(round(value / step) + zero, 0), 15) for value in group]
        numbers.extend(a | b << 4 for a, b in zip(steps[::2], steps[1::2]))
        scales += scale
        zeros.append(zero)
    return bytes(numbers), bytes(scales), bytes(zeros)


def stored(name, shape, values, form):
    """The tensors that stand for a weight, the op that makes it of them, and its attributes."""
    if form in ("f16", "bf16"):
        data = half(values) if form == "f16" else bfloat(values)
        return {f"{name}.stored": (form.upper(), shape, data)}, "convert", {"dtype": "f32"}
    if form == "int8":
        numbers, scales = int8(values, shape[0])
        return ({f"{name}.stored": ("I8", shape, numbers), f"{name}.scales": ("F32", shape[:1], scales)},
                "dequantize", {})
    numbers, scales, zeros = int4(values)
    packed, groups = shape[:-1] + [shape[-1] // 2], shape[:-1] + [shape[-1] // GROUP]
    return ({f"{name}.stored": ("U8", packed, numbers), f"{name}.scales": ("F16", groups, scales),
             f"{name}.zeros": ("U8", groups, zeros)},
            "dequantize", {"bits": 4, "signed": False, "axis": len(shape) - 1, "group": GROUP})


def main(model, form, folder):
    if form not in ("f16", "bf16", "int8", "int4"):
        sys.exit(f"quantize.py: unknown form '{form}'; expected f16, bf16, int8 or int4")
    members = json.loads((MODELS / model / "graph.json").read_text(encoding="utf-8"))
    graph = Graph(members["symbols"])
    tensors = {}
    for name, (shape, values) in read_safetensors(MODELS / model / "weights.safetensors").items():
        if len(shape) < 2:
            tensors[name] = "F32", shape, values.tobytes()
            continue
        parts, op, attrs = stored(name, shape, values, form)
        tensors.update(parts)
        graph.node(name, op, *parts, **attrs)
    members["nodes"] = graph.members["nodes"] + members["nodes"]
    members["parameters"] = [
        {"name": name, "type": {"dtype": dtype.lower(), "shape": shape}} for name, (dtype, shape, _) in tensors.items()]
    graph.members.update((member, members[member]) for member in graph.members if member in members)
    folder.mkdir(parents=True, exist_ok=True)
    graph.write(folder / "graph.json")
    write_safetensors(folder / "weights.safetensors", tensors)


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    main(sys.argv[1], sys.argv[2], Path(sys.argv[3]))
