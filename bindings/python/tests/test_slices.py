"""Slices and integer arrays as indices, against NumPy: of sizes that are known, and of those that only a run tells."""

import kiln
import kiln.array_api as xp
import numpy as np
import pytest

pytestmark = pytest.mark.fast

SLICES = [slice(*ends) for ends in [
    (-3, None), (None, -3), (3, None), (None, 3), (1, None), (None, -1), (2, -2), (-4, -1), (-2, -4), (4, 2), (-3, 4), (1, 3),
    (None, None, -1), (-2, None, -1), (None, 1, -1), (3, None, -2), (None, -3, -1), (-1, -4, -2), (4, 0, -1), (None, None, 3),
    (1, None, 2), (-5, None, 2), (None, -1, 2)]]


@pytest.mark.parametrize("part", SLICES, ids=str)
def test_a_slice_of_any_size_is_cut_as_numpy_cuts_it(part):
    f = kiln.jit(lambda x: x[part])
    for size in (5, 4, 2, 9, 3):
        x = np.arange(2 * size, dtype=np.float32).reshape(size, 2)
        np.testing.assert_array_equal(f(x), x[part])
    assert len(f.programs) == 2


@pytest.mark.parametrize("part", SLICES, ids=str)
def test_a_slice_of_a_declared_size_is_cut_down_to_nothing(part):
    f = kiln.jit(lambda x: x[part] + 1, sizes={"x": ("n",)})
    for size in (4, 0, 1, 2, 7):
        x = np.arange(size, dtype=np.float32)
        np.testing.assert_array_equal(f(x), x[part] + 1)
    assert len(f.programs) == 1


def test_neighbours_of_any_size_have_one_length():
    f = kiln.jit(lambda x: x[1:] - x[:-1], sizes={"x": ("n",)})
    for size in (4, 0, 1, 2):
        x = np.arange(size, dtype=np.float32) ** 2
        np.testing.assert_array_equal(f(x), x[1:] - x[:-1])


def test_ends_that_are_sizes_are_cut_and_count_from_the_end_below_0():
    f = kiln.jit(lambda x, y: (x[:y.shape[0]], x[y.shape[0] - 2:]), sizes={"x": ("n",), "y": ("m",)})
    x = np.arange(4, dtype=np.float32)
    for size in (3, 9, 1, 0, 2):
        first, second = f(x, np.zeros(size, np.float32))
        np.testing.assert_array_equal(first, x[:size])
        np.testing.assert_array_equal(second, x[size - 2:])


def test_what_no_slice_ends_at_is_refused_by_name():
    with pytest.raises(TypeError, match="a slice ends at 1.5, an int, a Dim or None was expected"):
        kiln.jit(lambda x: x[1.5:])(np.zeros(3, np.float32))
    with pytest.raises(ValueError, match="step"):
        kiln.jit(lambda x: x[::0], sizes={"x": ("n",)})(np.zeros(3, np.float32))


X = np.arange(60, dtype=np.float32).reshape(3, 4, 5)
I, J = np.array([2, 0, -1]), np.array([[1], [-2]], np.int32)
KEYS = {"one": lambda i, j: i, "two dims": lambda i, j: j, "first of a tuple": lambda i, j: (i,),
        "last": lambda i, j: (..., i), "middle": lambda i, j: (slice(None), i, slice(1, 3)),
        "two": lambda i, j: (i, j), "two behind": lambda i, j: (slice(1, None), j, i), "three": lambda i, j: (i, j, i),
        "an int beside": lambda i, j: (i, 1), "a negative int before": lambda i, j: (-1, j), "apart": lambda i, j: (i, slice(None), j),
        "an int apart": lambda i, j: (0, slice(None, None, 2), i), "a new dim": lambda i, j: (None, i, None),
        "a new dim between": lambda i, j: (i, None, j)}


@pytest.mark.parametrize("name", KEYS)
def test_integer_arrays_are_indices_as_numpys(name):
    np.testing.assert_array_equal(kiln.jit(lambda x, i, j: x[KEYS[name](i, j)])(X, I, J), X[KEYS[name](I, J)])
    np.testing.assert_array_equal(kiln.jit(lambda x: x[KEYS[name](I, J)])(X), X[KEYS[name](I, J)])


@pytest.mark.parametrize("name", KEYS)
def test_integer_arrays_are_indices_of_sizes_that_a_run_tells(name):
    f = kiln.jit(lambda x, i, j: x[KEYS[name](i, j)], sizes={"x": ("n", "m", 5)})
    for x in (X, X[:, :3], X[:2].repeat(2, 0)):
        np.testing.assert_array_equal(f(x, I, J), x[KEYS[name](I, J)])
    assert len(f.programs) == 1


@pytest.mark.parametrize("dtype", [np.uint8, np.int16, np.uint64, np.int32])
def test_an_index_is_of_any_integers(dtype):
    i = np.array([2, 0], dtype)
    np.testing.assert_array_equal(kiln.jit(lambda x, i: x[i])(X, i), X[i])
    np.testing.assert_array_equal(kiln.jit(lambda x, i: x[i, i])(X, i), X[i, i])


def test_an_index_of_no_dims_takes_an_element():
    np.testing.assert_array_equal(kiln.jit(lambda x: x[xp.argmax(x[:, 0, 0])])(X), X[2])


@pytest.mark.parametrize("key, error, message", [
    (lambda i: (i, i, i, i), IndexError, "4 indices, of an array of 3 dims"),
    (lambda i: (i, 7), IndexError, "index 7 of a dim of 4 elements"),
    (lambda i: (i, True), TypeError, "True"),
    (lambda i: xp.astype(i, xp.float32), IndexError, "integers were expected"),
    (lambda i: i > 0, TypeError, "by a mask")])
def test_indices_that_are_none_are_refused_by_name(key, error, message):
    with pytest.raises(error, match=message):
        kiln.jit(lambda x, i: x[key(i)])(X, I)
    with pytest.raises(IndexError):
        kiln.jit(lambda x, i: x[i])(X, np.array([3]))
