"""Ops without a function of ours, through the bodies that ONNX itself gives them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import onnx
import onnx_ir as ir

from kiln.onnx import _registry
from kiln.onnx._node import Node
from kiln.onnx._types import Size, onnx_type
from kiln.onnx._values import Tensor


def _type(tensor: Tensor | None) -> bytes:
    if tensor is None:
        return b""
    def size(each: Size) -> int | str:
        return each if isinstance(each, int) else str(each)
    made = onnx.helper.make_tensor_type_proto(onnx_type(tensor.dtype).value, [size(each) for each in tensor.shape])
    return bytes(made.SerializeToString())


def _fitting(versions: Sequence[int], version: int) -> int:
    """The newest body that uses ops of this version, or the oldest one there is."""
    return max((each for each in versions if each <= version), default=min(versions))


def body(node: Node, inputs: Sequence[Tensor | None]) -> ir.Function | None:
    """The op as a function of other ops, for inputs of these types; None where ONNX has none."""
    domain = "" if node.domain == "ai.onnx" else node.domain
    try:
        schema: Any = onnx.defs.get_schema(node.op, node.version, domain)
    except onnx.defs.SchemaError:
        return None
    proto = onnx.FunctionProto()
    if schema.has_function:
        version = _fitting(schema.function_opset_versions, node.version)
        proto.ParseFromString(schema.get_function_with_opset_version(version))
    elif schema.has_context_dependent_function:
        told = onnx.NodeProto(op_type=node.op, domain=domain, name=node.name)
        told.input.extend("" if tensor is None else f"input{i}" for i, tensor in enumerate(inputs))
        told.output.extend(output.name or "" for output in node.ir.outputs)
        told.attribute.extend(ir.serde.serialize_attribute(attr) for attr in node.resolved.values())
        version = _fitting(schema.context_dependent_function_opset_versions, node.version)
        proto.ParseFromString(schema.get_context_dependent_function_with_opset_version(
            version, told.SerializeToString(), [_type(tensor) for tensor in inputs]))
    else:
        return None
    if not proto.node:
        return None  # it has one for types that tell more
    for name, attribute in schema.attributes.items():  # what the node leaves out has the schema's default
        if name not in node.resolved and attribute.default_value.name:
            node.resolved[name] = ir.serde.deserialize_attribute(attribute.default_value)
    made = {output for inner in proto.node for output in inner.output}
    for output in proto.output:  # bodies leave out what the node does not want, and onnx-ir wants all outputs made
        if output not in made and output not in proto.input:
            proto.node.append(onnx.helper.make_node("Constant", [], [output], value_int=0))
    if not any(each.domain == "" for each in proto.opset_import):
        proto.opset_import.append(onnx.helper.make_opsetid("", node.frame.versions.get("", _registry.NEWEST)))
    return ir.serde.deserialize_function(proto)
