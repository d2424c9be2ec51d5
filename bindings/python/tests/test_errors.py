"""Errors: classes, what they carry, and that they are Python's own kinds, too."""

import errno
import pickle

import kiln
import kiln.array_api as xp
import numpy as np
import pytest
from building import compiled

pytestmark = pytest.mark.fast


def test_each_class_is_also_pythons_own():
    assert issubclass(kiln.TypeMismatch, TypeError) and issubclass(kiln.InvalidArgument, ValueError)
    assert issubclass(kiln.OutOfRange, IndexError) and issubclass(kiln.OutOfMemory, MemoryError)
    assert issubclass(kiln.FileError, OSError) and issubclass(kiln.Unimplemented, NotImplementedError)


def test_an_error_names_code_and_node(graph):
    x, i = graph.input("x", "f32", [3]), graph.input("i", "i64", [2])
    graph.output(kiln.ops.index_select(x, i, dim=0, name="picked"))
    with pytest.raises(IndexError) as caught:
        kiln.compile(graph)(np.zeros(3, np.float32), np.array([0, 7]))
    assert caught.value.code == "out_of_range" and "picked" in str(caught.value)


def test_an_error_of_a_compile_has_its_report(graph):
    graph.output(kiln.ops.exp(graph.input("x", "f32", [3])))
    with pytest.raises(kiln.NotCached) as caught:
        kiln.compile(graph, require_hit=True)
    assert caught.value.report["lookup"] == "MISS" and caught.value.code == "not_cached"
    again = pickle.loads(pickle.dumps(caught.value))
    assert type(again) is kiln.NotCached and again.report == caught.value.report and str(again) == str(caught.value)


def test_unknown_options_name_the_option(graph):
    graph.output(graph.input("x", "f32", [3]) + 1.0)
    with pytest.raises(ValueError, match="nonsense"):
        kiln.compile(graph, nonsense=1)
    with pytest.raises(TypeError, match="fuse"):
        kiln.compile(graph, {"fuse": "yes"})


@pytest.mark.parametrize("arrays, message", [
    ((np.zeros(3, np.float64),), "'x0': dtype is f64, expected f32"),
    ((np.zeros((3, 1), np.float32),), "'x0'"),
    ((), "input 'x0' is not given"),
    ((np.zeros(3, np.float32),) * 2, "2 arrays are given, and 1 inputs are to be given"),
    (([1.0, 2.0],), "'x0' is a list: no array"),
    ((np.zeros(3, complex),), "its dtype complex128 is none of Kiln's"),
    ((np.zeros(3, ">f4"),), "its dtype >f4 is none of Kiln's"),
    (("text",), "'x0' is a str: no array"),
    ((None,), "'x0' is a NoneType"),
    ((np.ma.zeros(3, np.float32),), "a masked array")])
def test_an_input_that_does_not_fit_is_named(arrays, message):
    program = compiled(lambda x: x + 1.0, ("f32", ["n"]))
    with pytest.raises(TypeError, match=message):
        program(*arrays)
    assert program(np.zeros(2, np.float32)).tolist() == [1, 1]


def test_names_that_do_not_fit_are_told():
    program = compiled(lambda x: x + 1.0, ("f32", ["n"]))
    x = np.zeros(2, np.float32)
    with pytest.raises(ValueError, match="no input or parameter 'y'"):
        program(y=x)
    with pytest.raises(TypeError, match="'x0' is given twice"):
        program(x, x0=x)
    with pytest.raises(ValueError, match="library 'cupid'"):
        program(x, library="cupid")
    assert program(x0=x).tolist() == [1, 1]


def test_a_context_and_a_call_refuse_to_be_pickled_by_name(context):
    call = compiled(lambda x: x + 1.0, ("f32", ["n"])).bind()
    with pytest.raises(ValueError, match="a kiln.Context cannot be pickled"):
        pickle.dumps(context)
    with pytest.raises(ValueError, match="a kiln.Call cannot be pickled"):
        pickle.dumps(call)


def test_a_closed_context_refuses_compiles_and_runs_what_it_made(context):
    program = compiled(lambda x: x + 1.0, ("f32", ["n"]))
    context.close()
    assert program(np.float32([1])).tolist() == [2]
    with pytest.raises(kiln.Error, match="closed"):
        compiled(lambda x: x + 2.0, ("f32", ["n"]))


def test_a_file_that_is_not_there_is_an_oserror(tmp_path):
    with pytest.raises(FileNotFoundError, match="nothing.kiln") as caught:
        kiln.load(tmp_path / "nothing.kiln")
    assert isinstance(caught.value, kiln.FileNotFound) and isinstance(caught.value, kiln.FileError)
    assert caught.value.errno == errno.ENOENT and caught.value.code == "io"
    with pytest.raises(FileNotFoundError):
        kiln.open_tensors(tmp_path / "nothing.safetensors")
    (tmp_path / "bad.kiln").write_bytes(b"no artifact")
    with pytest.raises(kiln.Error):
        kiln.load(tmp_path / "bad.kiln")


U8 = np.array([1, 2], np.uint8)


@pytest.mark.parametrize("function", [lambda x: x + 300, lambda x: -1 * x, lambda x: x < 256, lambda x: xp.where(x > 1, x, 300),
                                      lambda x: xp.full_like(x, -1), lambda x: xp.clip(x, 0, 300),
                                      lambda x: kiln.ops.add(x, 300)])
def test_an_int_that_the_dtype_does_not_hold_is_an_overflow_and_does_not_wrap(function):
    with pytest.raises(OverflowError, match="u8 does not hold") as caught:
        kiln.jit(function)(U8)
    assert type(caught.value) is kiln.Overflow and isinstance(caught.value, kiln.TypeMismatch)


def test_an_int_of_a_graph_that_the_dtype_does_not_hold_is_an_overflow(graph):
    x = graph.input("x", "i8", ["n"])
    for bad in (lambda: x * 200, lambda: 128 - x, lambda: kiln.ops.maximum(x, -129)):
        with pytest.raises(OverflowError, match="an int that i8 does not hold"):
            bad()
    graph.output(x * 127 - -128)
    assert kiln.compile(graph)(np.array([0, 1], np.int8)).tolist() == [-128, -1]


def test_an_int_given_at_a_call_is_checked_by_the_array_that_it_meets():
    double = kiln.jit(lambda x, n: (x + n, n * 2))
    assert [np.asarray(each).tolist() for each in double(U8, 253)] == [[254, 255], 506]
    for bad in (256, -1, 2**40):
        with pytest.raises(OverflowError, match=f"{bad} meets an array of u8, which does not hold it"):
            double(U8, bad)
    assert len(double.programs) == 1
    assert double(np.array([1]), -2**40)[0].tolist() == [1 - 2**40]
    both = kiln.jit(lambda a, b, n: (a + n, b + n))
    arrays = np.array([1], np.int8), np.array([1], np.uint8)
    assert both(*arrays, 126)[0].tolist() == [127]
    for bad in (-1, 128):
        with pytest.raises(OverflowError):
            both(*arrays, bad)
