"""What torch.compile's `mode` and `options` say."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from typing import Any

import kiln

# torch.compile's modes ask for effort of inductor's kind; what they mean to Kiln.
_RANDOM = ("torch", "kiln")
_MODES: dict[str | None, dict[str, Any]] = {None: {}, "default": {}}


@dataclass(frozen=True)
class Options:
    """Of a compile by torch."""

    strict: bool = False  # what stays in torch is an error
    freeze: bool = False  # parameters and buffers are bound once
    random: str = "torch"  # whose random numbers: torch's, which are eager's bit by bit, or kiln's
    kiln: dict[str, Any] = field(default_factory=dict)  # options of Kiln's compile


@cache
def _of_compile() -> frozenset[str]:
    return frozenset(option["name"] for option in kiln.options()["compile"])


def _is_kilns(name: str) -> bool:
    return name in _of_compile() or name.startswith(("region.", "backend."))


def read(mode: str | None, options: dict[str, Any] | None) -> Options:
    """Checked: a name that there is not is an error."""
    if mode not in _MODES:
        raise ValueError(f"mode {mode!r}: Kiln has only 'default'; regions are chosen by options={{'mode': ...}}")
    given = dict(options or {})
    ours = {name: given.pop(name) for name in ("strict", "freeze") if name in given}
    for ours_name, value in ours.items():
        if not isinstance(value, bool):
            raise TypeError(f"option {ours_name!r} is {value!r}, a bool was expected")
    random = given.pop("random", "torch")
    if random not in _RANDOM:
        raise ValueError(f"option 'random' is {random!r}, 'torch' or 'kiln' was expected")
    for name in given:
        if not _is_kilns(name):
            known = ", ".join(sorted({"strict", "freeze", "random", *_of_compile()}))
            raise ValueError(f"option {name!r} is none of the backend's: {known}, region.NAME.OPTION")
    return Options(kiln={**_MODES[mode], **given}, random=random, **ours)
