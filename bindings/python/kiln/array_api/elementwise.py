"""Functions of each element."""

from __future__ import annotations

from typing import Any

from kiln._traced import Traced, array_of, binary, bool_, call, convert, float_of, is_number, kind, lift, together
from kiln.array_api.creation import full, ones_like
from kiln.array_api.dtypes import finfo

__all__ = [
    "abs", "bitwise_and", "bitwise_invert", "bitwise_or", "bitwise_xor", "clip", "conj", "imag", "isfinite", "isinf",
    "isnan", "nextafter", "positive", "real", "sign", "signbit", "where"]


MADE: dict[str, Any] = {}  # functions that differ in their op alone


def _unary(name: str, op: str, kinds: str) -> Any:
    def function(x: Any, /) -> Traced:
        x = array_of(x)
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
    MADE[_name] = _unary(_name, _name, "f")
for _name, _op, _kinds in (("negative", "neg", "iuf"), ("square", "square", "iuf"), ("logical_not", "not", "b")):
    MADE[_name] = _unary(_name, _op, _kinds)
for _name, _op, _kinds in (
        ("add", "add", "iuf"), ("subtract", "sub", "iuf"), ("multiply", "mul", "iuf"), ("divide", "div", "f"),
        ("floor_divide", "floor_divide", "iuf"), ("remainder", "remainder", "iuf"), ("pow", "pow", "iuf"),
        ("atan2", "atan2", "f"), ("hypot", "hypot", "f"), ("copysign", "copysign", "f"),
        ("logaddexp", "logaddexp", "f"), ("maximum", "maximum", "iuf"), ("minimum", "minimum", "iuf"),
        ("equal", "eq", "biuf"), ("not_equal", "ne", "biuf"),
        ("less", "lt", "iuf"), ("less_equal", "le", "iuf"), ("greater", "gt", "iuf"), ("greater_equal", "ge", "iuf"),
        ("logical_and", "and", "b"), ("logical_or", "or", "b"), ("logical_xor", "xor", "b"),
        ("bitwise_left_shift", "shift_left", "iu"), ("bitwise_right_shift", "shift_right", "iu")):
    MADE[_name] = _binary(_name, _op, _kinds)


def abs(x: Any, /) -> Traced:
    x = array_of(x)
    return x if kind(x.dtype) == "u" else call("abs", x)


def sign(x: Any, /) -> Traced:
    return call("sign", array_of(x))


def positive(x: Any, /) -> Traced:
    return array_of(x)


real = conj = positive  # numbers here have no imaginary part


def imag(x: Any, /) -> Traced:
    raise TypeError(f"[imag] an array of {array_of(x).dtype}: it is of complex numbers alone, which Kiln has not")


def _rounding(name: str) -> Any:
    def function(x: Any, /) -> Traced:
        x = array_of(x)
        return call(name, x) if kind(x.dtype) == "f" else x
    function.__name__ = function.__qualname__ = name
    return function


for _name in ("ceil", "floor", "round", "trunc"):
    MADE[_name] = _rounding(_name)


def _test(name: str, of_integers: Any) -> Any:
    def function(x: Any, /) -> Traced:
        x = array_of(x)
        return call(name, x) if kind(x.dtype) == "f" else full(x.shape, of_integers, dtype=bool_)
    function.__name__ = function.__qualname__ = name
    return function


isfinite, isinf, isnan = _test("isfinite", True), _test("isinf", False), _test("isnan", False)


def signbit(x: Any, /) -> Traced:
    x = float_of(x, "signbit")
    return binary("lt", binary("copysign", ones_like(x), x), 0.0)


def bitwise_and(x1: Any, x2: Any, /) -> Any:
    return array_of(x1) & x2


def bitwise_or(x1: Any, x2: Any, /) -> Any:
    return array_of(x1) | x2


def bitwise_xor(x1: Any, x2: Any, /) -> Any:
    return array_of(x1) ^ x2


def bitwise_invert(x: Any, /) -> Traced:
    return ~array_of(x)


def clip(x: Any, /, min: Any = None, max: Any = None) -> Traced:
    result = array_of(x)
    own = result.dtype
    for op, bound in (("maximum", min), ("minimum", max)):
        if bound is not None:
            bound = float(bound) if is_number(bound) and kind(own) == "f" else bound
            result = binary(op, result, bound if is_number(bound) else convert(lift(bound), own))
    return result


def where(condition: Any, x1: Any, x2: Any, /) -> Traced:
    a, b = together("where", x1, x2)
    return call("where", array_of(condition), a, b)


def nextafter(x1: Any, x2: Any, /) -> Traced:
    """x1 and a bit more than half of its last place, which rounds to the next number; numbers so small that this would be
    rounded itself are made larger first (Rump et al., Computing predecessor and successor in rounding to nearest)."""
    a, b = (float_of(x, "nextafter") for x in together("nextafter", x1, x2))
    told = finfo(a.dtype)
    half, least, normal = told.eps / 2, told.smallest_normal * told.eps, told.smallest_normal
    size, up = call("abs", a), binary("lt", a, b)

    def moved(by: Any, from_: Traced) -> Traced:
        return where(up, binary("add", from_, by), binary("sub", from_, by))
    is_small = binary("lt", size, 2 * normal / half)
    scaled = where(is_small, binary("mul", a, 1 / half), a)
    result = moved(binary("mul", call("abs", scaled), half * (1 + 2 * half)), scaled)
    result = where(is_small, binary("mul", result, half), result)
    result = where(binary("lt", size, 2 * normal), moved(least, a), result)
    result = where(binary("eq", result, 0.0), binary("copysign", result, a), result)
    result = where(isinf(a), binary("copysign", full(a.shape, told.max, dtype=a.dtype), a), result)
    return where(binary("eq", a, b), b, where(isnan(b), b, result))
