"""NumPy's arrays: every element type, layout and flag, without copies."""

import copy
import pickle
import re

import kiln
import ml_dtypes
import numpy as np
import pytest
from building import compiled

pytestmark = pytest.mark.fast

TYPES = {"f64": "float64", "f32": "float32", "f16": "float16", "bf16": ml_dtypes.bfloat16, "i64": "int64",
         "i32": "int32", "i16": "int16", "i8": "int8", "u64": "uint64", "u32": "uint32", "u16": "uint16", "u8": "uint8",
         "bool": "bool", "f8_e4m3fn": ml_dtypes.float8_e4m3fn, "f8_e5m2": ml_dtypes.float8_e5m2}


def test_an_unknown_dtype_is_told_all_that_there_are():
    with pytest.raises(kiln.TypeMismatch, match=r"^dtype dtype\('complex64'\) is none of f64, f32, f16, bf16, i64, "):
        kiln.dtype(np.dtype("complex64"))


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_dtypes_are_pickled_as_what_they_are(protocol):
    for dtype in kiln.dtypes:
        assert pickle.loads(pickle.dumps({"dtype": dtype}, protocol))["dtype"] is dtype
    assert copy.deepcopy(kiln.bool_) is kiln.bool_


def test_every_element_type_goes_in_and_comes_out():
    assert {dtype.name for dtype in kiln.dtypes} == set(TYPES)
    for name, type_ in TYPES.items():
        x = np.array([[0, 1, 1, 0], [1, 0, 1, 1]]).astype(type_)
        result = compiled(lambda v: kiln.ops.flip(v, dims=[1]), (name, ["n", 4]))(x)
        assert result.dtype == x.dtype and kiln.dtype(x.dtype) == name, name
        np.testing.assert_array_equal(result.astype("float32"), x[:, ::-1].astype("float32"))
        assert kiln.dtype(type_ if isinstance(type_, str) else np.dtype(type_)) is kiln.dtype(name)


@pytest.mark.parametrize("view", [
    lambda x: x[::2], lambda x: x[::-1], lambda x: x[:, ::-2], lambda x: x.T, lambda x: np.broadcast_to(x[0], (3, 8)),
    lambda x: x[:0], lambda x: np.asfortranarray(x), lambda x: x[1:2]])
def test_strided_views_give_what_their_elements_are(view):
    x = view(np.arange(64, dtype=np.float32).reshape(8, 8))
    program = compiled(lambda v: v * 2.0, ("f32", ["n", "m"]))
    for _ in range(4):
        np.testing.assert_array_equal(program(x), x * 2)


def test_declared_strides_are_read_in_place(graph):
    graph.output(graph.input("x", "f32", [4], strides=[-2]) + 1.0)
    x = np.arange(8, dtype=np.float32)[::-2]
    assert kiln.compile(graph)(x).tolist() == (x + 1).tolist()


@pytest.mark.parametrize("view", [lambda x: x[::2], lambda x: x[::-2], lambda x: x[8:]])
def test_strided_outputs_are_written_and_nothing_between(view):
    program = compiled(lambda v: v + 1.0, ("f32", ["n"]))
    for _ in range(4):
        whole = np.zeros(16, np.float32)
        out = view(whole)
        assert program(np.arange(8, dtype=np.float32), out=out) is out
        assert out.tolist() == list(range(1, 9)) and whole.sum() == 36


