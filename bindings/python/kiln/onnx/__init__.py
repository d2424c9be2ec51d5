"""ONNX models: `graph, weights = kiln.onnx.load("model.onnx")`.

`Session` runs one at once: `kiln.onnx.Session("model.onnx")(x)`. Needs the packages onnx and onnx-ir.
"""

from __future__ import annotations

from kiln.onnx._convert import NeedsValues
from kiln.onnx._model import VARIANTS, Model, Session, load

__all__ = ["VARIANTS", "Model", "NeedsValues", "Session", "load"]
