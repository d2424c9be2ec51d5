"""Named passes on ATen's graph: they restore what AOTAutograd took apart and Kiln has whole."""

from __future__ import annotations

from typing import Callable

import torch.fx

PASSES: dict[str, Callable[[torch.fx.Graph], int]] = {}  # each tells how many it found


def run(gm: torch.fx.GraphModule) -> dict[str, int]:
    """Runs all, in order; how often each found something."""
    return {name: run_(gm.graph) for name, run_ in PASSES.items()}
