"""Which function converts which ONNX op: `@op("Clip", since=7)`.

A function is given the node, then an argument for each of the node's inputs. Its annotations say what it wants of an
input: a `Value` of the graph, or elements that are `Known` when the model is read (axes, sizes, ...), or the
`Tensor` with all that is known of it. `| None` are those that may be absent, `*name` all that remain.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import kiln

# An annotation: elements known when the model is read; ints and Dims, or a NumPy array of the input's dtype.
Known = Any
# What a function gives: a value, several, or (a known one's) elements.
Results = Any

NEWEST = 28
"""The newest opset of ONNX's own domain whose ops were gone through."""

OLDEST = 7


@dataclass(frozen=True)
class Parameter:
    """One input of an op, as its function wants it."""

    name: str
    kind: str
    optional: bool
    variadic: bool


@dataclass(frozen=True)
class Conversion:
    """The function of an op from one version of its domain on."""

    op: str
    domain: str
    since: int
    function: Callable[..., Results]
    parameters: tuple[Parameter, ...]
    ignores: frozenset[str]


_conversions: dict[tuple[str, str], list[Conversion]] = {}


def _parameters(function: Callable[..., Results]) -> tuple[Parameter, ...]:
    made = []
    for parameter in list(inspect.signature(function).parameters.values())[1:]:
        wanted = str(parameter.annotation)
        base = wanted.removesuffix(" | None")
        if base not in ("Value", "Known", "Tensor"):
            raise TypeError(f"{function.__name__}: '{parameter.name}' is a {wanted}, Value, Known or Tensor was expected")
        made.append(Parameter(parameter.name, base, base != wanted,
                              parameter.kind is inspect.Parameter.VAR_POSITIONAL))
    return tuple(made)


def op(*names: str, since: int = 1, domain: str = "", ignores: Sequence[str] = ()) -> Callable[
        [Callable[..., Results]], Callable[..., Results]]:
    """The decorated function converts these ops, from version `since` of their domain on, until a later one says.

    Attributes that it does not read are refused, but for those that it `ignores`: they change nothing here.
    """
    def register(function: Callable[..., Results]) -> Callable[..., Results]:
        for name in names:
            made = Conversion(name, domain, since, function, _parameters(function), frozenset(ignores))
            _conversions.setdefault((domain, name), []).append(made)
        return function
    return register


def kiln_op(name: str) -> Callable[..., Any]:
    """The function of an op of Kiln's that is told by its name."""
    made: Callable[..., Any] = getattr(kiln.ops, name)
    return made


def find(domain: str, name: str, version: int) -> Conversion | None:
    """The function of an op as the version of its domain has it."""
    known = [each for each in _conversions.get((domain, name), ()) if each.since <= version]
    return max(known, key=lambda each: each.since) if known else None


def ops() -> dict[tuple[str, str], list[int]]:
    """All ops that have a function, with the versions from which on."""
    return {key: sorted(each.since for each in found) for key, found in sorted(_conversions.items())}
