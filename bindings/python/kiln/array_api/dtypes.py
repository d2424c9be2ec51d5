"""Element types, what they become together, and facts of them."""

from __future__ import annotations

from typing import Any

from kiln._kiln import DType
from kiln._kiln import dtype as to_dtype
from kiln._traced import Traced, array_of, convert, is_number, kind, promote

__all__ = ["astype", "can_cast", "finfo", "iinfo", "isdtype", "result_type"]


def astype(x: Any, dtype: Any, /, *, copy: Any = True, device: Any = None) -> Traced:
    return convert(array_of(x), to_dtype(dtype))


def result_type(*arrays_and_dtypes: Any) -> DType:
    dtypes = [x if isinstance(x, DType) else array_of(x).dtype for x in arrays_and_dtypes if not is_number(x)]
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
