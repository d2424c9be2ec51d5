"""kiln.array_api against array-api-strict: values, dtypes, and that both refuse the same promotions."""

import itertools

import kiln
import numpy as np
import pytest

strict = pytest.importorskip("array_api_strict", reason="array-api-strict is not installed in this environment")
pytestmark = pytest.mark.fast

X = np.random.default_rng(0).uniform(-2, 2, (3, 4)).astype(np.float32)
P = np.abs(X) + np.float32(0.1)
I = np.random.default_rng(1).integers(-5, 6, (3, 4)).astype(np.int32)
U = np.abs(I).astype(np.uint8) + np.uint8(1)
B = I > 0
V = np.float32([1, 3, 2, 2])

UNARY = {"x": ["abs", "atan", "asinh", "ceil", "cos", "cosh", "exp", "expm1", "floor", "isfinite", "isinf", "isnan",
               "negative", "positive", "reciprocal", "round", "sign", "signbit", "sin", "sinh", "square", "tan", "tanh",
               "trunc"],
         "p": ["log", "log1p", "log2", "log10", "sqrt"],
         "i": ["abs", "bitwise_invert", "ceil", "floor", "isnan", "isfinite", "negative", "round", "sign", "square",
               "trunc"],
         "b": ["logical_not", "bitwise_invert"]}
BINARY = {("x", "p"): ["add", "atan2", "copysign", "divide", "equal", "floor_divide", "greater", "greater_equal",
                       "hypot", "less", "less_equal", "logaddexp", "maximum", "minimum", "multiply", "not_equal",
                       "remainder", "subtract"],
          ("p", "x"): ["pow"],
          ("i", "u"): ["add", "bitwise_and", "bitwise_or", "bitwise_xor", "floor_divide", "multiply", "remainder",
                       "bitwise_left_shift", "bitwise_right_shift", "less"],
          ("b", "b"): ["logical_and", "logical_or", "logical_xor", "bitwise_and", "equal"]}


def of(name, *keys, **options):
    return lambda xp, a: getattr(xp, name)(*(a[key] for key in keys), **options)


