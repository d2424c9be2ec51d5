"""What is known of a node beside its op: marks of the user's, and where it comes from."""

from __future__ import annotations

from typing import Any

import torch.fx

from kiln.torch import _torch


def of(node: torch.fx.Node) -> dict[str, Any]:
    """Annotations of Kiln's for what the node becomes: the user's kiln.* and names, modules and lines for people."""
    said: dict[str, Any] = {"debug.torch.name": node.name}
    path = _torch.module_path(node)
    if path:
        said["debug.torch.module"] = path
    trace = node.meta.get("stack_trace")
    if trace:
        said["debug.torch.line"] = _last_line(trace)
    for key, value in _torch.annotations_of(node).items():
        if key.startswith("kiln.") and isinstance(value, str | int | float | bool):
            said[key] = value
    return said


def _last_line(trace: str) -> str:
    """`file:line: code` of the innermost frame."""
    _, is_told, frame = ("\n  " + trace.strip()).rpartition('\n  File "')
    where, *code = frame.splitlines()[:2]
    if not is_told:  # as Python tells frames
        return frame.rpartition("\n")[2].strip()
    return ": ".join([where.replace('", line ', ":").split(", in ")[0], *(line.strip() for line in code)])
