"""The array API standard (2024.12) for functions that kiln.jit traces: `import kiln.array_api as xp`.

Arrays are traced ones; arrays from outside and Python numbers join them. What has a size that only a run tells
(nonzero, unique, indexing by masks) is not here: kiln.ops has nonzero, unique and masked_select.
"""

from __future__ import annotations

import math
from typing import Any, Sequence

from kiln import _kiln
from kiln._graph import current
from kiln._kiln import DType, add_node
from kiln._kiln import dtype as to_dtype
from kiln._traced import (Traced, axes, binary, bool_, call, constant, convert, f32, f64, i64, is_number, kind, lift,
                          promote, together)

__array_api_version__ = "2024.12"
e, pi, inf, nan, newaxis = math.e, math.pi, math.inf, math.nan, None
float64, float32, int64, int32, int16, int8 = f64, f32, i64, _kiln.i32, _kiln.i16, _kiln.i8
uint64, uint32, uint16, uint8, bool = _kiln.u64, _kiln.u32, _kiln.u16, _kiln.u8, bool_
float16, bfloat16 = _kiln.f16, _kiln.bf16

# Functions of the standard that arrays also have as methods, as NumPy's and torch's do.
METHODS = frozenset({"all", "any", "argmax", "argmin", "argsort", "clip", "cumulative_sum", "flip", "max", "mean",
                     "min", "prod", "repeat", "reshape", "roll", "round", "sort", "squeeze", "std", "sum", "take",
                     "var"})


def _array(x: Any) -> Traced:
    return asarray(x) if is_number(x) else lift(x)


def _float(x: Any, name: str) -> Traced:
    array = _array(x)
    if kind(array.dtype) != "f":
        raise TypeError(f"[{name}] an array of {array.dtype}: it is of floats alone")
    return array


# ---- creation

def asarray(obj: Any, /, *, dtype: Any = None, device: Any = None, copy: Any = None) -> Traced:
    wanted = None if dtype is None else to_dtype(dtype)
    if is_number(obj):
        own = bool_ if obj is True or obj is False else i64 if isinstance(obj, int) else f32
        return constant(obj, wanted or own, current("asarray"))
    if isinstance(obj, (list, tuple)):
        return stack([asarray(each, dtype=dtype) for each in obj])
    x = lift(obj)
    return x if wanted is None else convert(x, wanted)


def full(shape: Any, fill_value: Any, *, dtype: Any = None, device: Any = None) -> Traced:
    x = fill_value if isinstance(fill_value, Traced) else asarray(fill_value, dtype=dtype)
    return broadcast_to(x if dtype is None else convert(x, to_dtype(dtype)), shape)


def zeros(shape: Any, *, dtype: Any = None, device: Any = None) -> Traced:
    return full(shape, 0, dtype=dtype or f32)


def ones(shape: Any, *, dtype: Any = None, device: Any = None) -> Traced:
    return full(shape, 1, dtype=dtype or f32)


empty = zeros


def full_like(x: Any, /, fill_value: Any, *, dtype: Any = None, device: Any = None) -> Traced:
    x = _array(x)
    return full(x.shape, fill_value, dtype=dtype or x.dtype)


def zeros_like(x: Any, /, *, dtype: Any = None, device: Any = None) -> Traced:
    return full_like(x, 0, dtype=dtype)


def ones_like(x: Any, /, *, dtype: Any = None, device: Any = None) -> Traced:
    return full_like(x, 1, dtype=dtype)


empty_like = zeros_like


def arange(start: Any, /, stop: Any = None, step: Any = 1, *, dtype: Any = None, device: Any = None) -> Traced:
    if stop is None:
        start, stop = 0, start
    whole = all_ints(start, stop, step)
    wanted = to_dtype(dtype) if dtype is not None else i64 if whole else f32
    count = stop if start == 0 and step == 1 and whole else max_size(stop, start, step)
    x = Traced(add_node("iota", (), {"shape": [count], "dtype": wanted}, None, current("arange")))
    if step != 1:
        x = binary("mul", x, step)
    return x if isinstance(start, int) and start == 0 else binary("add", x, start)


def all_ints(*numbers: Any) -> Any:
    return not any_floats(*numbers)


def any_floats(*numbers: Any) -> Any:
    for number in numbers:
        if isinstance(number, float):
            return True
    return False


