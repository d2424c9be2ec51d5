"""Arithmetic on what is known when a model is read: as ONNX's own, and of sizes for all values of their symbols."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper
from onnx.reference import ReferenceEvaluator

import kiln
import kiln.onnx

pytestmark = pytest.mark.fast

INTS, FEW, BOOLS = np.array([7, -7, 3, 0]), np.array([2, 3, -4, 5]), np.array([True, False, True, False])
FLOATS = np.array([1.5, -2.5, 0.25, 9], np.float32)
CASES: list[tuple[str, list[Any], dict[str, Any]]] = [
    *((op, [INTS, FEW], {}) for op in ("Add", "Sub", "Mul", "Div", "Mod", "Min", "Max", "Equal", "Less", "Greater",
                                       "LessOrEqual", "GreaterOrEqual")),
    *((op, [FLOATS, FLOATS[::-1].copy()], {}) for op in ("Add", "Div", "Max")),
    *((op, [INTS], {}) for op in ("Neg", "Abs", "Identity", "Relu")),
    *((op, [FLOATS], {}) for op in ("Floor", "Ceil", "Round", "Neg")),
    *((op, [BOOLS, BOOLS[::-1].copy()], {}) for op in ("And", "Or", "Xor")),
    ("Not", [BOOLS], {}), ("Where", [BOOLS, INTS, FEW], {}), ("Cast", [FLOATS], {"to": 7}), ("Cast", [INTS], {"to": 1}),
    ("Cast", [INTS], {"to": 9}), ("CastLike", [INTS, FLOATS], {}), ("Concat", [INTS, FEW], {"axis": 0}),
    ("Mod", [INTS, FEW], {"fmod": 1}), ("Gather", [INTS, np.array([-1, 0])], {}), ("Gather", [INTS, np.array(2)], {}),
    ("Slice", [INTS, np.array([1]), np.array([3])], {}),
    ("Slice", [INTS, np.array([-1]), np.array([-99]), np.array([0]), np.array([-1])], {}),
    ("Squeeze", [INTS], {}), ("Squeeze", [INTS.reshape(1, 4), np.array([0])], {}), ("Squeeze", [INTS.reshape(1, 4, 1)], {}),
    ("Unsqueeze", [INTS, np.array([0, -1])], {}), ("Reshape", [INTS, np.array([2, -1])], {}), ("Flatten", [INTS], {"axis": 0}),
    ("Transpose", [INTS.reshape(2, 2)], {}), ("Range", [np.array(1), np.array(9), np.array(3)], {}),
    ("Range", [np.float32(5), np.float32(0), np.float32(-1.5)], {}), ("ConstantOfShape", [np.array([3])], {}),
    ("Expand", [np.array([[5]]), np.array([2, 3])], {}), ("Tile", [FEW, np.array([2])], {}),
    *((op, [INTS.reshape(2, 2)], {"keepdims": keep}) for op in ("ReduceSum", "ReduceProd", "ReduceMax", "ReduceMin")
      for keep in (0, 1)),
    ("ReduceSum", [INTS.reshape(2, 2), np.array([1])], {"keepdims": 0}), ("Shape", [FLOATS.reshape(2, 2)], {"start": -1}),
    ("Size", [FLOATS], {})]


@pytest.mark.parametrize("op, inputs, attributes", CASES, ids=lambda each: each if isinstance(each, str) else "")
def test_numbers_are_folded_as_onnx_computes_them(op: str, inputs: list[Any], attributes: dict[str, Any],
                                                   context: kiln.Context) -> None:
    names = [f"x{i}" for i in range(len(inputs))]
    graph = helper.make_graph([helper.make_node(op, names, ["y"], **attributes)], "g", [], [
        helper.make_tensor_value_info("y", 1, None)], [numpy_helper.from_array(np.asarray(array), name) for name, array in
                                                       zip(names, inputs, strict=True)])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)])
    wanted, = ReferenceEvaluator(model).run(None, {})
    made, weights = kiln.onnx.load(model, context=context)
    assert not weights and made.outputs[0].node.kind == "constant"
    got = np.asarray(made.outputs[0].node.constant)
    assert got.dtype == wanted.dtype and got.shape == wanted.shape
    np.testing.assert_array_equal(got, wanted)


def sized(nodes: list[tuple[str, list[str], dict[str, Any]]], weights: dict[str, Any], context: kiln.Context) -> str:
    """What is known of the last node's output, of x [n, m]: its elements, or "" where they are computed."""
    made = [helper.make_node(op, inputs, [f"t{i}"], **attributes) for i, (op, inputs, attributes) in enumerate(nodes)]
    last = f"t{len(nodes) - 1}"
    graph = helper.make_graph([helper.make_node("Shape", ["x"], ["s"]), *made, helper.make_node("Expand", ["one", last], ["y"])],
                              "g", [helper.make_tensor_value_info("x", 1, ["n", "m"])],
                              [helper.make_tensor_value_info("y", 1, None)],
                              [numpy_helper.from_array(np.asarray(array), name) for name, array in
                               {"one": np.ones((1, 1), np.float32), **weights}.items()])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)])
    try:
        loaded, _ = kiln.onnx.load(model, context=context)
    except kiln.Unimplemented as error:
        assert "has to be known" in str(error)
        return ""
    return ", ".join(str(size) for size in loaded.outputs[0].shape)


