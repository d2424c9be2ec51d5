"""Arrays that are made of numbers and shapes."""

from __future__ import annotations

import math
from typing import Any

from kiln._graph import current
from kiln._kiln import Dim, add_node, dim_max, same_size
from kiln._kiln import dtype as to_dtype
from kiln._traced import Traced, array_of, binary, call, convert, f32, f64, i64, is_number, lift
from kiln.array_api.shapes import broadcast_to, reshape, stack

__all__ = [
    "arange", "asarray", "empty", "empty_like", "eye", "from_dlpack", "full", "full_like", "linspace", "meshgrid", "ones",
    "ones_like", "tril", "triu", "zeros", "zeros_like"]


def asarray(obj: Any, /, *, dtype: Any = None, device: Any = None, copy: Any = None) -> Traced:
    wanted = None if dtype is None else to_dtype(dtype)
    if is_number(obj):
        return array_of(obj, wanted)
    if isinstance(obj, (list, tuple)):
        return stack([asarray(each, dtype=dtype) for each in obj])
    x = lift(obj)
    return x if wanted is None else convert(x, wanted)


def from_dlpack(x: Any, /, *, device: Any = None, copy: Any = None) -> Traced:
    """An array from outside, as those are that a function uses: nothing here writes one, so that copies are none."""
    if device not in (None, "cpu"):
        raise ValueError(f"[from_dlpack] device {device!r}, 'cpu' was expected")
    if isinstance(x, Traced):
        return x
    if not hasattr(x, "__dlpack__"):
        raise TypeError(f"[from_dlpack] a {type(x).__name__} has no __dlpack__")
    if not (hasattr(x, "dtype") and hasattr(x, "shape")):  # it says in memory alone what it is
        import numpy
        x = numpy.from_dlpack(x)
    return lift(x)


def full(shape: Any, fill_value: Any, *, dtype: Any = None, device: Any = None) -> Traced:
    x = fill_value if isinstance(fill_value, Traced) else asarray(fill_value, dtype=dtype)
    return broadcast_to(x if dtype is None else convert(x, to_dtype(dtype)), shape)


def zeros(shape: Any, *, dtype: Any = None, device: Any = None) -> Traced:
    return full(shape, 0, dtype=dtype or f32)


def ones(shape: Any, *, dtype: Any = None, device: Any = None) -> Traced:
    return full(shape, 1, dtype=dtype or f32)


empty = zeros


def full_like(x: Any, /, fill_value: Any, *, dtype: Any = None, device: Any = None) -> Traced:
    x = array_of(x)
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
    count = stop if same_size(start, 0) and same_size(step, 1) and whole else max_size(stop, start, step)
    x = Traced(add_node("iota", (), {"shape": [count], "dtype": wanted}, None, current("arange")))
    if not same_size(step, 1):
        x = binary("mul", x, step)
    if isinstance(start, Dim):
        start = Traced(add_node("size", (), {"value": start, "dtype": wanted}, None, current("arange")))
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
    count = (stop - start + step - 1) // step if step > 0 else (start - stop - step - 1) // -step
    return dim_max(count, 0)


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
    return call("tril", array_of(x), diagonal=k)


def triu(x: Any, /, *, k: int = 0) -> Traced:
    return call("triu", array_of(x), diagonal=k)


def meshgrid(*arrays: Any, indexing: str = "xy") -> list[Traced]:
    xs = [array_of(x) for x in arrays]
    order = [1, 0, *range(2, len(xs))] if indexing == "xy" and len(xs) > 1 else list(range(len(xs)))
    shape = [xs[i].shape[0] for i in order]
    return [broadcast_to(reshape(x, [x.shape[0] if i == j else 1 for j in order]), shape) for i, x in enumerate(xs)]