def max_size(stop: Any, start: Any, step: Any) -> Any:
    if isinstance(stop, (int, float)) and isinstance(start, (int, float)):
        size = math.ceil((stop - start) / step)
        return size if size > 0 else 0
    return (stop - start) // step


def linspace(start: Any, stop: Any, /, num: int, *, dtype: Any = None, device: Any = None,
             endpoint: Any = True) -> Traced:
    wanted = to_dtype(dtype) if dtype is not None else f32
    steps = num - 1 if endpoint else num
    x = Traced(add_node("iota", (), {"shape": [num], "dtype": f64}, None, current("linspace")))
    return convert(x * (float(stop - start) / (steps if steps > 0 else 1)) + float(start), wanted)


def eye(n_rows: int, n_cols: int | None = None, /, *, k: int = 0, dtype: Any = None, device: Any = None) -> Traced:
    shape, graph = [n_rows, n_rows if n_cols is None else n_cols], current("eye")
    row, column = (Traced(add_node("iota", (), {"shape": shape, "dim": dim}, None, graph)) for dim in (0, 1))
    return convert(binary("eq", row + k, column), to_dtype(dtype) if dtype is not None else f32)


def tril(x: Any, /, *, k: int = 0) -> Traced:
    return call("tril", _array(x), diagonal=k)


def triu(x: Any, /, *, k: int = 0) -> Traced:
    return call("triu", _array(x), diagonal=k)


def meshgrid(*arrays: Any, indexing: str = "xy") -> list[Traced]:
    xs = [_array(x) for x in arrays]
    order = [1, 0, *range(2, len(xs))] if indexing == "xy" and len(xs) > 1 else list(range(len(xs)))
    shape = [xs[i].shape[0] for i in order]
    return [broadcast_to(reshape(x, [x.shape[0] if i == j else 1 for j in order]), shape) for i, x in enumerate(xs)]


# ---- dtypes

def astype(x: Any, dtype: Any, /, *, copy: Any = True, device: Any = None) -> Traced:
    return convert(_array(x), to_dtype(dtype))


def result_type(*arrays_and_dtypes: Any) -> DType:
    dtypes = [x if isinstance(x, DType) else _array(x).dtype for x in arrays_and_dtypes if not is_number(x)]
    result = dtypes[0]
    for dtype in dtypes[1:]:
        result = promote(result, dtype)
    return result


def can_cast(from_: Any, to: Any, /) -> Any:
    own = from_ if isinstance(from_, DType) else from_.dtype
    try:
        return promote(own, to) is to
    except TypeError:
        return False


def isdtype(dtype: DType, kind_: Any, /) -> Any:
    if isinstance(kind_, tuple):
        for each in kind_:
            if isdtype(dtype, each):
                return True
        return False
    if isinstance(kind_, DType):
        return dtype is kind_
    names = {"bool": "b", "signed integer": "i", "unsigned integer": "u", "integral": "iu", "real floating": "f",
             "complex floating": "", "numeric": "iuf"}
    return kind(dtype) in names[kind_] if kind(dtype) else False


class finfo:
    """Bits, eps, the largest and smallest numbers of a float."""

    _FACTS = {"f64": (11, 52), "f32": (8, 23), "f16": (5, 10), "bf16": (8, 7)}

    def __init__(self, type: Any, /) -> None:
        self.dtype = type if isinstance(type, DType) else type.dtype
        exponent, mantissa = self._FACTS[self.dtype.name]
        self.bits, self.eps = 8 * self.dtype.itemsize, 2.0 ** -mantissa
        self.max = (2 - self.eps) * 2.0 ** (2 ** (exponent - 1) - 1)
        self.min, self.smallest_normal = -self.max, 2.0 ** (2 - 2 ** (exponent - 1))


class iinfo:
    """Bits, the largest and smallest numbers of an integer."""

    def __init__(self, type: Any, /) -> None:
        self.dtype = type if isinstance(type, DType) else type.dtype
        self.bits, signed = 8 * self.dtype.itemsize, kind(self.dtype) == "i"
        self.max = 2 ** (self.bits - signed) - 1
        self.min = -self.max - 1 if signed else 0


# ---- elementwise

