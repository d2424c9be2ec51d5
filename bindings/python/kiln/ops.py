"""Every op as a function: `kiln.ops.softmax(x, dim=-1)`. Made of the op's schema when it is first asked for.

Operands are values of a graph; numbers become constants of the other operands' dtype, arrays constants of their own.
Dtypes never mix silently: `convert` says it. Python's keywords have a final _: `and_`, `or_`, `not_`, `while_`.
"""

from __future__ import annotations

from typing import Any

import kiln
from kiln._signatures import function, python_name


class Ops:
    """The ops of a context, those of plugins and its own included: `ops.relu(x)`, `ops["lapack.solve"](a, b)`."""

    def __init__(self, context: kiln.Context | None = None) -> None:
        self._context = context
        self._made: dict[str, Any] = {}

    def _in(self) -> kiln.Context:
        return self._context or kiln.default_context()

    def __getitem__(self, name: str) -> Any:
        if name not in self._made:
            self._made[name] = function(self._in().describe_op(name, samples=False), __name__)
        return self._made[name]

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        try:
            return self[name.removesuffix("_") if name.endswith("_") and name != "copy_" else name]
        except kiln.UnknownName as error:
            raise AttributeError(str(error)) from None

    def __dir__(self) -> list[str]:
        return [python_name(name) for name in self._in().op_names]


_all = Ops()


def __getattr__(name: str) -> Any:
    made = getattr(_all, name)
    globals()[name] = made
    return made


def __dir__() -> list[str]:
    return dir(_all)
