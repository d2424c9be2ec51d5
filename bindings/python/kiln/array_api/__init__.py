"""The array API standard (2024.12) for functions that kiln.jit traces: `import kiln.array_api as xp`.

Arrays are traced ones; arrays from outside and Python numbers join them. What has a size that only a run tells
(nonzero, unique, indexing by masks) is not here: kiln.ops has nonzero, unique and masked_select.
"""

from __future__ import annotations

import math
from typing import Any

from kiln import _kiln
from kiln._traced import bool_, f32, f64, i64
from kiln.array_api import elementwise
from kiln.array_api.creation import *
from kiln.array_api.dtypes import *
from kiln.array_api.elementwise import *
from kiln.array_api.indexing import *
from kiln.array_api.info import __array_namespace_info__
from kiln.array_api.products import *
from kiln.array_api.reductions import *
from kiln.array_api.searching import *
from kiln.array_api.shapes import *

__array_api_version__ = "2024.12"
e, pi, inf, nan, newaxis = math.e, math.pi, math.inf, math.nan, None
float64, float32, int64, int32, int16, int8 = f64, f32, i64, _kiln.i32, _kiln.i16, _kiln.i8
uint64, uint32, uint16, uint8, bool = _kiln.u64, _kiln.u32, _kiln.u16, _kiln.u8, bool_
float16, bfloat16 = _kiln.f16, _kiln.bf16

# Functions of the standard that arrays also have as methods, as NumPy's and torch's do.
METHODS = frozenset({"all", "any", "argmax", "argmin", "argsort", "clip", "cumulative_sum", "flip", "max", "mean",
                     "min", "prod", "repeat", "reshape", "roll", "round", "sort", "squeeze", "std", "sum", "take",
                     "var"})


def __getattr__(name: str) -> Any:
    """Functions of tables (exp, add, ...)."""
    if name in elementwise.MADE:
        return elementwise.MADE[name]
    raise AttributeError(f"module 'kiln.array_api' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *elementwise.MADE})
