"""Sessions: names, defaults that may be given, threads; and what integers are cut to."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from small_models import I64, model, node, value
from onnx import helper

import kiln
import kiln.onnx

pytestmark = pytest.mark.fast


def test_names_that_kiln_cannot_tell_apart_stay_apart(context: kiln.Context) -> None:
    made = model([node("Sub", ["x:0", "x.0"], ["y:0"]), node("Mul", ["y:0", "w:0"], ["y.0"])],
                 [value("x:0", [2]), value("x.0", [2])], ["y:0", "y.0"], {"w:0": np.full(100, 2, np.float32)[:2]})
    loaded = kiln.onnx.load(made, context=context)
    assert loaded.names == {"x:0": "x.0.2", "x.0": "x.0"}
    assert [each.name for each in loaded.graph.inputs] == ["x.0.2", "x.0"]
    session = kiln.onnx.Session(made, context=context, backend="cpu")
    a, b = np.float32([5, 6]), np.float32([1, 2])
    for results in (session(a, b), session(**{"x.0": b, "x:0": a})):
        assert [np.asarray(each).tolist() for each in results] == [[4, 4], [8, 8]]
    assert session.output_names == ["y:0", "y.0"]


def test_an_input_with_a_default_may_be_given(context: kiln.Context) -> None:
    made = model([node("MatMul", ["x", "w"], ["h"]), node("Reshape", ["h", "shape"], ["y"])],
                 [value("x", ["n", 4]), value("w", [4, 3]), value("shape", [2], I64)], ["y"],
                 {"w": np.ones((4, 3), np.float32), "shape": np.array([-1, 3])})
    x, w = np.arange(8, dtype=np.float32).reshape(2, 4), np.full((4, 3), 2, np.float32)
    session = kiln.onnx.Session(made, context=context, backend="cpu")
    wanted = x @ np.ones((4, 3), np.float32)
    np.testing.assert_allclose(session(x)[0], wanted)
    np.testing.assert_allclose(session(x, w=w)[0], 2 * wanted)
    np.testing.assert_allclose(session(x, w=3 * w)[0], 6 * wanted)
    np.testing.assert_allclose(session(x, shape=np.array([3, 2]))[0], wanted.reshape(3, 2))
    np.testing.assert_allclose(session(x)[0], wanted)  # the default is as it was
    assert len(session.report["variants"]) == 3
    graph, weights = kiln.onnx.load(made, inputs=["w"], context=context)
    assert [each.name for each in graph.inputs] == ["x", "w"] and not weights
    loaded = kiln.onnx.load(made, values={"shape": np.array([6])}, context=context)
    assert [str(size) for size in loaded.graph.outputs[0].shape] == ["6"] and list(loaded.weights) == ["w"]
    with pytest.raises(kiln.UnknownName, match="no input 'v'"):
        kiln.onnx.load(made, inputs=["v"], context=context)


def test_a_weight_that_is_no_input_is_not_taken_for_one(context: kiln.Context) -> None:
    made = model([node("MatMul", ["x", "w"], ["y"])], [value("x", ["n", 4])], ["y"], {"w": np.ones((4, 3), np.float32)})
    session = kiln.onnx.Session(made, context=context, backend="cpu")
    with pytest.raises(kiln.UnknownName, match="the model has no input 'w'; it has x"):
        session(np.ones((2, 4), np.float32), w=np.ones((4, 3), np.float32))
    assert np.asarray(session(np.ones((2, 4), np.float32))[0]).tolist() == [[4, 4, 4]] * 2


def test_an_input_that_is_given_twice_is_refused(context: kiln.Context) -> None:
    made = model([node("Sub", ["x", "b"], ["y"])], [value("x", [2]), value("b", [2])], ["y"])
    session = kiln.onnx.Session(made, context=context, backend="cpu")
    a, b = np.float32([5, 6]), np.float32([1, 2])
    with pytest.raises(kiln.TypeMismatch, match="^'x' is given twice$"):
        session(a, b, x=b)
    assert np.asarray(session(a, b=b)[0]).tolist() == [4, 4]


def test_values_that_failed_do_not_count(context: kiln.Context) -> None:
    """Whether the model cannot be read for them, or the run tells that nothing fits; 8 that are right find room after."""
    made = model([node("Reshape", ["x", "s"], ["y"])], [value("x", ["n"]), value("s", [2], I64)], ["y"])
    session, x = kiln.onnx.Session(made, context=context, backend="cpu"), np.arange(6, dtype=np.float32)
    for wrong in range(kiln.onnx.VARIANTS + 2):
        with pytest.raises(kiln.Error, match="reshape"):
            session(x, np.array([4, wrong + 2]))
        with pytest.raises(kiln.Error, match="Reshape"):
            session(x, np.array([-2 - wrong, 3]))
    assert session.report == {"deciders": ["s"], "variants": []}
    right = [[6, 1], [1, 6], [3, 2], [2, 3], [-1, 1], [-1, 2], [-1, 3], [-1, 6]]
    for shape in right:
        assert np.asarray(session(x, np.array(shape))[0]).tolist() == x.reshape(shape).tolist()
    with pytest.raises(kiln.Error, match="reshape"):
        session(x[:5], np.array([2, 3]))  # it did run: one run that fails takes nothing away
    assert session.report["variants"] == [{"s": shape} for shape in right]
    with pytest.raises(kiln.OutOfRange, match="8 different values"):
        session(x, np.array([0, 0]))


def test_threads_share_a_session(context: kiln.Context) -> None:
    """Four threads, models of inputs that decide a size: each gets its own results, and of a program there is one."""
    w = np.random.default_rng(0).standard_normal((64, 64)).astype(np.float32)
    made = model([node("MatMul", ["x", "w"], ["h"]), node("Reshape", ["h", "shape"], ["y"])],
                 [value("x", ["n", 64]), value("shape", [2], I64)], ["y"], {"w": w})
    session, failed = kiln.onnx.Session(made, context=context, backend="cpu"), []
    begin = threading.Barrier(4)

    def work(number: int) -> None:
        x = np.random.default_rng(number).standard_normal((32, 64)).astype(np.float32)
        begin.wait()
        for i in range(50):
            shape = np.array([-1, 16 << (number + i) % 2])
            try:
                np.testing.assert_allclose(session(x, shape)[0], (x @ w).reshape(shape), rtol=1e-3, atol=1e-3)
            except Exception as error:
                failed.append(error)
                return
    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed and len(session.report["variants"]) == 2


@pytest.mark.parametrize("dtype", [np.int32, np.int64, np.uint32])
def test_reductions_of_integers_are_cut(run: Callable[..., Any], dtype: type) -> None:
    x = np.array([[7, 2, 4], [9, 9, 2]], dtype) if dtype is np.uint32 else np.array([[-7, 2, 1], [9, 9, 2]], dtype)
    type_ = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))

    def reduced(op: str, axes: list[int] | None, of: Any = x) -> Any:
        weights = {} if axes is None else {"axes": np.array(axes)}
        return run(model([node(op, ["x", *weights], ["y"], keepdims=0)], [value("x", [2, "n"], type_)], ["y"], weights), of)[0]
    for axes in (None, [0], [1]):
        mean = reduced("ReduceMean", axes)
        assert mean.dtype == dtype
        np.testing.assert_array_equal(mean, np.trunc(np.mean(x.astype(np.float64), None if axes is None else axes[0])))
    np.testing.assert_array_equal(reduced("ReduceL2", [1]), np.trunc(np.sqrt(np.sum(x.astype(np.float64)**2, 1))))
    positive = np.abs(x.astype(np.int64)).astype(dtype)
    np.testing.assert_array_equal(reduced("ReduceLogSum", [1], positive), np.trunc(np.log(np.sum(positive, 1))))
