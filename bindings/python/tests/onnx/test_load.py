"""What reading a model keeps, folds, specialises and refuses."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest
from small_models import BOOL, F32, I64, branch, model, node, value
from onnx import TensorProto, helper, numpy_helper

import kiln
import kiln.onnx

pytestmark = pytest.mark.fast


def test_names_are_kept(context: kiln.Context) -> None:
    w = np.ones((4, 3), np.float32)
    made = model([node("MatMul", ["in:0", "layer/w"], ["h"]), node("Relu", ["h"], ["out:0"])], [value("in:0", ["n", 4])],
                 ["out:0"], {"layer/w": w})
    graph, weights = kiln.onnx.load(made, context=context)
    told = graph.describe()
    assert [each["name"] for each in told["inputs"]] == ["in.0"]  # Kiln's names have no colons
    assert [each["name"] for each in told["outputs"]] == ["out.0"]
    assert list(weights) == ["layer/w"] and weights["layer/w"] is not w
    assert told["inputs"][0]["shape"] == ["n", 4]
    read = json.loads(graph.to_json())
    assert "MatMul h" in json.dumps(read), "nodes tell what they are made of"


def test_sizes_that_follow_from_shapes_are_folded(context: kiln.Context) -> None:
    """[n, 6] as [n, 2, 3] as [3 n, 2], by way of Shape, Gather, Concat, Mul."""
    nodes = [node("Shape", ["x"], ["s"]), node("Gather", ["s", "zero"], ["n"]), node("Unsqueeze", ["n", "axis"], ["n1"]),
             node("Mul", ["n1", "three"], ["n3"]), node("Concat", ["n3", "two"], ["t"], axis=0),
             node("Reshape", ["x", "t"], ["y"])]
    weights = {"zero": np.array(0), "axis": np.array([0]), "three": np.array([3]), "two": np.array([2])}
    graph, left = kiln.onnx.load(model(nodes, [value("x", ["n", 6])], ["y"], weights), context=context)
    assert not left
    assert [each.op for each in graph.nodes if each.kind == "op"] == ["reshape"]
    assert [str(size) for size in graph.outputs[0].shape] == ["3*n", "2"]


def test_a_size_that_is_not_minus_one_is_known_to_be_none(context: kiln.Context) -> None:
    """What torch writes for expand: where(shape == -1, 1, shape)."""
    nodes = [node("Shape", ["x"], ["s"]), node("Equal", ["s", "minus"], ["e"]), node("Where", ["e", "one", "s"], ["t"]),
             node("Expand", ["b", "t"], ["y"])]
    weights = {"minus": np.array([-1]), "one": np.array([1, 1]), "b": np.ones((1, 4), np.float32)}
    graph, _ = kiln.onnx.load(model(nodes, [value("x", ["n", 4])], ["y"], weights), context=context)
    assert [str(size) for size in graph.outputs[0].shape] == ["n", "4"]


def test_an_input_that_decides_a_size_specialises(context: kiln.Context) -> None:
    made = model([node("Cast", ["shape"], ["s"], to=I64), node("Reshape", ["x", "s"], ["y"])],
                 [value("x", [6]), value("shape", [2], TensorProto.INT32)], ["y"])
    with pytest.raises(kiln.onnx.NeedsValues, match=r"\[Reshape\] node 'y': .*'shape'") as error:
        kiln.onnx.load(made, context=context)
    assert error.value.names == {"shape"}
    loaded = kiln.onnx.load(made, values={"shape": np.array([2, 3], np.int32)}, context=context)
    assert loaded.graph.outputs[0].shape == (2, 3)
    assert [each.name for each in loaded.graph.inputs] == ["x"] and list(loaded.specialised) == ["shape"]

    session = kiln.onnx.Session(made, context=context, backend="cpu")
    x = np.arange(6, dtype=np.float32)
    for shape in ([2, 3], [3, 2], [2, 3]):
        assert np.asarray(session(x, np.array(shape, np.int32))[0]).shape == tuple(shape)
    assert session.report == {"deciders": ["shape"], "variants": [{"shape": [2, 3]}, {"shape": [3, 2]}]}


def test_eight_values_are_the_most(context: kiln.Context) -> None:
    made = model([node("Expand", ["x", "shape"], ["y"])], [value("x", [1]), value("shape", [1], I64)], ["y"])
    session, x = kiln.onnx.Session(made, context=context, backend="cpu"), np.ones(1, np.float32)
    for size in range(1, kiln.onnx.VARIANTS + 1):
        assert np.asarray(session(x, np.array([size]))[0]).shape == (size,)
    with pytest.raises(kiln.OutOfRange, match="shape.*8 different values"):
        session(x, np.array([99]))
    session(x, np.array([3]))


def test_a_size_that_is_computed_from_data_is_refused(context: kiln.Context) -> None:
    made = model([node("ReduceSum", ["x"], ["s"], keepdims=0), node("Exp", ["s"], ["e"]), node("Cast", ["e"], ["k"], to=I64),
                  node("Reshape", ["x", "k"], ["y"])], [value("x", [4])], ["y"])
    with pytest.raises(kiln.Unimplemented, match="'shape' has to be known when the model is read, and is computed"):
        kiln.onnx.load(made, context=context)


def test_a_refusal_names_node_op_domain_and_version(context: kiln.Context) -> None:
    made = model([node("GridSample", ["x", "g"], ["y"], name="warp", mode="spline")],
                 [value("x", [1, 1, 4, 4]), value("g", [1, 2, 2, 2])], ["y"])
    with pytest.raises(kiln.Unimplemented) as error:
        kiln.onnx.load(made, context=context)
    assert str(error.value).startswith("[GridSample] node 'warp': mode 'spline' is not supported, one of linear, ")
    assert str(error.value).endswith("was expected (ai.onnx, opset 21)")


def test_what_kiln_refuses_names_the_node_too(context: kiln.Context) -> None:
    made = model([node("Add", ["x", "y"], ["z"], name="plus")], [value("x", [2]), value("y", [3])], ["z"])
    with pytest.raises(kiln.TypeMismatch, match=r"^\[Add\] node 'plus': .*\(ai.onnx, opset 21\)$"):
        kiln.onnx.load(made, context=context)


@pytest.mark.parametrize("made, message", [
    (model([node("Mystery", ["x"], ["y"])], [value("x", [1])], ["y"]), r"\[Mystery\] node 'y': there is no such op"),
    (model([node("Relu", ["x"], ["y"], slope=1.0)], [value("x", [1])], ["y"]), "attribute 'slope' is not supported here"),
    (model([node("Relu", ["x"], ["y"])], [value("x", [1], TensorProto.STRING)], ["y"]), "input 'x' is of STRING"),
    (model([node("Relu", ["x"], ["y"])], [value("x", None)], ["y"]), "input 'x' has no shape"),
    (model([node("Relu", ["x"], ["y"])], [value("x", [1])], ["y"], opset=99), "opset 99"),
    (model([node("SequenceConstruct", ["x"], ["y"])], [value("x", [1])], ["y"]),
     r"\[SequenceConstruct\] node 'y': Kiln has tensors alone"),
    (model([node("Concat", ["x", "x"], ["y"])], [value("x", [1])], ["y"]), "axis"),
    (model([node("If", ["x"], ["y"], then_branch=1, else_branch=2)], [value("x", [], BOOL)], ["y"]),
     r"\[If\] node 'y': attribute 'then_branch' is no graph"),
    (model([node("Range", ["a", "a", "zero"], ["y"])], [], ["y"], {"a": np.array(1), "zero": np.array(0)}),
     r"\[Range\] node 'y': .*zero"),
    (model([node("Gather", ["a", "b"], ["y"])], [], ["y"], {"a": np.array([1]), "b": np.array(5)}),
     r"\[Gather\] node 'y': index 5 is out of bounds"),
    (model([node("Conv", ["x", "x"], ["y"], pads=[1])], [value("x", [1, 1, 3, 3])], ["y"]), r"\[Conv\] node 'y'"),
    (model([node("Shape", [], ["y"])], [], ["y"]), r"\[Shape\] node 'y'")])
def test_what_is_refused(made: onnx.ModelProto, message: str, context: kiln.Context) -> None:
    with pytest.raises(kiln.Error, match=message):
        kiln.onnx.load(made, context=context)


@pytest.mark.parametrize("type_", [np.int32, np.int64])
def test_sizes_are_of_the_type_that_they_are_cast_to(type_: Any, run: Callable[..., Any]) -> None:
    """Those that are numbers, expressions, ranges up to them, and what branches take from outside."""
    to = helper.np_dtype_to_tensor_dtype(np.dtype(type_))
    then = branch("then", [node("Add", ["both", "k"], ["a"])], ["a"])
    other = branch("else", [node("Identity", ["both"], ["b"])], ["b"])
    nodes = [node("Shape", ["x"], ["s"]), node("Cast", ["s"], ["both"], to=to), node("Gather", ["both", "zero"], ["n"]),
             node("Gather", ["both", "one"], ["four"]), node("Range", ["k", "n", "k"], ["range"]),
             node("If", ["p"], ["y"], then_branch=then, else_branch=other)]
    made = model(nodes, [value("x", ["n", 4]), value("p", [], BOOL)], ["both", "n", "four", "range", "y"],
                 {"zero": np.array(0), "one": np.array(1), "k": np.array(1, type_)})
    results = run(made, np.ones((3, 4), np.float32), np.array(True))
    assert [each.dtype for each in results] == [type_] * 5
    assert [each.tolist() for each in results] == [[3, 4], 3, 4, [1, 2], [4, 5]]


def test_a_range_of_small_integers(run: Callable[..., Any]) -> None:
    """As many as i16 holds no number of."""
    begin, end = np.array(-30000, np.int16), np.array(30000, np.int16)
    made = model([node("Range", ["a", "b", "c"], ["y"])], [], ["y"], {"a": begin, "b": end, "c": np.array(1, np.int16)})
    y, = run(made)
    assert y.dtype == np.int16
    np.testing.assert_array_equal(y, np.arange(-30000, 30000))


def test_without_axes_squeeze_keeps_what_has_no_dims_of_size_one(run: Callable[..., Any]) -> None:
    assert run(model([node("Squeeze", ["x"], ["y"])], [value("x", [2, 3])], ["y"]), np.ones((2, 3), np.float32))[0].shape == (2, 3)


def test_a_model_that_is_not_there_is_an_error_of_kilns_and_of_pythons(tmp_path: Path, context: kiln.Context) -> None:
    with pytest.raises(FileNotFoundError, match="nothing.onnx") as caught:
        kiln.onnx.load(tmp_path / "nothing.onnx", context=context)
    assert isinstance(caught.value, kiln.FileNotFound) and caught.value.code == "io"
    with pytest.raises(kiln.FileError):
        kiln.onnx.load(tmp_path, context=context)


@pytest.mark.parametrize("version", [1, 6])
def test_an_opset_that_is_too_old(version: int, context: kiln.Context) -> None:
    made = model([node("Sqrt", ["x"], ["a"]), node("Add", ["a", "x"], ["y"])], [value("x", [1])], ["y"], opset=version)
    with pytest.raises(kiln.Unimplemented, match=f"the model is of opset {version}, 7 to 28 were expected"):
        kiln.onnx.load(made, context=context)
    same_since = model([node("Not", ["x"], ["y"])], [value("x", [1], BOOL)], ["y"], opset=version)
    assert len(kiln.onnx.load(same_since, context=context).graph.nodes) == 2


def test_an_empty_file_is_no_model(tmp_path: Path, context: kiln.Context) -> None:
    (tmp_path / "m.onnx").touch()
    for source in (tmp_path / "m.onnx", b""):
        with pytest.raises(kiln.Corrupt, match="this is no ONNX model: it says of no operator set"):
            kiln.onnx.load(source, context=context)


@pytest.mark.parametrize("source", [b"garbage\xff\xff", model([], [], ["y"]).SerializeToString()[:-3]])
def test_what_is_no_model(source: bytes, context: kiln.Context) -> None:
    with pytest.raises(kiln.Corrupt, match="this is no ONNX model"):
        kiln.onnx.load(source, context=context)


def test_weights_of_too_few_bytes(context: kiln.Context) -> None:
    made = model([node("Add", ["x", "w"], ["y"])], [value("x", [2])], ["y"], {"w": np.ones(2, np.float32)})
    made.graph.initializer[0].raw_data = b"abcd"
    with pytest.raises(kiln.TypeMismatch, match="the elements of 'w' cannot be read"):
        kiln.onnx.load(made, context=context)


def test_weights_of_four_bits_stay_so(run: Callable[..., Any], context: kiln.Context) -> None:
    numbers = np.arange(-8, 8).reshape(2, 8).astype(ml_dtypes.int4)
    scale, zero = np.array([0.5, 2.0], np.float32), np.array([1, -1]).astype(ml_dtypes.int4)
    made = model([node("DequantizeLinear", ["w", "s", "z"], ["d"], axis=0), node("MatMul", ["d", "x"], ["y"])],
                 [value("x", [8, 1])], ["y"], {"w": numbers, "s": scale, "z": zero})
    _, weights = kiln.onnx.load(made, context=context)
    assert weights["w"].dtype == np.uint8 and weights["w"].shape == (2, 4)
    x = np.arange(8, dtype=np.float32).reshape(8, 1)
    wanted = (numbers.astype(np.float32) - zero.astype(np.float32)[:, None]) * scale[:, None] @ x
    np.testing.assert_allclose(run(made, x)[0], wanted, rtol=1e-6)


# ---- nested graphs


def test_branches_take_what_they_use_from_outside(run: Callable[..., Any]) -> None:
    """Weights, constants of their own, and values whose sizes only a run tells."""
    then = branch("then", [node("Mul", ["x", "w"], ["a"]), node("Constant", [], ["c"], value_float=2.0),
                           node("Add", ["a", "c"], ["then_y"])], ["then_y"])
    other = branch("else", [node("Shape", ["x"], ["s"]), node("Expand", ["k", "s"], ["else_y"])], ["else_y"])
    made = model([node("If", ["p"], ["y"], then_branch=then, else_branch=other)],
                 [value("p", [], BOOL), value("x", ["n", 100])], ["y"],
                 {"w": np.arange(100, dtype=np.float32), "k": np.array([[7]], np.float32)})
    x = np.random.default_rng(0).standard_normal((3, 100)).astype(np.float32)
    np.testing.assert_allclose(run(made, np.array(True), x)[0], x * np.arange(100, dtype=np.float32) + 2, rtol=1e-6)
    np.testing.assert_array_equal(run(made, np.array(False), x)[0], np.full((3, 100), 7, np.float32))


def _loop(body: list[onnx.NodeProto], carried: list[Any], outputs: list[str]) -> onnx.GraphProto:
    return branch("body", body, outputs, [value("i", [], I64), value("go", [], BOOL),
                                          *(value(name, shape) for name, shape in carried)])


def test_a_loop_that_its_body_ends(run: Callable[..., Any]) -> None:
    body = _loop([node("Mul", ["v", "two"], ["v1"]), node("ReduceMax", ["v1"], ["m"], keepdims=0),
                  node("Less", ["m", "limit"], ["go1"])], [("v", ["n"])], ["go1", "v1"])
    made = model([node("Loop", ["", "start", "x"], ["y"], body=body)], [value("x", ["n"]), value("limit", [])], ["y"],
                 {"two": np.array(2, np.float32), "start": np.array(True)})
    x = np.array([1, 3], np.float32)
    np.testing.assert_array_equal(run(made, x, np.array(20, np.float32))[0], x * 8)


def test_a_loop_of_told_turns_stacks_elements(run: Callable[..., Any]) -> None:
    body = _loop([node("Add", ["v", "step"], ["v1"]), node("Identity", ["go"], ["go1"]), node("Mul", ["v1", "v1"], ["e"])],
                 [("v", [2])], ["go1", "v1", "e"])
    made = model([node("Loop", ["turns", "", "x"], ["y", "all"], body=body)],
                 [value("x", [2]), value("step", [2])], ["y", "all"], {"turns": np.array(3)})
    y, every = run(made, np.zeros(2, np.float32), np.array([1, 2], np.float32))
    np.testing.assert_array_equal(y, [3, 6])
    np.testing.assert_array_equal(every, [[1, 4], [4, 16], [9, 36]])


@pytest.mark.parametrize("turns", [100, 3, 0, -1])
def test_a_loop_that_its_body_ends_gives_elements_of_the_turns_that_it_had(turns: int, run: Callable[..., Any]) -> None:
    body = _loop([node("Add", ["v", "x"], ["v1"]), node("ReduceSum", ["v1"], ["t"], keepdims=0),
                  node("Less", ["t", "limit"], ["go1"]), node("Mul", ["v1", "v1"], ["e"])], [("v", ["n"])], ["go1", "v1", "e"])
    made = model([node("Loop", ["turns", "start", "x"], ["y", "all"], body=body), node("ReduceSum", ["all"], ["sum"], keepdims=0)],
                 [value("x", ["n"]), value("start", [], BOOL)], ["y", "all", "sum"],
                 {"turns": np.array(turns), "limit": np.array(20, np.float32)})
    for x in (np.array([1, 2], np.float32), np.ones(4, np.float32), np.array([30], np.float32)):
        for start in (True, False):
            state, elements = x, np.zeros((0, len(x)), np.float32)
            while start and len(elements) < turns and (not len(elements) or state.sum() < 20):
                state = state + x
                elements = np.append(elements, [state * state], 0)
            for got, wanted in zip(run(made, x, np.array(start)), (state, elements, elements.sum()), strict=True):
                np.testing.assert_array_equal(got, wanted)


def test_a_loop_that_its_body_ends_with_no_limit_gives_no_elements(context: kiln.Context) -> None:
    body = _loop([node("Less", ["v", "limit"], ["go1"]), node("Add", ["v", "v"], ["v1"])], [("v", [])], ["go1", "v1", "v"])
    for weights in ({}, {"turns": np.array(10 ** 6)}):
        made = model([node("Loop", ["turns" if weights else "", "", "x"], ["y", "all"], body=body, name="l")], [value("x", [])],
                     ["y", "all"], {**weights, "limit": np.array(20, np.float32)})
        with pytest.raises(kiln.Unimplemented, match=r"\[Loop\] node 'l': .* where M, .* is a number up to 4096"):
            kiln.onnx.load(made, context=context)


def test_branches_of_other_ranks_are_refused_by_name(context: kiln.Context) -> None:
    made = model([node("If", ["c"], ["y"], name="ranks", then_branch=branch("a", [node("ReduceSum", ["x"], ["s"], keepdims=0)], ["s"]),
                       else_branch=branch("b", [node("Neg", ["x"], ["r"])], ["r"]))],
                 [value("x", [2]), value("c", [], BOOL)], ["y"])
    with pytest.raises(kiln.Unimplemented, match=r"\[If\] node 'ranks': output 0 is f32\[\] of one branch and f32\[2\] of "):
        kiln.onnx.load(made, context=context)


def test_a_loop_whose_state_grows_is_unrolled(run: Callable[..., Any]) -> None:
    body = _loop([node("Cast", ["i"], ["f"], to=F32), node("Reshape", ["f", "one"], ["r"]),
                  node("Concat", ["v", "r"], ["v1"], axis=0), node("Identity", ["go"], ["go1"])], [("v", ["m"])],
                 ["go1", "v1"])
    made = model([node("Loop", ["turns", "", "x"], ["y"], body=body)], [value("x", [1])], ["y"],
                 {"turns": np.array(3), "one": np.array([1])})
    np.testing.assert_array_equal(run(made, np.array([9], np.float32))[0], [9, 0, 1, 2])


def test_a_scan_along_other_dims_and_backwards(run: Callable[..., Any]) -> None:
    body = branch("body", [node("Add", ["s", "e"], ["s1"]), node("Identity", ["s1"], ["o"])], ["s1", "o"],
                  [value("s", [2]), value("e", [2])])
    made = model([node("Scan", ["z", "x"], ["last", "y"], body=body, num_scan_inputs=1, scan_input_axes=[1],
                       scan_input_directions=[1], scan_output_axes=[1])], [value("z", [2]), value("x", [2, "n"])],
                 ["last", "y"])
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    last, y = run(made, np.zeros(2, np.float32), x)
    np.testing.assert_array_equal(last, x.sum(1))
    np.testing.assert_array_equal(y, np.cumsum(x[:, ::-1], 1))


def test_functions_of_the_model(run: Callable[..., Any]) -> None:
    """With attributes that callers tell, a default, and an input that may be absent."""
    inner = helper.make_function("my", "Scaled", ["x"], ["y"], [
        helper.make_node("LeakyRelu", ["x"], ["y"])], [helper.make_opsetid("", 21)], ["alpha"])
    inner.node[0].attribute.add(name="alpha", ref_attr_name="alpha", type=onnx.AttributeProto.FLOAT)
    made = model([node("Scaled", ["x"], ["a"], domain="my", alpha=0.5), node("Scaled", ["x"], ["b"], domain="my")],
                 [value("x", [2])], ["a", "b"], functions=[inner])
    made.opset_import.add(domain="my", version=1)
    a, b = run(made, np.array([-1, 2], np.float32))
    np.testing.assert_allclose(a, [-0.5, 2])
    np.testing.assert_allclose(b, [-0.01, 2])


def _called(first: str, functions: list[onnx.FunctionProto]) -> onnx.ModelProto:
    """A model of one call of a function of the domain "my"."""
    made = model([node(first, ["x"], ["y"], domain="my")], [value("x", [2])], ["y"], functions=functions)
    made.opset_import.add(domain="my", version=1)
    return made


def _function(name: str, *calls: str) -> onnx.FunctionProto:
    """One that calls others, one after the other."""
    names = ["x", *(f"t{i}" for i in range(1, len(calls))), "y"]
    nodes = [node(call, [names[i]], [names[i + 1]], domain="my") for i, call in enumerate(calls)]
    return helper.make_function("my", name, ["x"], ["y"], nodes, [helper.make_opsetid("my", 1)])


def test_a_function_may_give_what_is_known(run: Callable[..., Any]) -> None:
    """A constant of its own, and its input."""
    inner = helper.make_function("my", "F", ["x"], ["y", "z"], [
        node("Constant", [], ["y"], value_float=2.0), node("Identity", ["x"], ["z"])], [helper.make_opsetid("", 21)])
    made = _called("F", [inner])
    made.graph.node[0].output.append("z")
    made.graph.output.append(value("z", None))
    y, z = run(made, np.array([3, 4], np.float32))
    assert y.item() == 2.0
    np.testing.assert_array_equal(z, [3, 4])


def test_functions_that_call_themselves_are_refused(context: kiln.Context) -> None:
    with pytest.raises(kiln.Unimplemented, match="more than 64 deep, or a function calls itself"):
        kiln.onnx.load(_called("A", [_function("A", "B"), _function("B", "A")]), context=context)


def test_functions_that_make_too_much_are_refused(context: kiln.Context, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each calls the next one twice: 2^40 nodes of 40 functions."""
    monkeypatch.setattr("kiln.onnx._convert.MOST_NODES", 1000)
    functions = [_function(f"F{i}", f"F{i + 1}", f"F{i + 1}") for i in range(40)]
    functions.append(helper.make_function("my", "F40", ["x"], ["y"], [node("Relu", ["x"], ["y"])], [helper.make_opsetid("", 21)]))
    with pytest.raises(kiln.Unimplemented, match="after 1000 others"):
        kiln.onnx.load(_called("F0", functions), context=context)


