"""What computes each op outside Kiln: one entry an op, in the file of its family."""

import importlib
import pathlib
import typing


class Peer(typing.NamedTuple):
    name: str  # of the function of another library, or what was written in its place
    compute: typing.Callable  # of a graphs.Call: an array or tensor, or one of each result


class NoValue(Exception):
    """The op has no one value for these operands; the text says why."""


PEERS: dict[str, Peer] = {}


def peer(op, name):
    """Enters the function below as the op's peer; its docstring tells how meanings differ, where they do."""
    def enter(compute):
        assert op not in PEERS, op
        PEERS[op] = Peer(name, compute)
        return compute
    return enter


def load():
    for family in sorted(pathlib.Path(__file__).parent.glob("[!_]*.py")):
        importlib.import_module(f"peers.{family.stem}")
    return PEERS