@pytest.mark.parametrize("nodes, weights, wanted", [
    ([("Add", ["s", "k"], {})], {"k": [1, 2]}, "n + 1, m + 2"),
    ([("Mul", ["s", "s"], {})], {}, "n*n, m*m"),
    ([("Div", ["s", "k"], {})], {"k": [2, 4]}, "n // 2, m // 4"),
    ([("Sub", ["s", "k"], {}), ("Div", ["t0", "l"], {})], {"k": [1, 1], "l": [2, 2]}, ""),  # towards 0, which is not down
    ([("Div", ["k", "s"], {})], {"k": [12, 12]}, "12 // n, 12 // m"),
    ([("Div", ["s", "k"], {}), ("Neg", ["t0"], {})], {"k": [-2, -4]}, "n // 2, m // 4"),  # towards 0, not down
    ([("Neg", ["s"], {}), ("Div", ["t0", "k"], {}), ("Neg", ["t1"], {})], {"k": [2, 3]}, "n // 2, m // 3"),
    ([("Neg", ["s"], {}), ("Div", ["t0", "k"], {})], {"k": [-2, -3]}, "n // 2, m // 3"),
    ([("Sub", ["s", "k"], {}), ("Div", ["t0", "l"], {})], {"k": [1, 1], "l": [-2, -2]}, ""),
    ([("Max", ["s", "k"], {})], {"k": [4, 0]}, "max(4, n), m"),
    ([("Neg", ["s"], {}), ("Abs", ["t0"], {})], {}, ""),
    ([("Gather", ["s", "k"], {})], {"k": [1, 0]}, "m, n"),
    ([("Slice", ["s", "k", "l"], {}), ("Concat", ["t0", "t0"], {"axis": 0})], {"k": [-1], "l": [99]}, "m, m"),
    ([("Equal", ["s", "k"], {}), ("Where", ["t0", "l", "s"], {})], {"k": [-1, -1], "l": [1, 1]}, "n, m"),
    ([("Equal", ["s", "k"], {}), ("Where", ["t0", "l", "s"], {})], {"k": [1, 1], "l": [1, 1]}, ""),  # is n 1?
    ([("Equal", ["s", "s"], {}), ("Where", ["t0", "k", "s"], {})], {"k": [5, 6]}, "5, 6"),
    ([("Less", ["k", "s"], {}), ("Where", ["t0", "s", "k"], {})], {"k": [-2, -3]}, "n, m"),
    ([("ReduceProd", ["s"], {"keepdims": 1}), ("Concat", ["t0", "k"], {"axis": 0})], {"k": [3]}, "m*n, 3"),
    ([("Cast", ["s"], {"to": 6}), ("Cast", ["t0"], {"to": 7})], {}, "n, m"),
    ([("Sub", ["s", "k"], {}), ("Mod", ["t0", "l"], {})], {"k": [5, 1], "l": [3, 3]}, "(n + 1) % 3, (m + 2) % 3"),
    ([("Sub", ["s", "k"], {}), ("Mod", ["t0", "l"], {"fmod": 1})], {"k": [5, 1], "l": [3, 3]}, ""),  # of the sign of n - 5
    ([("Cast", ["s"], {"to": 1}), ("Cast", ["t0"], {"to": 7})], {}, ""),  # f32 does not hold all sizes
    ([("Cast", ["s"], {"to": 1}), ("Mul", ["t0", "k"], {}), ("Floor", ["t1"], {}), ("Cast", ["t2"], {"to": 7})],
     {"k": np.float32([1.5, 1.5])}, ""),
    ([("Reshape", ["s", "k"], {}), ("Transpose", ["t0"], {}), ("Flatten", ["t1"], {"axis": 0}), ("Squeeze", ["t2", "l"], {})],
     {"k": [1, 2], "l": [0]}, "n, m")])
