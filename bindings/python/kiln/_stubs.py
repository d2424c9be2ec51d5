"""Writes kiln/ops.pyi anew from the registry of ops: python -m kiln._stubs."""

from __future__ import annotations

from pathlib import Path

import kiln
from kiln._signatures import parameters, python_name, result

_HEAD = '''"""Written by `python -m kiln._stubs` from the ops' schemas; a test holds it to them."""

from collections.abc import Sequence
from typing import Any

from kiln import Context, Graph, Value
from kiln._kiln import DTypeLike, Operand, Size

class Ops:
    def __init__(self, context: Context | None = None) -> None: ...
    def __getitem__(self, name: str) -> Any: ...
    def __getattr__(self, name: str) -> Any: ...
    def __dir__(self) -> list[str]: ...

def __dir__() -> list[str]: ...
'''


def stub() -> str:
    """What kiln/ops.pyi is to be."""
    lines = [_HEAD]
    with kiln.Context(cache="off") as context:
        for name in context.op_names:
            schema = context.describe_op(name, samples=False)
            said = ", ".join(parameters(schema, typed=True))
            lines.append(f"def {python_name(name)}({said}) -> {result(schema)}: ...\n")
    return "".join(lines)


if __name__ == "__main__":
    Path(__file__).with_name("ops.pyi").write_text(stub())