def _unary(name: str, op: str, kinds: str) -> Any:
    def function(x: Any, /) -> Traced:
        x = _array(x)
        if kind(x.dtype) not in kinds:
            raise TypeError(f"[{name}] an array of {x.dtype} is not what it takes")
        return call(op, x)
    function.__name__ = function.__qualname__ = name
    return function


def _binary(name: str, op: str, kinds: str) -> Any:
    def function(x1: Any, x2: Any, /) -> Traced:
        if type(x1) is not Traced and type(x2) is not Traced and is_number(x1) and is_number(x2):
            raise TypeError(f"[{name}] none of the operands is an array")
        a, b = (x if type(x) is Traced or is_number(x) else lift(x) for x in (x1, x2))
        for x in (a, b):
            if isinstance(x, Traced) and kind(x.dtype) not in kinds:
                raise TypeError(f"[{name}] an array of {x.dtype} is not what it takes")
        return binary(op, a, b)
    function.__name__ = function.__qualname__ = name
    return function


for _name in ("acos", "acosh", "asin", "asinh", "atan", "atanh", "cos", "cosh", "exp", "expm1", "log", "log1p", "log2",
              "log10", "sin", "sinh", "sqrt", "tan", "tanh", "reciprocal"):
    globals()[_name] = _unary(_name, _name, "f")
for _name, _op, _kinds in (("negative", "neg", "iuf"), ("square", "square", "iuf"), ("logical_not", "not", "b")):
    globals()[_name] = _unary(_name, _op, _kinds)
for _name, _op, _kinds in (
        ("add", "add", "iuf"), ("subtract", "sub", "iuf"), ("multiply", "mul", "iuf"), ("divide", "div", "f"),
        ("floor_divide", "floor_divide", "iuf"), ("remainder", "remainder", "iuf"), ("pow", "pow", "iuf"),
        ("atan2", "atan2", "f"), ("hypot", "hypot", "f"), ("copysign", "copysign", "f"),
        ("logaddexp", "logaddexp", "f"), ("maximum", "maximum", "iuf"), ("minimum", "minimum", "iuf"),
        ("equal", "eq", "biuf"), ("not_equal", "ne", "biuf"),
        ("less", "lt", "iuf"), ("less_equal", "le", "iuf"), ("greater", "gt", "iuf"), ("greater_equal", "ge", "iuf"),
        ("logical_and", "and", "b"), ("logical_or", "or", "b"), ("logical_xor", "xor", "b"),
        ("bitwise_left_shift", "shift_left", "iu"), ("bitwise_right_shift", "shift_right", "iu")):
    globals()[_name] = _binary(_name, _op, _kinds)


def abs(x: Any, /) -> Traced:
    x = _array(x)
    return x if kind(x.dtype) == "u" else call("abs", x)


def sign(x: Any, /) -> Traced:
    return call("sign", _array(x))


def positive(x: Any, /) -> Traced:
    return _array(x)


real = conj = positive


def _rounding(name: str) -> Any:
    def function(x: Any, /) -> Traced:
        x = _array(x)
        return call(name, x) if kind(x.dtype) == "f" else x
    function.__name__ = function.__qualname__ = name
    return function


for _name in ("ceil", "floor", "round", "trunc"):
    globals()[_name] = _rounding(_name)


def _test(name: str, of_integers: Any) -> Any:
    def function(x: Any, /) -> Traced:
        x = _array(x)
        return call(name, x) if kind(x.dtype) == "f" else full(x.shape, of_integers, dtype=bool_)
    function.__name__ = function.__qualname__ = name
    return function


isfinite, isinf, isnan = _test("isfinite", True), _test("isinf", False), _test("isnan", False)


def signbit(x: Any, /) -> Traced:
    x = _float(x, "signbit")
    return binary("lt", binary("copysign", ones_like(x), x), 0.0)


def bitwise_and(x1: Any, x2: Any, /) -> Any:
    return _array(x1) & x2


def bitwise_or(x1: Any, x2: Any, /) -> Any:
    return _array(x1) | x2


def bitwise_xor(x1: Any, x2: Any, /) -> Any:
    return _array(x1) ^ x2


def bitwise_invert(x: Any, /) -> Traced:
    return ~_array(x)


def clip(x: Any, /, min: Any = None, max: Any = None) -> Traced:
    result = _array(x)
    own = result.dtype
    for op, bound in (("maximum", min), ("minimum", max)):
        if bound is not None:
            bound = float(bound) if is_number(bound) and kind(own) == "f" else bound
            result = binary(op, result, bound if is_number(bound) else convert(lift(bound), own))
    return result


