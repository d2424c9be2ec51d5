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
    lines = [line.strip() for line in trace.strip().splitlines()]
    frames = [i for i, line in enumerate(lines) if line.startswith("File ")]
    if not frames:
        return lines[-1] if lines else ""
    at = frames[-1]
    where = lines[at].removeprefix('File "').replace('", line ', ":").split(", in ")[0]
    return where + (f": {lines[at + 1]}" if at + 1 < len(lines) else "")