@pytest.mark.parametrize("opset", range(7, 29))
def test_every_opset(opset: int, run: Callable[..., Any]) -> None:
    """Ops whose axes and sizes were attributes and became inputs."""
    as_inputs = opset >= 13
    axes = np.array([0])
    nodes = [node("Unsqueeze", ["x", "axes"], ["u"]) if as_inputs else node("Unsqueeze", ["x"], ["u"], axes=[0]),
             node("ReduceSum", ["u", "axes"], ["r"], keepdims=0) if as_inputs else node("ReduceSum", ["u"], ["r"], axes=[0],
                                                                                      keepdims=0),
             node("Slice", ["r", "axes", "two"], ["s"]) if opset >= 10 else node("Slice", ["r"], ["s"], starts=[0], ends=[2]),
             node("Softmax", ["s"], ["p"], axis=1),
             node("TopK", ["p", "one"], ["y", "i"]) if opset >= 10 else node("TopK", ["p"], ["y", "i"], k=1),
             node("Dropout", ["y"], ["z"])]
    weights = {"axes": axes, "two": np.array([2]), "one": np.array([1])}
    x = np.array([[1, 2], [3, 5], [0, 9]], np.float32)
    made = model(nodes, [value("x", [3, 2])], ["z"], weights, opset=opset)
    wanted = 1 / (1 + np.exp(x[:2, :1] - x[:2, 1:]))
    np.testing.assert_allclose(run(made, x)[0], wanted, rtol=1e-6)


