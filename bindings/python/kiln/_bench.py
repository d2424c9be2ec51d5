"""kiln.bench: what `kiln bench` measures, as a dict."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from kiln._errors import Error, InvalidArgument
from kiln._kiln import Executable, Graph, save_tensors


def _text(value: Any, between: str) -> str:
    """As the command line says it, a list with that between its members."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (list, tuple)):
        return between.join(_text(each, between) for each in value)
    return os.fspath(value) if isinstance(value, os.PathLike) else str(value)


def _varied(value: Any) -> str:
    return "none" if value in (None, [], ()) else _text(value, ":")


def _operand(what: Any, folder: Path, place: str) -> str:
    if isinstance(what, Graph):
        path = folder / f"graph{place}.json"
        path.write_text(what.to_json())
    elif isinstance(what, Executable):
        path = folder / f"executable{place}.kiln"
        what.save(path)
    else:
        return str(os.fspath(what))
    return str(path)


def bench(what: Any, *, vary: Mapping[str, Sequence[Any]] | None = None, sizes: Mapping[str, int] | None = None,
          inputs: Mapping[str, Any] | None = None, weights: str | os.PathLike[str] | Mapping[str, Any] | None = None,
          seed: int = 0, threads: int | None = None, plugins: Sequence[str | os.PathLike[str]] = (),
          options: Mapping[str, Any] | None = None, rounds: int = 7, ms: int = 200, limit: int = 600,
          against: str | os.PathLike[str] | Mapping[str, Any] | None = None, noise: int = 3) -> dict[str, Any]:
    """Measures compiles, runs and memory of a graph, an executable, a path to one, or a list of them.

    The packaged program does it, in processes of its own (docs/bench.md): what it writes as JSON, in Google
    Benchmark's format, is returned. `vary` has lists of values for "threads", "plugin" (None: none), options of the
    compile and symbols. Inputs and weights that are not given are drawn, by `seed`. In each of `rounds` a variant runs
    for at least `ms` milliseconds; its processes may take `limit` seconds each. Variants that failed are in "failures";
    `Error` is raised where all do. `against` is what an earlier call returned, or a file of it: "against" of the result
    then tells what is slower or faster beyond noise: quartiles that lie apart, medians that differ by more than `noise`
    percent.
    """
    from kiln.__main__ import program
    words = [f"--random={seed}", f"--rounds={rounds}", f"--ms={ms}", f"--limit={limit}"]
    words += [f"--vary={name}={','.join(map(_varied, values))}" for name, values in (vary or {}).items()]
    words += [f"--size={name}={size}" for name, size in (sizes or {}).items()]
    words += [f"--option={name}={_text(value, ',')}" for name, value in (options or {}).items()]
    words += [f"--plugin={os.fspath(path)}" for path in plugins]
    words += [] if threads is None else [f"--threads={threads}"]
    with tempfile.TemporaryDirectory(prefix="kiln-bench-") as name:
        folder = Path(name)
        for place, (slot, array) in enumerate((inputs or {}).items()):
            save_tensors(folder / f"input{place}.safetensors", {slot: array})
            words.append(f"--input={slot}={folder}/input{place}.safetensors")
        if isinstance(weights, Mapping):
            save_tensors(folder / "weights.safetensors", dict(weights))
            weights = folder / "weights.safetensors"
        words += [] if weights is None else [f"--weights={os.fspath(weights)}"]
        if isinstance(against, Mapping):
            (folder / "before.json").write_text(json.dumps(against))
            against = folder / "before.json"
        words += [] if against is None else [f"--against={os.fspath(against)}", f"--noise={noise}"]
        if isinstance(what, (list, tuple)):
            operands = [_operand(each, folder, str(place)) for place, each in enumerate(what)]
        else:
            operands = [_operand(what, folder, "")]
        run = subprocess.run([program(), "bench", *words, "--json=-", "--", *operands], capture_output=True, text=True,
                             check=False, env={**os.environ, "TMPDIR": name})  # what is interrupted leaves nothing, too
    if not run.stdout:
        kind = InvalidArgument if run.returncode == 2 else Error
        raise kind(run.stderr.removeprefix("kiln: ").strip() or f"kiln bench ended with {run.returncode}")
    figures: dict[str, Any] = json.loads(run.stdout)
    return figures