def where(condition: Any, x1: Any, x2: Any, /) -> Traced:
    a, b = together("where", x1, x2)
    return call("where", _array(condition), a, b)


# ---- reductions

def _accumulated(x: Traced, dtype: Any) -> DType | None:
    """Sums of small integers are of 64 bits."""
    if dtype is not None:
        return to_dtype(dtype)
    if kind(x.dtype) in "ib":
        return i64
    return _kiln.u64 if kind(x.dtype) == "u" else None


def sum(x: Any, /, *, axis: Any = None, dtype: Any = None, keepdims: Any = False) -> Traced:
    x = _array(x)
    return _reduced("sum", x, axis, keepdims, dtype=_accumulated(x, dtype))


def prod(x: Any, /, *, axis: Any = None, dtype: Any = None, keepdims: Any = False) -> Traced:
    x = _array(x)
    return _reduced("prod", x, axis, keepdims, dtype=_accumulated(x, dtype))


def _reduced(op: str, x: Traced, axis: Any, keepdims: Any, **attrs: Any) -> Traced:
    dims = axes(x, axis)
    if not dims:  # no dims named would be all of them
        x, dims = call("unsqueeze", x, dims=[0]), [0]
        keepdims = False
    return call(op, x, dims=dims, keepdim=keepdims, **attrs)


def mean(x: Any, /, *, axis: Any = None, keepdims: Any = False) -> Traced:
    return _reduced("mean", _float(x, "mean"), axis, keepdims)


def max(x: Any, /, *, axis: Any = None, keepdims: Any = False) -> Traced:
    return _reduced("max", _array(x), axis, keepdims)


def min(x: Any, /, *, axis: Any = None, keepdims: Any = False) -> Traced:
    return _reduced("min", _array(x), axis, keepdims)


def var(x: Any, /, *, axis: Any = None, correction: float = 0.0, keepdims: Any = False) -> Traced:
    return _reduced("var", _float(x, "var"), axis, keepdims, correction=correction)


def std(x: Any, /, *, axis: Any = None, correction: float = 0.0, keepdims: Any = False) -> Traced:
    return _reduced("std", _float(x, "std"), axis, keepdims, correction=correction)


def _truth(x: Any) -> Traced:
    return convert(_array(x), bool_)


def all(x: Any, /, *, axis: Any = None, keepdims: Any = False) -> Traced:
    return _reduced("all", _truth(x), axis, keepdims)


def any(x: Any, /, *, axis: Any = None, keepdims: Any = False) -> Traced:
    return _reduced("any", _truth(x), axis, keepdims)


def count_nonzero(x: Any, /, *, axis: Any = None, keepdims: Any = False) -> Traced:
    return sum(_truth(x), axis=axis, keepdims=keepdims)


def _place(op: str, x: Any, axis: int | None, keepdims: Any) -> Traced:
    x = _array(x)
    if axis is not None:
        return call(op, x, dim=axis, keepdim=keepdims)
    flat = call(op, reshape(x, [-1]), dim=0, keepdim=False)
    return reshape(flat, [1] * x.ndim) if keepdims else flat


def argmax(x: Any, /, *, axis: int | None = None, keepdims: Any = False) -> Traced:
    return _place("argmax", x, axis, keepdims)


def argmin(x: Any, /, *, axis: int | None = None, keepdims: Any = False) -> Traced:
    return _place("argmin", x, axis, keepdims)


def _cumulative(op: str, x: Any, axis: int | None, dtype: Any, include_initial: Any, first: int) -> Traced:
    x = _array(x)
    if axis is None:
        if x.ndim != 1:
            raise ValueError(f"[{op}] an array of {x.ndim} dims needs an axis")
        axis = 0
    dim = axes(x, axis)[0]
    result = call(op, x, dim=dim, dtype=_accumulated(x, dtype))
    if not include_initial:
        return result
    shape = [1 if i == dim else size for i, size in enumerate(x.shape)]
    return concat([full(shape, first, dtype=result.dtype), result], axis=dim)


def cumulative_sum(x: Any, /, *, axis: int | None = None, dtype: Any = None, include_initial: Any = False) -> Traced:
    return _cumulative("cumsum", x, axis, dtype, include_initial, 0)


