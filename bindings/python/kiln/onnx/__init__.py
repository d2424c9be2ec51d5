"""ONNX models: `graph, weights = kiln.onnx.load("model.onnx")`.

`Session` runs one at once: `kiln.onnx.Session("model.onnx")(x)`. Needs the packages onnx and onnx-ir.
"""

from __future__ import annotations

from collections.abc import Sequence

from kiln.onnx._convert import NeedsValues
from kiln.onnx._model import VARIANTS, Model, Session, load



def main(arguments: Sequence[str]) -> int:
    """What `python -m kiln` does with ONNX files."""
    from kiln.onnx.command import main as command
    return command(arguments)


__all__ = ["VARIANTS", "Model", "NeedsValues", "Session", "load", "main"]
