"""The page of what became of which model, docs/torch_models.md: written by `python -m zoo --write`."""

import math
import pathlib
import re

from .architectures import DYNAMIC, MODELS, TRAINED

PATH = pathlib.Path(__file__).resolve().parents[5] / "docs/torch_models.md"
HEAD = """# Models by torch.compile

What becomes of models of others, in reduced configurations with random weights, on a CPU: transformers, torchvision and
timm as `bindings/python/requirements-torch.txt` pins them, and some by hand. Written by `python -m zoo --write` in
`bindings/python/tests/torch_compile`; `test_zoo.py` there holds each line to what it finds.

- graphs: that Dynamo and AOTAutograd made; in training the forward and the backward pass.
- ops: of ATen's, views apart, that run in Kiln; in how many programs, and these in how many different kernels.
- left: ops that stayed in torch, how often, and why.
- error: the largest difference from eager beside the largest element of the same result or gradient, as the power of ten
  above it; another processor may have the next one.

A graph breaks where Dynamo ends it; in detection that is where boxes decide sizes.
"""
TITLES = {"eval": "In eval", "train": "A training step: results and the gradients of all parameters",
          "dynamic": "Three sizes by one compilation"}
COLUMNS = ("model", "kind", "graphs", "ops", "programs", "kernels", "left in torch", "error")
NAMES = {"eval": tuple(MODELS), "train": TRAINED, "dynamic": DYNAMIC}


def bound(error):
    return f"1e{math.ceil(math.log10(max(error, 1e-9)))}"


def line(name, told):
    left = "; ".join(f"{count} {op} ({reason})" for (op, reason), count in sorted(told.left.items()))
    cells = (name, MODELS[name].kind, told.graphs, told.ops, told.programs, told.kernels, left, bound(told.error))
    return "| " + " | ".join(str(cell) for cell in cells) + " |"


def write(found):
    """With new lines, by section and model; those of other models stay."""
    parts = [HEAD.rstrip()]
    for section, title in TITLES.items():
        lines = {**_lines(section), **found.get(section, {})}
        parts += [f"\n## {title}\n", "| " + " | ".join(COLUMNS) + " |", "|" + "---|" * len(COLUMNS),
                  *(lines[name] for name in NAMES[section] if name in lines)]
    PATH.write_text("\n".join(parts) + "\n")


def _lines(section):
    if not PATH.exists():
        return {}
    part = PATH.read_text().split(f"## {TITLES[section]}\n")[1].split("\n## ")[0]
    return {line.split(" | ")[0].strip("| "): line for line in part.splitlines()[3:] if line[:2] == "| "}


def read(section):
    """The cells of the lines that the page has, by model."""
    return {name: dict(zip(COLUMNS, cells(line))) for name, line in _lines(section).items()}


def cells(line):
    return [cell.strip() for cell in line.strip("|").split(" | ")]


def ops(cell):
    """What stayed without the reasons."""
    return re.sub(r" \([^;]*\)", "", cell)
