"""What a long compile does, as it goes on."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from kiln._kiln import watchers


@contextmanager
def progress(after: float = 1.0) -> Iterator[None]:
    """Inside, whatever takes longer than `after` seconds is shown by tqdm (a package of its own) on stderr.

    A bar counts events; beside it is the phase, pass, loop or step that is under way.
    """
    from tqdm import tqdm  # type: ignore[import-untyped,import-not-found,unused-ignore]
    begin = time.monotonic()
    bar: Any = None

    def show(kind: str, text: str) -> None:
        nonlocal bar
        if bar is None and time.monotonic() - begin >= after:
            bar = tqdm(desc="kiln", unit=" events", leave=False)
        if bar is not None:
            bar.update()
            bar.set_postfix_str(text, refresh=False)

    watchers.append(show)
    try:
        yield
    finally:
        watchers.remove(show)
        if bar is not None:
            bar.close()
