"""Sizes: torch's SymInts, which are expressions of sympy's, as Kiln's. None is ever evaluated."""

from __future__ import annotations

import math
from typing import Any, Callable, Sequence

import sympy  # type: ignore[import-untyped]
import torch

import kiln
from kiln.torch import _torch
from kiln.torch.rows import Unsupported


def _text(e: Any) -> str:
    if e.is_Integer:
        return str(int(e))
    if e.is_Symbol:
        return str(e)
    args = [_text(arg) for arg in e.args]
    if e.is_Add:
        return "(" + " + ".join(args) + ")"
    if e.is_Mul:
        return "(" + " * ".join(args) + ")"
    if e.is_Pow and e.exp.is_Integer and 0 < int(e.exp) < 8:
        return "(" + " * ".join([args[0]] * int(e.exp)) + ")"
    for kinds, write in _FUNCTIONS:
        if isinstance(e, kinds):
            return str(write(args))
    raise Unsupported(f"size {e}: Kiln has no {type(e).__name__} of sizes")


def _nested(function: str, args: list[str]) -> str:
    text = args[0]
    for arg in args[1:]:
        text = f"{function}({text}, {arg})"
    return text


_FUNCTIONS: list[tuple[Any, Any]] = [
    ((_torch.Max, sympy.Max), lambda args: _nested("max", args)),
    ((_torch.Min, sympy.Min), lambda args: _nested("min", args)),
    (_torch.CleanDiv, lambda args: f"({args[0]} / {args[1]})"),
    (_torch.FloorDiv, lambda args: f"({args[0]} // {args[1]})"),
    ((_torch.Mod, _torch.PythonMod), lambda args: f"({args[0]} % {args[1]})"),
    (_torch.ModularIndexing, lambda args: f"(({args[0]} // {args[1]}) % {args[2]})"),
]


def to_dim(size: Any) -> int | kiln.Dim:
    """A size of torch's as Kiln has it."""
    e = _torch.expr(size)
    if isinstance(e, int):
        return e
    if isinstance(size, torch.SymBool | torch.SymFloat):
        raise Unsupported(f"{type(size).__name__} {e}: only integers are sizes of Kiln's")
    return int(e) if e.is_Integer else kiln.Dim(_text(e))


def to_dims(sizes: Sequence[Any]) -> list[int | kiln.Dim]:
    return [to_dim(size) for size in sizes]


def fraction(e: Any, op: Callable[..., kiln.Value]) -> kiln.Value:
    """A number that is made of sizes, as a scalar of f64; `op` adds a node."""
    if e.is_Number:
        return op("full", value=float(e), dtype="f64", shape=[])
    for kinds, name in ((_torch.IntTrueDiv | _torch.FloatTrueDiv, "div"), (sympy.Mul, "mul"), (sympy.Add, "add")):
        if isinstance(e, kinds) and not e.is_integer:
            made = fraction(e.args[0], op)
            for arg in e.args[1:]:
                made = op(name, made, fraction(arg, op))
            return made
    whole = e.args[0] if isinstance(e, _torch.ToFloat) else e
    if not whole.is_integer:
        raise Unsupported(f"{e}: Kiln has no {type(e).__name__} of sizes")
    text = _text(whole)
    return op("size", value=int(text) if text.isdigit() else kiln.Dim(text), dtype="f64")


def _plain(e: Any) -> Any:
    """Without the max(1, n) that torch has in strides."""
    if isinstance(e, int):
        return sympy.Integer(e)
    return e.replace(lambda x: isinstance(x, _torch.Max | sympy.Max) and sympy.S.One in x.args and len(x.args) == 2,
                     lambda x: next(arg for arg in x.args if arg != 1))


def known(size: Any) -> int | None:
    """A size that is no expression; None of others."""
    e = size if type(size) is int else _torch.expr(size)
    return e if isinstance(e, int) else int(e) if e.is_Integer else None


def strides_of(value: torch.Tensor) -> list[int | kiln.Dim] | None:
    """A tensor's strides; None: it is row-major."""
    sizes = [known(size) for size in value.shape]
    if 0 in sizes:
        return None
    strides = [known(stride) for stride in value.stride()]
    if None not in sizes and None not in strides:
        return None if _row_major(sizes, strides) else strides  # type: ignore[arg-type,return-value]
    return _symbolic_strides_of(value)


def strides_of_result(value: torch.Tensor) -> list[int | kiln.Dim] | None:
    """The same, as a user sees them: those of dims of one element or of none, too, of which no memory tells."""
    strides, sizes = ([known(each) for each in all_] for all_ in (value.stride(), value.shape))
    if None in strides or None in sizes:
        return strides_of(value)
    return None if _row_major(sizes, strides, to_the_letter=True) else strides  # type: ignore[arg-type,return-value]


def _row_major(sizes: list[int], strides: list[int], to_the_letter: bool = False) -> bool:
    """`to_the_letter`: of dims of one element, too, which may have any stride."""
    step = 1
    for size, stride in zip(reversed(sizes), reversed(strides)):
        if (size != 1 or to_the_letter) and stride != step:
            return False
        step *= size
    return True


def _symbolic_strides_of(value: torch.Tensor) -> list[int | kiln.Dim] | None:
    sizes = [_plain(_torch.expr(size)) for size in value.shape]
    strides = [_torch.expr(stride) for stride in value.stride()]
    step, row_major = sympy.S.One, True
    for size, stride in zip(reversed(sizes), reversed(strides)):
        if size != 1:
            row_major = row_major and _plain(stride) == step
        step = sympy.expand(step * size)
    return None if row_major else to_dims(value.stride())


def memory_order(value: torch.Tensor) -> list[int] | None:
    """The dims from the outermost to the innermost in memory; None where elements do not lie dense, or none knows."""
    strides = [known(stride) for stride in value.stride()]
    if None in strides:
        return None
    order = sorted(range(len(strides)), key=lambda dim: -(strides[dim] or 0))
    return order if strides_of(value.permute(order)) is None else None


def overlaps(value: torch.Tensor) -> bool:
    """Whether two elements are one, or may be: of sizes that are not known, as far as strides of 0 tell."""
    dims = list(zip(map(_torch.expr, value.shape), map(_torch.expr, value.stride())))
    if any(stride == 0 and size != 1 for size, stride in dims):
        return True
    if any(known(each) is None for each in (*value.shape, *value.stride())):
        return False
    reach = 0  # how far from the first the last element of the dims inside lies
    for stride, size in sorted((int(stride), int(size)) for size, stride in dims if size != 1):
        if stride <= reach:
            return True
        reach += stride * (size - 1)
    return False


def numel(value: torch.Tensor) -> Any:
    """How many elements, as an int or sympy's expression."""
    sizes = [_torch.expr(size) for size in value.shape]
    product: Any = math.prod(size for size in sizes if isinstance(size, int))
    for size in sizes:
        if not isinstance(size, int):
            product = sympy.expand(product * size)
    return product


def bare_symbols(value: torch.Tensor) -> dict[str, int]:
    """The symbols that a tensor's dims bind, each with the first such dim."""
    found: dict[str, int] = {}
    for dim, size in enumerate(value.shape):
        e = _torch.expr(size)
        if not isinstance(e, int) and e.is_Symbol:
            found.setdefault(str(e), dim)
    return found