def test_places_of_the_largest_are_those_without_padding(run: Callable[..., Any]) -> None:
    x = np.random.default_rng(0).permutation(25).astype(np.float32).reshape(1, 1, 5, 5)
    for pads in ({"auto_pad": "SAME_UPPER"}, {"auto_pad": "SAME_LOWER"}, {"pads": [0, 0, 1, 1]}):
        made = model([node("MaxPool", ["x"], ["y", "i"], kernel_shape=[2, 2], strides=[2, 2], **pads)],
                     [value("x", [1, 1, 5, 5])], ["y", "i"])
        y, index = run(made, x)
        np.testing.assert_array_equal(x.reshape(-1)[index], y)


def test_one_program_for_all_sizes_of_an_image(context: kiln.Context) -> None:
    """Resized by two, convolved, pooled: heights and widths are of the run."""
    w = np.random.default_rng(0).standard_normal((2, 3, 3, 3)).astype(np.float32)
    nodes = [node("Resize", ["x", "", "scales"], ["r"], mode="nearest", coordinate_transformation_mode="asymmetric",
                  nearest_mode="floor"),
             node("Conv", ["r", "w"], ["c"], pads=[1, 1, 1, 1]), node("MaxPool", ["c"], ["p"], kernel_shape=[2, 2],
                                                                     strides=[2, 2]),
             node("GlobalAveragePool", ["p"], ["y"])]
    made = model(nodes, [value("x", ["n", 3, "h", "w"])], ["y"], {"w": w, "scales": np.array([1, 1, 2, 2], np.float32)})
    session = kiln.onnx.Session(made, context=context, backend="cpu")
    for shape in ((1, 3, 4, 6), (2, 3, 8, 5)):
        assert np.asarray(session(np.ones(shape, np.float32))[0]).shape == (shape[0], 2, 1, 1)
    assert len(session.report["variants"]) == 1


