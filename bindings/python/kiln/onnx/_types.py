"""Element types and sizes: ONNX's, NumPy's and Kiln's."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import onnx_ir as ir

import kiln

Size = Any
"""An int or a kiln.Dim."""

_TYPES = {
    ir.DataType.DOUBLE: "f64", ir.DataType.FLOAT: "f32", ir.DataType.FLOAT16: "f16", ir.DataType.BFLOAT16: "bf16",
    ir.DataType.FLOAT8E4M3FN: "f8_e4m3fn", ir.DataType.FLOAT8E5M2: "f8_e5m2", ir.DataType.INT64: "i64",
    ir.DataType.INT32: "i32", ir.DataType.INT16: "i16", ir.DataType.INT8: "i8", ir.DataType.UINT64: "u64",
    ir.DataType.UINT32: "u32", ir.DataType.UINT16: "u16", ir.DataType.UINT8: "u8", ir.DataType.BOOL: "bool"}
_NUMPY: dict[str, Any] = {
    "f64": np.float64, "f32": np.float32, "f16": np.float16, "bf16": ml_dtypes.bfloat16,
    "f8_e4m3fn": ml_dtypes.float8_e4m3fn, "f8_e5m2": ml_dtypes.float8_e5m2, "i64": np.int64, "i32": np.int32,
    "i16": np.int16, "i8": np.int8, "u64": np.uint64, "u32": np.uint32, "u16": np.uint16, "u8": np.uint8,
    "bool": np.bool_}
_NAMES = {np.dtype(numpy): name for name, numpy in _NUMPY.items()}

FLOATS = ("f64", "f32", "f16", "bf16")
SIGNED = ("i64", "i32", "i16", "i8")
UNSIGNED = ("u64", "u32", "u16", "u8")
INTEGERS = SIGNED + UNSIGNED


def dtype_of(type_: ir.DataType | int) -> str | None:
    """Kiln's name of an element type of ONNX's; None where Kiln has none."""
    return _TYPES.get(ir.DataType(type_))


def onnx_type(dtype: str) -> ir.DataType:
    """The other way round."""
    return next(type_ for type_, name in _TYPES.items() if name == dtype)


def numpy_type(dtype: str) -> np.dtype[Any]:
    """NumPy's type of one of Kiln's."""
    made: np.dtype[Any] = np.dtype(_NUMPY[dtype])
    return made


def dtype_of_array(array: np.ndarray[Any, Any]) -> str:
    """Kiln's name of an array's type; not of sizes, which are i64 or i32."""
    return _NAMES[array.dtype]


def of_four_bits(array: np.ndarray[Any, Any]) -> bool:
    """Whether it holds numbers of 4 bits, which Kiln has as weights alone."""
    return array.dtype in (ml_dtypes.int4, ml_dtypes.uint4)


def is_literal(array: np.ndarray[Any, Any]) -> bool:
    """Whether no element is a size that is known when the program runs."""
    return bool(array.dtype != object)


def plain(array: np.ndarray[Any, Any], dtype: str = "i64") -> np.ndarray[Any, Any]:
    """Elements that are sizes, as an array of the dtype where all of them are numbers."""
    if array.dtype == object and all(not isinstance(each, kiln.Dim) for each in array.flat):
        return array.astype(numpy_type(dtype))
    return array


def sizes(array: np.ndarray[Any, Any]) -> list[Size]:
    """The elements of an array of sizes, as ints and Dims."""
    return [each if isinstance(each, kiln.Dim) else int(each) for each in array.flat]


def at_least(size: Size, bound: Size) -> bool:
    """Whether it is so for all values that symbols can have."""
    return bool(kiln.dim_max(size, bound) == size)


def equal(a: Size, b: Size) -> bool | None:
    """Whether two sizes are equal for all values of their symbols; None where that depends on them."""
    difference = a - b
    if isinstance(difference, int):
        return difference == 0
    return False if at_least(difference, 1) or at_least(-difference, 1) else None


def product(factors: Any) -> Size:
    """Of sizes."""
    result: Size = 1
    for factor in factors:
        result = result * factor
    return result
