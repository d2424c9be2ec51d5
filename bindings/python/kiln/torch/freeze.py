"""Parameters that are bound once: `options={"freeze": True}`, in inference alone.

A program that is given its weights as inputs reads them where they lie: always right, and nothing of them can be made
ahead. Frozen, they are Kiln's parameters: packed and folded once, and each call asks of every one whether it is still
what was bound: its memory, sizes and strides, its version, which in-place operations raise, and how many steps
optimizers made, some of which write without that. What writes by `.data`, NumPy or a pointer says so by `refresh`.
"""

from __future__ import annotations

import threading
from typing import Any, Sequence

import torch

import kiln
from kiln.torch import _torch, report

_steps = 0
_refreshed = 0
_hooked = False


def _count(*_: Any) -> None:
    global _steps
    _steps += 1


def _hook() -> None:
    """Once: has optimizers say that they made a step."""
    global _hooked
    if not _hooked:
        _torch.register_optimizer_step_post_hook(_count)
        _hooked = True


State = tuple[Any, ...]


def _state(tensors: Sequence[torch.Tensor]) -> State:
    return (_steps, _refreshed, *((x.data_ptr(), x._version, x.shape, x.stride()) for x in tensors))


def _check_versions(names: Sequence[str], tensors: Sequence[torch.Tensor]) -> None:
    for name, tensor in zip(names, tensors):
        if tensor.is_inference():
            raise kiln.InvalidArgument(f"freeze: '{name}' was made under torch.inference_mode(), and does not tell when it is "
                                       "written; make it under torch.no_grad(), or leave freeze out")


class Frozen:
    """A program with weights bound; called with all arrays, of which it takes the others. Any thread may.

    `said`: what the module calls the weights, for messages; "": that is not known.
    """

    def __init__(self, executable: kiln.Executable, places: Sequence[int], names: Sequence[str],
                 told: report.GraphReport, said: Sequence[str]) -> None:
        _hook()
        self._said = tuple(said)
        self._executable, self._names, self._told = executable, tuple(names), told
        self._weights, self._places = tuple(places), frozenset(places)
        self._state: State | None = None
        self._bound: kiln.Call | None = None  # never run itself, but by clones, which share what is prepared
        self._lock, self._own = threading.Lock(), threading.local()

    def __reduce__(self) -> tuple[Any, ...]:
        return _load, (self._executable, self._weights, self._names, self._told.name, self._said)

    def __call__(self, *arrays: Any, **told: Any) -> Any:
        weights = [arrays[place] for place in self._weights]
        if self._state is None:
            _check_versions([own or name for own, name in zip(self._said, self._names)], weights)
        state = _state(weights)
        if self._state != state:
            # Aliases, which hold the memory: it could else be given to what `.data` is set to, and tell of no change.
            held = [x.detach() for x in weights]
            with self._lock:
                self._bound = self._executable.bind(dict(zip(self._names, held)))
                self._state = state
                self._told.prepared += 1
        bound, own = self._bound, self._own
        assert bound is not None
        if getattr(own, "of", None) is not bound:
            own.of, own.call = bound, bound.clone()
        return own.call(*(x for i, x in enumerate(arrays) if i not in self._places), **told)


def _load(executable: kiln.Executable, places: Sequence[int], names: Sequence[str], title: str,
          said: Sequence[str]) -> Frozen:
    return Frozen(executable, places, names, report.GraphReport(title), said)


def refresh(module: torch.nn.Module | None = None) -> None:
    """Says that weights were written by `.data`, NumPy or a pointer, which nothing else tells: they are bound anew.

    Of the module, or of all; what did not change costs a preparation more, and is right either way.
    """
    global _refreshed
    _refreshed += 1


def placeholders(graph: torch.fx.Graph) -> frozenset[torch.fx.Node]:
    """The graph's inputs that are parameters and buffers, and that it does not write."""
    all_ = [node for node in graph.nodes if node.op == "placeholder"]
    static = (all_[i] for i in _torch.static_inputs() if i < len(all_))
    written = {node.args[0] for node in graph.nodes if node.target is torch.ops.aten.copy_.default}
    return frozenset(node for node in static if node not in written)


