"""What the backend did, graph by graph."""

from __future__ import annotations

from collections import Counter, deque
from dataclasses import dataclass, field
from typing import Any

from kiln.torch import _torch


@dataclass
class Left:
    """A node that stayed in torch, and why."""

    node: str
    op: str
    reason: str


@dataclass
class GraphReport:
    """Of a graph that AOTAutograd made: forward, backward or inference."""

    name: str
    ops: int = 0  # of ATen's, that Kiln took; views apart
    parts: int = 0  # programs of Kiln's
    left: list[Left] = field(default_factory=list)
    planned: float = 0.0  # seconds from ATen's graph to Kiln's
    compiled: float = 0.0  # seconds in all
    prepared: int = 0  # how often frozen weights were bound and prepared
    programs: list[dict[str, Any] | None] = field(default_factory=list)  # reports of Kiln's compiles

    def reasons(self) -> str:
        """The ops that stayed, how often, and why."""
        counts = Counter((each.op, each.reason) for each in self.left)
        return "; ".join(f"{count} {op} ({reason})" for (op, reason), count in counts.most_common())

    def __str__(self) -> str:
        left = f"; in torch: {self.reasons()}" if self.left else ""
        return (f"{self.name}: {self.ops} ops in {self.parts} programs, {self.planned * 1e3:.1f} ms to Kiln's graph, "
                f"{self.compiled * 1e3:.1f} ms in all{left}")


_graphs: deque[GraphReport] = deque(maxlen=1000)


def add(graph: GraphReport) -> None:
    _graphs.append(graph)


def graphs() -> list[GraphReport]:
    """Of the last graphs that were compiled, the oldest first."""
    return list(_graphs)


def summary() -> str:
    """For people: a line a graph, then what Dynamo kept from the backend, since torch.compiler.reset or the start.

    Dynamo compiles a frame again when its guards fail, and above its limit runs it as Python, without a word.
    """
    total, compiled, why = _torch.dynamo_counts()
    lines = [str(each) for each in _graphs] + [f"Dynamo: {compiled} of {total} frames compiled"]
    return "\n".join(lines + [f"  {count} times: {reason}" for reason, count in why.items()])


def clear() -> None:
    """Forgets them."""
    _graphs.clear()