CALLS = {
    **{f"{name}({key})": of(name, key) for key, names in UNARY.items() for name in names},
    **{f"{name}({', '.join(keys)})": of(name, *keys) for keys, names in BINARY.items() for name in names},
    **{f"{name}({key}, {axis}, {keep})": of(name, key, axis=axis, keepdims=keep)
       for name, key in (("sum", "x"), ("sum", "i"), ("sum", "u"), ("prod", "i"), ("max", "x"), ("min", "i"),
                         ("mean", "x"), ("all", "b"), ("any", "b"), ("any", "x"), ("argmax", "x"), ("argmin", "i"),
                         ("var", "x"), ("std", "x"), ("count_nonzero", "i"))
       for axis, keep in ((None, False), (1, False), (0, True), (-1, True), (None, True))},
    "acosh": lambda xp, a: xp.acosh(a["p"] + 1), "acos": lambda xp, a: xp.acos(a["x"] / 2),
    "asin": lambda xp, a: xp.asin(a["x"] / 2), "atanh": lambda xp, a: xp.atanh(a["x"] / 3),
    "sum over two axes": lambda xp, a: xp.sum(a["x"], axis=(0, -1)),
    "sum over none": lambda xp, a: xp.sum(a["x"], axis=()),
    "sum in f64": lambda xp, a: xp.sum(a["x"], dtype=xp.float64),
    "var with correction": lambda xp, a: xp.var(a["x"], axis=1, correction=1.0),
    "cumulative_sum": lambda xp, a: xp.cumulative_sum(a["x"], axis=1),
    "cumulative_sum, initial": lambda xp, a: xp.cumulative_sum(a["i"], axis=0, include_initial=True),
    "cumulative_prod": lambda xp, a: xp.cumulative_prod(a["v"], include_initial=True),
    "diff": lambda xp, a: xp.diff(a["x"], axis=0, n=2),
    "clip": lambda xp, a: xp.clip(a["x"], -1.0, 1.0),
    "clip below": lambda xp, a: xp.clip(a["i"], min=0),
    "where": lambda xp, a: xp.where(a["b"], a["x"], a["p"]),
    "astype": lambda xp, a: xp.astype(a["i"], xp.float64),
    "sort": lambda xp, a: xp.sort(a["x"], axis=0, descending=True),
    "argsort": lambda xp, a: xp.argsort(a["x"]),
    "searchsorted": lambda xp, a: xp.searchsorted(xp.sort(a["v"]), a["v"], side="right"),
    "reshape": lambda xp, a: xp.reshape(a["x"], (2, -1)),
    "permute_dims": lambda xp, a: xp.permute_dims(a["x"], (1, 0)),
    "matrix_transpose": lambda xp, a: xp.matrix_transpose(a["x"]),
    "moveaxis": lambda xp, a: xp.moveaxis(xp.reshape(a["x"], (1, 3, 4)), 0, -1),
    "expand_dims": lambda xp, a: xp.expand_dims(a["x"], axis=-1),
    "squeeze": lambda xp, a: xp.squeeze(a["x"][:1, ...], axis=0),
    "flip": lambda xp, a: xp.flip(a["x"]),
    "roll": lambda xp, a: xp.roll(a["x"], (1, -1), axis=(0, 1)),
    "roll all": lambda xp, a: xp.roll(a["x"], 2),
    "repeat": lambda xp, a: xp.repeat(a["x"], 2, axis=1),
    "tile": lambda xp, a: xp.tile(a["v"], (2, 2)),
    "concat": lambda xp, a: xp.concat([a["i"], a["u"]], axis=1),
    "concat flat": lambda xp, a: xp.concat([a["x"], a["p"]], axis=None),
    "stack": lambda xp, a: xp.stack([a["x"], a["p"]], axis=-1),
    "unstack": lambda xp, a: xp.unstack(a["x"])[1],
    "broadcast_to": lambda xp, a: xp.broadcast_to(a["v"], (3, 4)),
    "broadcast_arrays": lambda xp, a: xp.broadcast_arrays(a["x"], a["v"])[1],
    "take": lambda xp, a: xp.take(a["x"], xp.asarray([2, 0, 0]), axis=0),
    "take_along_axis": lambda xp, a: xp.take_along_axis(a["x"], xp.argsort(a["x"]), axis=-1),
    "tril": lambda xp, a: xp.tril(a["x"], k=-1), "triu": lambda xp, a: xp.triu(a["x"], k=1),
    "matmul": lambda xp, a: xp.matmul(a["x"], xp.matrix_transpose(a["p"])),
    "@": lambda xp, a: a["x"] @ a["v"],
    "tensordot": lambda xp, a: xp.tensordot(a["x"], a["p"], axes=((0, 1), (0, 1))),
    "tensordot 1": lambda xp, a: xp.tensordot(a["x"], a["p"].T, axes=1),
    "vecdot": lambda xp, a: xp.vecdot(a["x"], a["v"]),
    "full": lambda xp, a: xp.full((2, 3), 7, dtype=xp.int16) + xp.zeros((2, 3), dtype=xp.int16),
    "ones_like": lambda xp, a: xp.ones_like(a["i"]),
    "eye": lambda xp, a: xp.eye(3, 4, k=1, dtype=xp.float32),
    "arange": lambda xp, a: xp.arange(2, 11, 3), "arange f": lambda xp, a: xp.arange(3, dtype=xp.float32),
    "linspace": lambda xp, a: xp.linspace(0.0, 1.0, 5, dtype=xp.float64),
    "meshgrid": lambda xp, a: xp.meshgrid(a["v"], a["x"][:, 0])[0],
    "indexing": lambda xp, a: a["x"][1:, ::-2][..., None, 0],
    "integer arrays": lambda xp, a: a["x"][xp.asarray([2, 0, -1]), xp.asarray([1, -1, 0])],
    "an integer array and an int": lambda xp, a: a["x"][xp.asarray([2, 0]), 1],
    "nextafter": lambda xp, a: xp.nextafter(a["x"], a["p"]),
    "real": lambda xp, a: xp.real(a["x"]), "real i": lambda xp, a: xp.real(a["i"]),
    "from_dlpack": lambda xp, a: xp.from_dlpack(a["x"]),
    "isin": lambda xp, a: xp.isin(a["i"], xp.asarray([1, 2, 3], dtype=xp.int32)),
    "numbers": lambda xp, a: 2 * a["i"] + 1,
    "reflected": lambda xp, a: 1.0 / (2 - a["x"] ** 2) + (-a["x"]),
    "compare": lambda xp, a: (a["x"] < 0.5) | ~(a["i"] >= 2) & (a["x"] != 1)}


def arrays(xp, make):
    return {key: make(value) for key, value in {"x": X, "p": P, "i": I, "u": U, "b": B, "v": V}.items()}


@pytest.mark.parametrize("name", CALLS)
def test_a_function_gives_what_the_standard_says(name):
    expected = np.asarray(CALLS[name](strict, arrays(strict, strict.asarray)))
    import kiln.array_api as xp
    result = kiln.jit(lambda a: CALLS[name](xp, a))(arrays(xp, lambda x: x))
    assert result.dtype == expected.dtype and result.shape == expected.shape
    np.testing.assert_allclose(result, expected, rtol=2e-6, atol=1e-6)


NAMES = ["bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float32", "float64"]


@pytest.mark.parametrize("a, b", list(itertools.combinations_with_replacement(NAMES, 2)))
def test_promotion_is_the_standards(a, b):
    import kiln.array_api as xp
    outcomes = []
    for namespace in (strict, xp):
        try:
            dtype = namespace.result_type(getattr(namespace, a), getattr(namespace, b))
            text = dtype.long_name if isinstance(dtype, kiln.DType) else str(dtype)
            outcomes.append(text.rpartition(".")[2].rstrip("'>"))
        except TypeError:
            outcomes.append("refused")
    assert outcomes[0] == outcomes[1]