@pytest.mark.parametrize("size, shape, strides", [(1, (5,), (0,)), (8, (3, 2), (1, 1)), (8, (2, 3), (-1, 1))])
def test_an_output_that_holds_an_element_twice_is_refused(size, shape, strides):
    program = compiled(lambda v: v + 1.0, ("f32", list("nm"[:len(shape)])))
    whole = np.zeros(size, np.float32)
    out = np.lib.stride_tricks.as_strided(whole[size // 2:], shape, [4 * each for each in strides])
    told = re.escape(f"'output0' is a numpy.ndarray: its shape {shape} and strides {strides}, in elements, lead to an element twice")
    with pytest.raises(kiln.TypeMismatch, match=told):
        program(np.ones(shape, np.float32), out=out)
    assert not whole.any()
    for few in (0, 1):
        out = np.lib.stride_tricks.as_strided(whole, (few, *shape[1:]), [0, 4][:len(shape)])
        program(np.ones(out.shape, np.float32), out=out)
    assert whole[0] == 2


def test_outputs_share_no_memory_with_what_else_is_written_however_they_lie(graph):
    x = graph.input("x", "f32", ["n"])
    graph.output(x + 1.0, "y")
    graph.output(x * 2.0, "z")
    program, x, whole = kiln.compile(graph), np.arange(4, dtype=np.float32), np.zeros(8, np.float32)
    for y, z in ((whole[::2], whole[::2]), (whole[::2], whole[:4]), (whole[:4], whole[::-2]), (whole[::2], whole[6::-2])):
        with pytest.raises(kiln.InvalidArgument, match="output '[yz]' overlaps '[yz]'; a run writes it"):
            program(x, out=(y, z))
    with pytest.raises(kiln.InvalidArgument, match="output 'z' overlaps 'y'; a run writes it"):
        program.bind(y=whole[:4])(x, out=whole[::2])
    assert not whole.any()
    program(x, out=(whole[::2], whole[1::2]))
    assert whole.tolist() == [1, 0, 2, 2, 3, 4, 4, 6]
    program(x, out=(whole[6::-2], whole[::-2]))
    assert whole.tolist() == [4, 6, 3, 4, 2, 2, 1, 0]


def test_columns_of_one_table_are_outputs_and_a_written_input_is_none(graph):
    state, x = graph.input("state", "f32", [3, 2]), graph.input("x", "f32", [3, 2])
    graph.output(x * 2.0, "y")
    kiln.ops.copy_(state, state + x)
    program, table, x = kiln.compile(graph), np.zeros((3, 4), np.float32), np.ones((3, 2), np.float32)
    dense = np.zeros(6, np.float32)
    with pytest.raises(kiln.InvalidArgument, match="output 'y' overlaps 'state'; a run writes it"):
        program(dense.reshape(3, 2), x, out=dense.reshape(2, 3).T)
    assert not dense.any()
    program(dense.reshape(3, 2), x, out=table[:, 1:3])
    assert dense.tolist() == [1] * 6 and table.tolist() == [[0, 2, 2, 0]] * 3


def test_an_output_declared_for_any_strides_is_written_where_it_lies(graph):
    graph.output(graph.input("x", "f32", ["n", 3]) + 1.0, strides="any")
    out = np.zeros((3, 2), np.float32).T
    kiln.compile(graph)(np.ones((2, 3), np.float32), out=out)
    assert (out == 2).all()


def test_arrays_at_odd_addresses_are_right():
    raw = np.zeros(33, np.uint8)
    x, out = raw[1:].view(np.float32), np.zeros(33, np.uint8)[1:].view(np.float32)
    x[:] = range(8)
    assert compiled(lambda v: v + 1.0, ("f32", ["n"]))(x, out=out) is out and out.tolist() == list(range(1, 9))


def test_numbers_and_scalars_are_arrays_without_dims():
    program = compiled(lambda v: v + 1, ("bf16", []))
    assert float(program(2)) == 3 and program(2.5).dtype == ml_dtypes.bfloat16 and program(2).shape == ()
    assert float(compiled(lambda v: v + 1, ("f32", []))(np.float32(4))) == 5
    whole = compiled(lambda v: v + 1, ("i8", []))
    assert whole(-128) == -127
    for bad in (200, 1.5):
        with pytest.raises(TypeError, match="i8 does not hold"):
            whole(bad)


def test_memory_without_elements_and_without_dims():
    program = compiled(lambda v: kiln.ops.sum(v, dims=[0]), ("f32", ["n", "m"]))
    assert program(np.zeros((0, 3), np.float32)).tolist() == [0, 0, 0]
    assert program(np.zeros((3, 0), np.float32)).shape == (0,)


def test_read_only_inputs_are_read():
    x = np.ones(3, np.float32)
    x.flags.writeable = False
    assert compiled(lambda v: v + 1.0, ("f32", ["n"]))(x).tolist() == [2, 2, 2]


def test_results_are_writable_own_their_memory_and_outlive_all():
    program = compiled(lambda v: v + 1.0, ("f32", ["n"]))
    for size in (3, 1 << 20):
        results = [program(np.zeros(size, np.float32)) for _ in range(3)]
        results[0] += 5
        assert results[0][-1] == 6 and results[1][-1] == 1 and results[0].flags.c_contiguous
    del program
    kiln.default_context().close()
    assert results[2].sum() == 1 << 20


def test_results_are_asked_for_in_another_library():
    x = np.float32([1, 2])
    program = compiled(lambda v: v + 1.0, ("f32", ["n"]))
    array = program(x, library="dlpack")
    assert isinstance(array, kiln.Array) and array.shape == (2,) and array.dtype is kiln.f32
    assert np.from_dlpack(array).tolist() == [2, 3] and array.numpy().tolist() == [2, 3]
    assert program(array, library=np).tolist() == [3, 4]
    del array


class ByDlpack:
    """An array of a library that nobody knows."""

    def __init__(self, array, versions=True):
        self.array, self.versions = array, versions

    def __dlpack__(self, **options):
        if not self.versions and options:
            raise TypeError("no such keyword")
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


@pytest.mark.parametrize("versions", [True, False])
def test_arrays_of_an_unknown_library_come_by_dlpack(versions):
    x = ByDlpack(np.float32([1, 2]), versions)
    program = compiled(lambda v: v + 1.0, ("f32", ["n"]))
    for _ in range(3):
        result = program(x)
        assert isinstance(result, kiln.Array) and result.numpy().tolist() == [2, 3]
    out = ByDlpack(np.zeros(2, np.float32), versions)
    assert program(x, out=out) is out and out.array.tolist() == [2, 3]


def test_an_array_that_gives_nothing_is_refused_by_name():
    class Broken:
        def __dlpack__(self, **options):
            raise BufferError("it is elsewhere")

    with pytest.raises(TypeError, match="'x0' is a Broken: it gives no memory: it is elsewhere"):
        compiled(lambda v: v + 1.0, ("f32", ["n"]))(Broken())
