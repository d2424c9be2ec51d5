"""The context that is used where none is said, and functions that use it."""

from __future__ import annotations

import os
import sys
from typing import Any

from kiln._kiln import Context, Executable, Graph

_context: Context | None = None


def default_context() -> Context:
    """The context that is used where none is said: with the standard cache, made when it is first needed."""
    global _context
    if _context is None:
        torch = sys.modules.get("torch")  # whoever told torch how many threads there are meant the process
        _context = Context() if torch is None else Context(threads=torch.get_num_threads())
    return _context


def set_default_context(context: Context | None) -> None:
    """Another one from now on; what belongs to the one before stays there. None: a new one when it is next needed."""
    global _context
    _context = context


def compile(graph: Graph, options: dict[str, Any] | None = None, **keywords: Any) -> Executable:
    """Compiles a graph in its context, or takes it from the cache.

    Options of a compile (`kiln options`) are keywords, or a dict where a name has dots: {"mode.forward": "marked"}.
    """
    context: Context = graph.context
    return context.compile(graph, options, **keywords)


def load(source: str | os.PathLike[str] | bytes, *, expect_key: str = "") -> Executable:
    """An executable of a file, a folder, or bytes. Opening one is running its code: open what you trust."""
    return default_context().load(source, expect_key=expect_key)