# ---- the command


def test_the_command_imports_and_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    w = np.random.default_rng(0).standard_normal((4, 3)).astype(np.float32)
    x = np.ones((2, 4), np.float32)
    (tmp_path / "m.onnx").write_bytes(model([node("MatMul", ["x", "w"], ["y"])], [value("x", ["n", 4])], ["y"],
                                            {"w": w}).SerializeToString())
    np.save(tmp_path / "x.npy", x)
    graph, weights = tmp_path / "g.json", tmp_path / "w.safetensors"
    assert kiln.onnx.main(["import", str(tmp_path / "m.onnx"), "-o", str(graph), "--weights", str(weights)]) == 0
    read = kiln.Graph.from_json(graph.read_text())
    assert [each.name for each in read.parameters] == ["w"]
    size = int.from_bytes(weights.read_bytes()[:8], "little")
    assert json.loads(weights.read_bytes()[8:8 + size])["w"]["shape"] == [4, 3]
    assert weights.read_bytes()[8 + size:] == w.tobytes()
    assert kiln.onnx.main(["run", str(tmp_path / "m.onnx"), "--input", f"x={tmp_path}/x.npy", "--output",
                           f"y={tmp_path}/y.npy"]) == 0
    np.testing.assert_allclose(np.load(tmp_path / "y.npy"), x @ w, rtol=1e-5)
    assert kiln.onnx.main(["run", str(tmp_path / "m.onnx"), "--input", f"x={tmp_path}/x.npy", "--output", "q=q.npy"]) == 1
    assert "the model has no output 'q'; it has y" in capsys.readouterr().err


