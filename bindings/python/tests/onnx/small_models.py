"""Small models, as the tests write them.

Not `graphs`: the models' tests import a module of that name, in the same process.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

F32, I64, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL


def value(name: str, shape: Any, type_: int = F32) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, type_, shape)


def model(nodes: list[onnx.NodeProto], inputs: list[onnx.ValueInfoProto], outputs: list[str],
          weights: dict[str, np.ndarray[Any, Any]] | None = None, opset: int = 21, **more: Any) -> onnx.ModelProto:
    graph = helper.make_graph(nodes, "graph", inputs, [value(name, None) for name in outputs],
                              [numpy_helper.from_array(array, name) for name, array in (weights or {}).items()])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], **more)


def branch(name: str, nodes: list[onnx.NodeProto], outputs: list[str], inputs: Any = ()) -> onnx.GraphProto:
    return helper.make_graph(nodes, name, list(inputs), [value(each, None) for each in outputs])


node = helper.make_node
