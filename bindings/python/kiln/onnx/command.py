"""What `python -m kiln` does with ONNX files: `import model.onnx -o graph.json --weights model.safetensors`, and
`run model.onnx --input x=x.npy --output y=y.npy`.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np

import kiln
from kiln.onnx import _safetensors
from kiln.onnx._model import Session, load
from kiln.onnx._values import Array


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("kiln", description="What Kiln does with ONNX files; see `kiln help` for the rest.")
    commands = parser.add_subparsers(dest="command", required=True, metavar="import | run")
    take = commands.add_parser("import", help="write an ONNX model as a graph in JSON, and its weights")
    take.add_argument("model", type=Path)
    take.add_argument("-o", "--output", type=Path, required=True, metavar="FILE", help="the graph, as JSON")
    take.add_argument("--weights", type=Path, metavar="FILE", help="the weights, as safetensors")
    take.add_argument("--value", action="append", default=[], metavar="NAME=FILE",
                      help="an input that decides sizes, as .npy: the graph is for this value")
    run = commands.add_parser("run", help="run an ONNX model")
    run.add_argument("model", type=Path)
    run.add_argument("--input", action="append", default=[], metavar="NAME=FILE", help="an input, as .npy")
    run.add_argument("--output", action="append", default=[], metavar="NAME=FILE", help="write an output, as .npy")
    run.add_argument("--backend", metavar="NAME", help="what compiles; else the context's own choice")
    return parser


def _pairs(texts: Sequence[str], option: str) -> dict[str, Path]:
    made = {}
    for text in texts:
        name, equals, path = text.rpartition("=")
        if not equals:
            raise kiln.InvalidArgument(f"{option} {text}: NAME=FILE was expected")
        made[name] = Path(path)
    return made


def _arrays(texts: Sequence[str], option: str) -> dict[str, Array]:
    return {name: np.load(path, mmap_mode="r", allow_pickle=False) for name, path in _pairs(texts, option).items()}


def _import(arguments: argparse.Namespace) -> None:
    model = load(arguments.model, values=_arrays(arguments.value, "--value"), context=kiln.Context(cache="off"))
    arguments.output.write_text(model.graph.to_json() + "\n")
    if arguments.weights:
        _safetensors.write(arguments.weights, model.weights)
    elif model.weights:
        print(f"kiln: {len(model.weights)} weights are not written; --weights FILE writes them", file=sys.stderr)
    for name, value in model.specialised.items():
        print(f"kiln: the graph is for {name} = {value.tolist()}", file=sys.stderr)


def _shown(name: str, array: Array) -> str:
    return f"{name} {array.dtype}{list(array.shape)}\n{np.array2string(array, threshold=64)}"


def _run(arguments: argparse.Namespace) -> None:
    session = Session(arguments.model, **({"backend": arguments.backend} if arguments.backend else {}))
    results = dict(zip(session.output_names, session(**_arrays(arguments.input, "--input")), strict=True))
    wanted = _pairs(arguments.output, "--output")
    for name in wanted:
        if name not in results:
            raise kiln.UnknownName(f"the model has no output '{name}'; it has {', '.join(results)}")
    for name, path in wanted.items():
        np.save(path, results[name], allow_pickle=False)
    if not wanted:
        print("\n".join(_shown(name, np.asarray(result)) for name, result in results.items()))


def main(arguments: Sequence[str]) -> int:
    """Runs a command; the program's exit status."""
    told = _parser().parse_args(list(arguments))
    try:
        (_import if told.command == "import" else _run)(told)
    except (kiln.Error, OSError, ValueError) as error:
        print(f"kiln: {error}", file=sys.stderr)
        return 1
    return 0