def test_a_weight_may_have_the_name_of_a_node(run: Callable[..., Any]) -> None:
    """Kiln names nodes by their ops."""
    w = {f"add_{i}": np.full(100, i, np.float32) for i in range(4)} | {"add": np.ones(100, np.float32)}
    nodes = [node("Add", ["x", "add_3"], ["a"]), node("Add", ["a", "add_1"], ["b"]), node("Add", ["b", "add"], ["c"]),
             node("Add", ["c", "add_2"], ["y"])]
    made = model(nodes, [value("x", [100])], ["y"], w)
    np.testing.assert_array_equal(run(made, np.zeros(100, np.float32))[0], np.full(100, 7))


def test_weights_of_a_body_are_one(context: kiln.Context) -> None:
    """Branches are converted twice, unrolled bodies as often as they turn."""
    then = branch("then", [node("Mul", ["x", "w"], ["then_y"])], ["then_y"])
    then.initializer.append(numpy_helper.from_array(np.ones(100, np.float32), "w"))
    constant = numpy_helper.from_array(np.ones(100, np.float32))
    other = branch("else", [node("Constant", [], ["k"], value=constant), node("Add", ["x", "k"], ["else_y"])], ["else_y"])
    made = model([node("If", ["p"], ["y"], then_branch=then, else_branch=other)],
                 [value("p", [], BOOL), value("x", [100])], ["y"])
    _, weights = kiln.onnx.load(made, context=context)
    assert sorted(weights) == ["k", "w"]


