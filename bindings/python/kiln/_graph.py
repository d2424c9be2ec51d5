"""What of graphs is said better in Python: the one that is being built, scopes, and what a listing tells."""

from __future__ import annotations

from contextvars import ContextVar
TYPE_CHECKING = False  # typing costs more to import than all of this
if TYPE_CHECKING:
    from typing import Any

from kiln._kiln import Graph

_building: ContextVar[tuple[Graph, ...]] = ContextVar("kiln_graphs", default=())


def enter(graph: Graph) -> None:
    _building.set((*_building.get(), graph))


def leave(graph: Graph) -> None:
    *rest, last = _building.get()
    if last is not graph:
        raise RuntimeError("a graph is left that is not the innermost one being built")
    _building.set(tuple(rest))


def current(op: str = "") -> Graph:
    """The graph that is being built (`with graph:`), for ops that no operand tells it."""
    graphs = _building.get()
    if not graphs:
        where = f"[{op}] " if op else ""
        raise RuntimeError(f"{where}no operand is a value and no graph is being built: use it inside `with graph:`")
    return graphs[-1]


class Scope:
    """`with`: nodes that are added inside get the annotations; inner scopes win."""

    def __init__(self, graph: Graph | None, annotations: dict[str, Any]) -> None:
        self._graph, self._annotations = graph, annotations
        self._open: list[Graph] = []

    def __enter__(self) -> None:
        graph = self._graph or current()
        graph.push_scope(self._annotations)
        self._open.append(graph)

    def __exit__(self, *_: object) -> None:
        self._open.pop().pop_scope()


def scope(annotations: dict[str, Any] | None = None, /, **named: Any) -> Scope:
    """Annotations of the nodes that are added inside, in the graph that is being built or traced."""
    return Scope(None, {**(annotations or {}), **named})


def region(name: str, /, **options: Any) -> Scope:
    """Marks the nodes that are added inside for a region, which a compile in a mode that cuts compiles by itself.

    Options are the region's: backend, rounding, fuse.
    """
    return Scope(None, {"kiln.region": name, **{f"kiln.region.{key}": value for key, value in options.items()}})
