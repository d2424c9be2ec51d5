"""Sorting and searching."""

from __future__ import annotations

from typing import Any

from kiln._kiln import add_node
from kiln._traced import Traced, array_of, binary, call, together
from kiln.array_api.elementwise import bitwise_invert
from kiln.array_api.reductions import any
from kiln.array_api.shapes import expand_dims, reshape
from kiln.array_api.indexing import take

__all__ = ["argsort", "isin", "searchsorted", "sort"]


def sort(x: Any, /, *, axis: int = -1, descending: Any = False, stable: Any = True) -> Traced:
    return Traced(add_node("sort", (array_of(x).value,), {"dim": axis, "descending": descending})[0])


def argsort(x: Any, /, *, axis: int = -1, descending: Any = False, stable: Any = True) -> Traced:
    return Traced(add_node("sort", (array_of(x).value,), {"dim": axis, "descending": descending})[1])


def searchsorted(x1: Any, x2: Any, /, *, side: str = "left", sorter: Any = None) -> Traced:
    a, b = together("searchsorted", x1, x2)
    return call("searchsorted", a if sorter is None else take(a, sorter), b, right=side == "right")


def isin(x1: Any, x2: Any, /, *, assume_unique: Any = False, invert: Any = False) -> Traced:
    a, b = together("isin", x1, x2)
    found = any(binary("eq", expand_dims(a, axis=-1), reshape(b, [-1])), axis=-1)
    return bitwise_invert(found) if invert else found