@pytest.mark.parametrize("length", [2, 6])
def test_a_start_that_a_run_finds_below_zero_counts_from_the_end(length: int, run: Callable[..., Any]) -> None:
    nodes = [node("Shape", ["i"], ["s"]), node("Sub", ["s", "four"], ["a"]), node("Slice", ["x", "a", "end"], ["y"])]
    made = model(nodes, [value("x", ["n"]), value("i", ["m"])], ["y"], {"four": np.array([4]), "end": np.array([2**40])})
    x = np.arange(5, dtype=np.float32)
    np.testing.assert_array_equal(run(made, x, np.zeros(length, np.float32))[0], x[length - 4:])


def test_the_documentation_runs(tmp_path: Path) -> None:
    page = (Path(__file__).resolve().parents[4] / "docs/onnx.md").read_text()
    blocks = re.findall(r"^```python\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    assert blocks
    for block in blocks:
        exec(compile(block.replace("/tmp/", f"{tmp_path}/"), "docs/onnx.md", "exec"), {"__name__": "page"})


def test_the_first_of_a_dim_is_of_size_one(run: Callable[..., Any]) -> None:
    """And not min(1, n), which would not broadcast; as torch writes it for the indices of max_pool."""
    nodes = [node("Slice", ["x", "a", "b"], ["first"]), node("Slice", ["x", "c", "d"], ["last"]),
             node("Sub", ["x", "first"], ["e"]), node("Add", ["e", "last"], ["y"])]
    weights = {"a": np.array([0]), "b": np.array([1]), "c": np.array([-1]), "d": np.array([2**63 - 1])}
    x = np.array([3, 5, 9], np.float32)
    np.testing.assert_array_equal(run(model(nodes, [value("x", ["n"])], ["y"], weights), x)[0], x - 3 + 9)


@pytest.mark.parametrize("counts", [[1, 2], [9, 9], [-1, 0], [-9, 0]])
def test_a_slice_whose_end_is_computed(counts: list[int], run: Callable[..., Any]) -> None:
    """From data: its size is what a run finds."""
    nodes = [node("ReduceSum", ["i"], ["k"], keepdims=1), node("Slice", ["x", "a", "k"], ["s"]), node("Exp", ["s"], ["y"])]
    made = model(nodes, [value("x", ["n", 2]), value("i", ["m"], I64)], ["y"], {"a": np.array([1])})
    x = np.arange(8, dtype=np.float32).reshape(4, 2)
    np.testing.assert_allclose(run(made, x, np.array(counts))[0], np.exp(x[1:sum(counts)]), rtol=1e-6)
