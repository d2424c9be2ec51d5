"""The mapping from ATen to Kiln: a row an overload. Rows are said in kiln/torch/aten, one file an op family."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any, Callable, Iterator

import torch

# What torch calls element types, and what Kiln does. A tensor of another type (complex, quantized) stays in torch.
DTYPES: dict[torch.dtype, str] = {
    torch.float64: "f64", torch.float32: "f32", torch.float16: "f16", torch.bfloat16: "bf16", torch.int64: "i64",
    torch.int32: "i32", torch.int16: "i16", torch.int8: "i8", torch.uint64: "u64", torch.uint32: "u32",
    torch.uint16: "u16", torch.uint8: "u8", torch.bool: "bool", torch.float8_e4m3fn: "f8_e4m3fn",
    torch.float8_e5m2: "f8_e5m2"}
TORCH_DTYPES = {name: dtype for dtype, name in DTYPES.items()}

FLOATS = frozenset({"f64", "f32", "f16", "bf16"})
INTEGERS = frozenset({"i64", "i32", "i16", "i8", "u64", "u32", "u16", "u8"})
NUMBERS = FLOATS | INTEGERS
REAL = NUMBERS | {"bool"}
ANY = frozenset(DTYPES.values())
SMALL_FLOATS = frozenset({"f16", "bf16"})


class Unsupported(Exception):
    """Why a node stays in torch."""


@dataclass(frozen=True)
class Row:
    """An ATen overload: what makes it of Kiln's ops, and when."""

    overload: str  # "add.Tensor"; of another namespace than aten's "NAMESPACE::NAME.OVERLOAD", or "higher_order::NAME"
    ops: tuple[str, ...]  # of Kiln's, that it is made of
    dtypes: frozenset[str]  # that its tensors may have
    make: Callable[..., Any]  # of a Lowering, then the overload's arguments
    view: bool = False  # the result lies in the first operand's memory
    when: str = ""  # which calls it takes, where not all; `make` raises Unsupported for others

    @property
    def name(self) -> str:
        """As torch prints it: "aten.add.Tensor"; of a function of functions "higher_order.flex_attention"."""
        namespace, _, said = self.overload.rpartition("::")
        return f"{namespace or 'aten'}.{said}"

    @property
    def target(self) -> Any:
        """The overload; that of a library's op is there once the library is imported."""
        found = torch.ops
        for part in self.name.split("."):
            found = getattr(found, part)
        return found


_ROWS: dict[str, Row] = {}


def row(overloads: str, ops: str, dtypes: frozenset[str] = ANY, *, view: bool = False,
        when: str = "") -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Says that the function makes these overloads (names with spaces between them) of these ops of Kiln's.

    It is given a Lowering, then what the overload is: of tensors Kiln's values, of sizes ints and Dims.
    """
    def add(make: Callable[..., Any]) -> Callable[..., Any]:
        for name in overloads.split():
            said = Row(name, tuple(ops.split()), dtypes, make, view, when)
            if said.name in _ROWS:
                raise ValueError(f"two rows for {said.name}")
            _ROWS[said.name] = said
        return make
    return add


@cache
def find(target: Any) -> Row | None:
    """The row of an overload, None where there is none."""
    from kiln.torch import aten  # noqa: F401  (says all rows)
    if isinstance(target, torch._ops.HigherOrderOperator):
        name: Any = target.name  # which torch has no type for
        return _ROWS.get(f"higher_order.{name()}")
    return _ROWS.get(str(target)) if isinstance(target, torch._ops.OpOverload) else None


# Why there is no row, by what an op's name begins with.
_REASONS = {
    "linear algebra, which Kiln has not": (
        "linalg_", "_linalg_", "cholesky", "lu_", "geqrf", "ormqr", "triangular_solve", "_compute_linear"),
    "complex numbers, which Kiln has not": ("_fft_", "view_as_", "_conj", "complex", "polar", "real", "imag"),
    "a special function that Kiln has not": (
        "special_", "i0", "igamma", "polygamma", "mvlgamma", "zeta"),
}


def why_none(target: Any) -> str:
    """Why an op without a row stays in torch."""
    if not isinstance(target, torch._ops.OpOverload):
        return "Kiln has no row for it"
    for tag, reason in ((torch.Tag.dynamic_output_shape, "the size of its result is known when it runs"),
                        (torch.Tag.data_dependent_output, "it makes a number of an element"),
                        (torch.Tag.nondeterministic_seeded, "it draws random numbers, which are torch's")):
        if tag in target.tags:
            return reason
    name = target._schema.name.removeprefix("aten::")
    for reason, begins in _REASONS.items():
        if name.startswith(begins):
            return reason
    return "Kiln has no row for it"


def rows() -> Iterator[Row]:
    """All rows, in the order of their files."""
    find(None)
    yield from _ROWS.values()


def coverage() -> str:
    """A line a row: the overload, Kiln's ops, types, and which calls are taken."""
    lines = []
    for each in rows():
        lines.append(f"{each.overload:48} {' '.join(each.ops):40} {' '.join(sorted(each.dtypes))}"
                     + (f"; {each.when}" if each.when else ""))
    return "\n".join(lines)
