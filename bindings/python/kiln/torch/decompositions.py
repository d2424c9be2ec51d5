"""The list of what AOTAutograd takes apart before Kiln sees it. It is empty, and each entry needs a reason and a test
of its gradients: torch's own lists are made for other compilers, and change values."""

from __future__ import annotations

from typing import Any, Callable

_ENTRIES: dict[Any, Callable[..., Any]] = {}


def table() -> dict[Any, Callable[..., Any]]:
    return dict(_ENTRIES)