def cumulative_prod(x: Any, /, *, axis: int | None = None, dtype: Any = None, include_initial: Any = False) -> Traced:
    return _cumulative("cumprod", x, axis, dtype, include_initial, 1)


def diff(x: Any, /, *, axis: int = -1, n: int = 1, prepend: Any = None, append: Any = None) -> Traced:
    parts = [_array(part) for part in (prepend, x, append) if part is not None]
    result = concat(parts, axis=axis) if len(parts) > 1 else parts[0]
    dim = axes(result, axis)[0]
    for _ in range(n):
        before = (slice(None),) * dim
        result = result[(*before, slice(1, None))] - result[(*before, slice(None, -1))]
    return result


# ---- sorting and searching

def sort(x: Any, /, *, axis: int = -1, descending: Any = False, stable: Any = True) -> Traced:
    return Traced(add_node("sort", (_array(x).value,), {"dim": axis, "descending": descending})[0])


def argsort(x: Any, /, *, axis: int = -1, descending: Any = False, stable: Any = True) -> Traced:
    return Traced(add_node("sort", (_array(x).value,), {"dim": axis, "descending": descending})[1])


def searchsorted(x1: Any, x2: Any, /, *, side: str = "left", sorter: Any = None) -> Traced:
    a, b = together("searchsorted", x1, x2)
    return call("searchsorted", a if sorter is None else take(a, sorter), b, right=side == "right")


def isin(x1: Any, x2: Any, /, *, assume_unique: Any = False, invert: Any = False) -> Traced:
    a, b = together("isin", x1, x2)
    found = any(binary("eq", expand_dims(a, axis=-1), reshape(b, [-1])), axis=-1)
    return bitwise_invert(found) if invert else found


# ---- shapes

def reshape(x: Any, /, shape: Any, *rest: Any, copy: Any = None) -> Traced:
    sizes = [shape, *rest] if rest or not isinstance(shape, (tuple, list)) else list(shape)
    return call("reshape", _array(x), shape=sizes)


def permute_dims(x: Any, /, axes: Sequence[int]) -> Traced:
    return call("permute", _array(x), dims=list(axes))


def matrix_transpose(x: Any, /) -> Traced:
    return _array(x).mT


def moveaxis(x: Any, source: Any, destination: Any, /) -> Traced:
    x = _array(x)
    from_, to = axes(x, source), axes(x, destination)
    order = [dim for dim in range(x.ndim) if dim not in from_]
    for place, dim in sorted(zip(to, from_)):
        order.insert(place, dim)
    return permute_dims(x, order)


def expand_dims(x: Any, /, *, axis: int = 0) -> Traced:
    x = _array(x)
    if not -x.ndim - 1 <= axis <= x.ndim:
        raise IndexError(f"axis {axis}, of an array that gets {x.ndim + 1} dims")
    return call("unsqueeze", x, dims=[axis % (x.ndim + 1)])


def squeeze(x: Any, /, axis: Any) -> Traced:
    x = _array(x)
    return call("squeeze", x, dims=axes(x, axis))


def flip(x: Any, /, *, axis: Any = None) -> Traced:
    x = _array(x)
    return call("flip", x, dims=axes(x, axis)) if x.ndim else x


def roll(x: Any, /, shift: Any, *, axis: Any = None) -> Traced:
    x = _array(x)
    if axis is None:
        return reshape(roll(reshape(x, [-1]), shift, axis=0), x.shape)
    dims = axes(x, axis)
    return call("roll", x, shifts=list(shift) if isinstance(shift, (tuple, list)) else [shift] * len(dims), dims=dims)


def repeat(x: Any, repeats: int, /, *, axis: int | None = None) -> Traced:
    x = _array(x)
    if not isinstance(repeats, int):
        raise TypeError("[repeat] repeats is an int here: sizes follow from shapes")
    return call("repeat_interleave", reshape(x, [-1]) if axis is None else x, repeats=repeats,
                dim=0 if axis is None else axes(x, axis)[0])


def tile(x: Any, repetitions: Sequence[int], /) -> Traced:
    x = _array(x)
    repeats = [*[1] * (x.ndim - len(repetitions)), *repetitions]
    if len(repeats) > x.ndim:
        x = reshape(x, [*[1] * (len(repeats) - x.ndim), *x.shape])
    return call("tile", x, repeats=repeats) if repeats else x


