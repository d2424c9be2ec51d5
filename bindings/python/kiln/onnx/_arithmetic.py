"""Arithmetic of numbers that are known when the model is read, as arrays of NumPy's, or when it runs, as values."""

from __future__ import annotations

from typing import Any

import numpy as np

import kiln
from kiln import Value, ops
from kiln._graph import current
from kiln.onnx._types import Size, numpy_type

Number = Any
"""A Python number, an array of NumPy's or a Value, of f64 or bools; operators take them together."""


def number_of(size: Size) -> Number:
    """A size as a float."""
    return ops.convert(ops.size(value=size), dtype="f64") if isinstance(size, kiln.Dim) else float(size)


def counted(size: Size) -> Number:
    """0, 1, ... up to before a size."""
    if isinstance(size, kiln.Dim):
        return ops.convert(ops.iota(shape=[size]), dtype="f64")
    return np.arange(size, dtype=np.float64)


def floor(x: Number) -> Number:
    """The next integer below."""
    return ops.floor(x) if isinstance(x, Value) else np.floor(x)


def ceil(x: Number) -> Number:
    """The next integer above."""
    return ops.ceil(x) if isinstance(x, Value) else np.ceil(x)


def absolute(x: Number) -> Number:
    """Without its sign."""
    return ops.abs(x) if isinstance(x, Value) else np.abs(x)


def clip(x: Number, low: float, high: Number) -> Number:
    """As near as between two numbers."""
    if isinstance(x, Value) or isinstance(high, Value):
        return ops.minimum(ops.maximum(value_of(x), float(low)), high)
    return np.clip(x, low, high)


def where(condition: Any, yes: Number, no: Number) -> Number:
    """One of two numbers, element by element."""
    if not isinstance(condition, Value):
        return np.where(condition, yes, no) if isinstance(condition, np.ndarray) else yes if condition else no
    return ops.where(condition, value_of(yes), value_of(no))


def stored(x: Number, dtype: str) -> Value:
    """As a value of another type."""
    if isinstance(x, Value):
        return ops.convert(x, dtype=dtype)
    return current("constant").constant(np.asarray(x).astype(numpy_type(dtype)))


def value_of(x: Number) -> Value:
    """The same as a value."""
    if isinstance(x, Value):
        return x
    return current("constant").constant(np.asarray(x, np.float64))