def test_facts_of_dtypes_are_the_standards():
    import kiln.array_api as xp
    for name in ("float32", "float64"):
        own, theirs = xp.finfo(getattr(xp, name)), strict.finfo(getattr(strict, name))
        assert [own.bits, own.eps, own.max, own.min, own.smallest_normal] == [
            theirs.bits, theirs.eps, theirs.max, theirs.min, theirs.smallest_normal]
    for name in NAMES[1:9]:
        own, theirs = xp.iinfo(getattr(xp, name)), strict.iinfo(getattr(strict, name))
        assert [own.bits, own.max, own.min] == [theirs.bits, theirs.max, theirs.min]
        for kinds in ("integral", "signed integer", ("real floating", "unsigned integer"), "numeric", "bool"):
            assert xp.isdtype(getattr(xp, name), kinds) == strict.isdtype(getattr(strict, name), kinds)


def test_a_function_of_the_standard_that_is_missing_is_named_here():
    import kiln.array_api as xp
    missing = {name for name in strict.__all__ if not hasattr(xp, name)}
    assert missing <= {"nonzero", "unique_all", "unique_counts", "unique_inverse", "unique_values",  # sizes of a run's
                       "complex64", "complex128", "linalg", "fft",
                       # not of the standard, or of a program rather than of its arrays
                       "ArrayAPIStrictFlags", "Device", "set_array_api_strict_flags", "get_array_api_strict_flags",
                       "reset_array_api_strict_flags", "__version__"}, missing
    assert {"nextafter", "imag", "real", "from_dlpack", "__array_namespace_info__"}.isdisjoint(missing)


@pytest.mark.filterwarnings("ignore:overflow")
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_nextafter_is_the_next_number_everywhere(dtype):
    told = np.finfo(dtype)
    some = dtype([0, told.smallest_subnormal, told.smallest_normal, told.eps, 1, 2, 3.7, 1e10, told.max, np.inf, np.nan])
    near = [each for x in some for each in (np.nextafter(x, dtype(-np.inf)), x, np.nextafter(x, dtype(np.inf)))]
    powers = dtype(2) ** np.arange(told.minexp - 3, told.maxexp, 7, dtype=dtype)
    x = np.concatenate([near, powers, powers * dtype(1.75), np.random.default_rng(0).normal(size=50)]).astype(dtype)
    x = np.concatenate([x, -x])
    import kiln.array_api as xp
    next_ = kiln.jit(xp.nextafter)
    for towards in (np.inf, -np.inf, 0, -0.0, 1, np.nan):
        y = np.full_like(x, towards)
        result, expected = next_(x, y), np.nextafter(x, y)
        np.testing.assert_array_equal(result, expected)
        np.testing.assert_array_equal(np.signbit(result) & ~np.isnan(expected), np.signbit(expected) & ~np.isnan(expected))
    np.testing.assert_array_equal(next_(x, x), x)


def test_what_is_of_complex_numbers_alone_is_refused_by_name():
    import kiln.array_api as xp
    with pytest.raises(TypeError, match=r"\[imag\] an array of f32: it is of complex numbers alone"):
        kiln.jit(xp.imag)(X)
    with pytest.raises(TypeError):
        strict.imag(strict.asarray(X))


def test_from_dlpack_takes_what_has_it_and_no_other_device():
    import kiln.array_api as xp

    class Lent:
        """Says in memory alone what it is."""
        __dlpack__, __dlpack_device__ = X.__dlpack__, X.__dlpack_device__

    lent = Lent()
    np.testing.assert_array_equal(kiln.jit(lambda y: xp.from_dlpack(lent) + y)(X), X + X)
    with pytest.raises(TypeError, match=r"\[from_dlpack\] a list has no __dlpack__"):
        kiln.jit(lambda y: xp.from_dlpack([1]) + y)(X)
    with pytest.raises(ValueError, match="'cpu' was expected"):
        kiln.jit(lambda y: xp.from_dlpack(y, device="cuda"))(X)


def test_what_the_namespace_says_of_itself():
    import kiln.array_api as xp
    own, theirs = xp.__array_namespace_info__(), strict.__array_namespace_info__()
    assert own.capabilities().keys() == theirs.capabilities().keys()
    assert own.capabilities() == {"boolean indexing": False, "data-dependent shapes": False, "max dimensions": 64}
    assert own.devices() == [own.default_device()] == ["cpu"]
    for kind in ("bool", "signed integer", "unsigned integer", "integral", "real floating", "complex floating"):
        expected = {} if kind == "complex floating" else theirs.dtypes(kind=kind)
        assert own.dtypes(kind=kind).keys() == expected.keys()
        assert all(getattr(xp, name) is dtype for name, dtype in own.dtypes(kind=kind).items())
    assert own.dtypes(kind=("bool", "real floating")).keys() == {"bool", "float32", "float64"}
    assert own.default_dtypes()["real floating"] is xp.float32 and own.default_dtypes()["integral"] is xp.int64
    assert kiln.jit(lambda x: xp.zeros(2))(X).dtype == "float32"
    with pytest.raises(ValueError, match="'cpu' was expected"):
        own.dtypes(device="cuda")
