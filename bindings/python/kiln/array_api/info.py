"""What of the standard there is: `__array_namespace_info__`."""

from __future__ import annotations

from typing import Any

from kiln import _kiln
from kiln._kiln import DType
from kiln._traced import bool_, f32, f64, i64
from kiln.array_api.dtypes import isdtype

__all__ = ["__array_namespace_info__"]

_DTYPES: dict[str, DType] = {
    "bool": bool_, "float32": f32, "float64": f64, "int8": _kiln.i8, "int16": _kiln.i16, "int32": _kiln.i32, "int64": i64,
    "uint8": _kiln.u8, "uint16": _kiln.u16, "uint32": _kiln.u32, "uint64": _kiln.u64}


class __array_namespace_info__:
    """Inquiries of the standard. `device` is "cpu" or None: arrays of a function that is traced are on no other."""

    def capabilities(self) -> dict[str, Any]:
        return {"boolean indexing": False, "data-dependent shapes": False, "max dimensions": 64}

    def default_device(self) -> str:
        return "cpu"

    def devices(self) -> list[str]:
        return ["cpu"]

    def default_dtypes(self, *, device: Any = None) -> dict[str, DType]:
        """Of complex numbers there are none, and so is their default."""
        _check(device)
        return {"real floating": f32, "integral": i64, "indexing": i64}

    def dtypes(self, *, device: Any = None, kind: Any = None) -> dict[str, DType]:
        _check(device)
        return {name: dtype for name, dtype in _DTYPES.items() if kind is None or isdtype(dtype, kind)}


def _check(device: Any) -> None:
    if device not in (None, "cpu"):
        raise ValueError(f"device {device!r}, 'cpu' was expected")
