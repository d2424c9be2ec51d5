"""What runs a graph, in a form that torch may put in a file: torch.compile(...).aot_compile, and the caches behind it.

torch's cache of what AOTAutograd made knows a graph and not who compiled it. So torch is given such a form only while it
asks for files (`_torch.wants_files`), and then under a key in which Kiln, its build and its options stand.
"""

from __future__ import annotations

from functools import cache
from typing import Any, Callable

import torch.fx

import kiln
from kiln.torch import _torch
from kiln.torch.options import Options


def build() -> str:
    """Which build of Kiln it is."""
    return str(kiln.build_report()["build_id"])


def key(options: Options) -> str:
    """What a result depends on, beside what torch knows of."""
    return f"kiln {build()} {options}"


def load(graph: bytes, made_by: str) -> Any:
    """What was put in a file; an error if another build of Kiln did."""
    if made_by != build():
        raise kiln.Incompatible(f"a function that torch saved was compiled by another build of Kiln: {made_by}, "
                                f"this one is {build()}; compile it anew")
    return _class()(_torch.load_graph(graph))


def code(run: Any) -> Any:
    """What torch.compile's compilers give, in a form for files."""
    return _class()(run.module())


@cache
def _class() -> Any:
    class Code(_torch.output_code()):  # type: ignore[misc]
        """Runs a graph; its programs go into files as artifacts of Kiln's."""

        def __init__(self, module: torch.fx.GraphModule) -> None:
            super().__init__()
            self._module, self._boxed_call = module, True

        def __call__(self, inputs: Any) -> Any:
            return self._module.forward(inputs)

        def __reduce__(self) -> tuple[Callable[..., Any], tuple[bytes, str]]:
            return load, (_torch.save_graph(self._module), build())

        def __copy__(self) -> Any:
            return self

        def __deepcopy__(self, memo: Any) -> Any:
            return self

        def prepare_for_serialization(self) -> None:
            """Nothing to do: __reduce__ does it."""

        def post_compile(self, *_: Any) -> None:
            """Nothing to do."""

        def set_triton_bundle(self, triton_bundle: Any) -> None:
            """There is none."""
    return Code