def concat(arrays: Any, /, *, axis: int | None = 0) -> Traced:
    xs = together("concat", *arrays)
    return call("concat", *([reshape(x, [-1]) for x in xs] if axis is None else xs),
                dim=0 if axis is None else axes(xs[0], axis)[0])


def stack(arrays: Any, /, *, axis: int = 0) -> Traced:
    xs = together("stack", *arrays)
    return call("stack", *xs, dim=axis % (xs[0].ndim + 1))


def unstack(x: Any, /, *, axis: int = 0) -> tuple[Traced, ...]:
    x = _array(x)
    dim = axes(x, axis)[0]
    return tuple(x[(*(slice(None),) * dim, i)] for i in range(x.shape[dim]))


def broadcast_to(x: Any, /, shape: Any) -> Traced:
    sizes = [shape] if not isinstance(shape, (tuple, list)) else list(shape)
    return call("expand", _array(x), shape=sizes)


def broadcast_shapes(*shapes: Any) -> tuple[Any, ...]:
    result: list[Any] = []
    for shape in shapes:
        longer, shorter = (list(shape), result) if len(shape) > len(result) else (result, list(shape))
        at = len(longer) - len(shorter)
        for i, size in enumerate(shorter):
            own = longer[at + i]
            if own == 1:
                longer[at + i] = size
            elif not (isinstance(size, int) and size == 1) and own != size:
                raise ValueError(f"shapes {', '.join(map(str, shapes))} do not broadcast")
        result = longer
    return tuple(result)


def broadcast_arrays(*arrays: Any) -> list[Traced]:
    xs = [_array(x) for x in arrays]
    shape = broadcast_shapes(*(x.shape for x in xs))
    return [broadcast_to(x, shape) for x in xs]


# ---- indexing

def _from_start(index: Traced, size: Any, graph: Any) -> Traced:
    """Indices below 0 count from the end."""
    if isinstance(size, int):
        return where(binary("lt", index, 0), binary("add", index, size), index)
    length = Traced(add_node("size", (), {"value": size, "dtype": index.dtype}, None, graph))
    return where(binary("lt", index, 0), binary("add", index, length), index)


def take(x: Any, indices: Any, /, *, axis: int | None = None) -> Traced:
    x = _array(x)
    dim = 0 if axis is None else axes(x, axis)[0]
    index = _array(indices)
    if kind(index.dtype) == "u" or index.dtype.itemsize < 4:
        index = convert(index, i64)
    shape = (*x.shape[:dim], *index.shape, *x.shape[dim + 1:])
    flat = call("index_select", x, reshape(_from_start(index, x.shape[dim], x.value.graph), [-1]), dim=dim)
    return flat if index.ndim == 1 else reshape(flat, shape)


def take_along_axis(x: Any, indices: Any, /, *, axis: int = -1) -> Traced:
    x, index = _array(x), _array(indices)
    dim = axes(x, axis)[0]
    return call("take_along", x, _from_start(index, x.shape[dim], x.value.graph), dim=dim)


# ---- products

def matmul(x1: Any, x2: Any, /) -> Traced:
    return call("matmul", *together("matmul", x1, x2))


def vecdot(x1: Any, x2: Any, /, *, axis: int = -1) -> Traced:
    a, b = together("vecdot", x1, x2)
    product = binary("mul", moveaxis(a, axis, -1), moveaxis(b, axis, -1))
    return call("sum", product, dims=[product.ndim - 1])


def tensordot(x1: Any, x2: Any, /, *, axes: Any = 2) -> Traced:
    a, b = together("tensordot", x1, x2)
    if isinstance(axes, int):
        left, right = list(range(a.ndim - axes, a.ndim)), list(range(axes))
    else:
        left, right = [dim % a.ndim for dim in axes[0]], [dim % b.ndim for dim in axes[1]]
    letters = iter("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
    first = [next(letters) for _ in range(a.ndim)]
    second = [first[left[right.index(dim)]] if dim in right else next(letters) for dim in range(b.ndim)]
    kept = [first[i] for i in range(a.ndim) if i not in left] + [second[i] for i in range(b.ndim) if i not in right]
    return call("einsum", a, b, equation=f"{''.join(first)},{''.join(second)}->{''.join(kept)}")
