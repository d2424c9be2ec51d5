"""Arguments and results that hold arrays inside: dicts, lists, tuples, named tuples, None, and registered classes."""

from __future__ import annotations

from typing import Any, Callable, Hashable

_classes: dict[type, tuple[Callable[[Any], tuple[list[Any], Hashable]], Callable[[Hashable, list[Any]], Any]]] = {}


def register_tree(kind: type, flatten: Callable[[Any], tuple[list[Any], Hashable]],
                  unflatten: Callable[[Hashable, list[Any]], Any]) -> None:
    """Makes a class one whose members are arrays: `flatten` gives them and what else there is, hashable."""
    _classes[kind] = (flatten, unflatten)


def flatten(tree: Any, leaves: list[Any]) -> Hashable:
    """Appends the leaves; what is left is hashable, and unflatten makes a tree of it and as many leaves."""
    kind = type(tree)
    if kind is tuple or kind is list:
        return (kind, tuple([flatten(each, leaves) for each in tree]))
    if kind is dict:
        return (dict, tuple([(key, flatten(tree[key], leaves)) for key in tree]))
    if tree is None:
        return None
    if kind in _classes:
        members, rest = _classes[kind][0](tree)
        return (kind, rest, tuple([flatten(each, leaves) for each in members]))
    if isinstance(tree, tuple) and hasattr(tree, "_fields"):
        return (kind, tuple([flatten(each, leaves) for each in tree]))
    leaves.append(tree)
    return "*"


def unflatten(shape: Any, leaves: Any) -> Any:
    """The tree; takes the leaves it needs from the iterator."""
    if shape == "*":
        return next(leaves)
    if shape is None:
        return None
    kind = shape[0]
    if kind is dict:
        return {key: unflatten(each, leaves) for key, each in shape[1]}
    if kind in _classes:
        return _classes[kind][1](shape[1], [unflatten(each, leaves) for each in shape[2]])
    members = [unflatten(each, leaves) for each in shape[1]]
    return kind(members) if kind in (tuple, list) else kind(*members)