def test_sizes_are_folded_where_they_hold_for_all(nodes: list[Any], weights: dict[str, Any], wanted: str,
                                                  context: kiln.Context) -> None:
    assert sized(nodes, {name: np.asarray(array) for name, array in weights.items()}, context) == wanted


def test_a_slice_ends_at_a_size_by_a_number_below_zero(context: kiln.Context) -> None:
    """All but the last half, rounded towards 0."""
    nodes = [helper.make_node("Shape", ["x"], ["s"]), helper.make_node("Div", ["s", "by"], ["e"]),
             helper.make_node("Slice", ["x", "b", "e"], ["y"])]
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", 1, ["n"])],
                              [helper.make_tensor_value_info("y", 1, None)],
                              [numpy_helper.from_array(np.array([each]), name) for name, each in (("by", -2), ("b", 0))])
    session = kiln.onnx.Session(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)]), context=context,
                                backend="cpu")
    for n in range(8):
        x = np.arange(n, dtype=np.float32)
        np.testing.assert_array_equal(session(x)[0], x[:-(n // 2)])


def test_a_slice_may_end_where_floats_of_a_size_say(context: kiln.Context) -> None:
    """What f32 does not hold of all sizes is no size of a program's, but a run computes it."""
    nodes = [helper.make_node("Shape", ["x"], ["s"]), helper.make_node("Cast", ["s"], ["f"], to=1),
             helper.make_node("Mul", ["f", "by"], ["m"]), helper.make_node("Floor", ["m"], ["d"]),
             helper.make_node("Cast", ["d"], ["e"], to=7), helper.make_node("Slice", ["x", "b", "e"], ["y"])]
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", 1, ["n"])],
                              [helper.make_tensor_value_info("y", 1, None)],
                              [numpy_helper.from_array(np.float32([0.75]), "by"), numpy_helper.from_array(np.array([1]), "b")])
    session = kiln.onnx.Session(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)]), context=context,
                                backend="cpu")
    for n in range(8):
        x = np.arange(n, dtype=np.float32)
        np.testing.assert_array_equal(session(x)[0], x[1:n * 3 // 4])


def test_a_range_of_floats_may_end_at_a_size(context: kiln.Context) -> None:
    nodes = [helper.make_node("Shape", ["x"], ["s"]), helper.make_node("Squeeze", ["s"], ["m"]),
             helper.make_node("Cast", ["m"], ["end"], to=1), helper.make_node("Range", ["one", "end", "step"], ["y"])]
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", 1, ["n"])],
                              [helper.make_tensor_value_info("y", 1, None)],
                              [numpy_helper.from_array(np.float32(each), name) for name, each in (("one", 1), ("step", 2))])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)])
    session = kiln.onnx.Session(model, context=context)
    for n in (6, 5, 1):
        (y,) = session(np.zeros(n, np.float32))
        assert y.dtype == np.float32 and y.tolist() == list(range(1, n, 2))
