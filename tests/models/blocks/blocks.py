"""All blocks. `python3 blocks.py BLOCK f32|bf16 FOLDER` writes one's graph, its weights, and the inputs of each call."""

import pathlib
import sys

import block
import detection  # noqa: F401  each registers its blocks
import language  # noqa: F401
import recurrent  # noqa: F401
import sound  # noqa: F401
import vision  # noqa: F401

ALL = block.REGISTRY


def write(name, dtype, folder):
    """Returns a digest of all elements for each call."""
    made = ALL[name].made(dtype)
    made.write(folder / "graph.json")
    weights, digests = made.drawn_weights(), []
    made.store(folder / "weights.safetensors", weights)
    for number, sizes in enumerate(made.definition.calls):
        inputs = made.drawn_inputs(sizes)
        made.store(folder / f"inputs{number}.safetensors", inputs)
        digests.append(block.digest({**weights, **inputs}))
    return digests


if __name__ == "__main__":
    if len(sys.argv) != 4 or sys.argv[1] not in ALL:
        sys.exit(f"{__doc__}\nBLOCK is one of: {', '.join(ALL)}")
    target = pathlib.Path(sys.argv[3])
    target.mkdir(parents=True, exist_ok=True)
    write(sys.argv[1], sys.argv[2], target)
