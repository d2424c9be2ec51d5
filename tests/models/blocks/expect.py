"""Writes expected/BLOCK.json: what PyTorch gives for each call of a block. Usage: expect.py [BLOCK…]   (needs torch)"""

import json
import math
import sys

import torch

from block import FOLDER, digest
from blocks import ALL
from peers import PEERS

STORED = 256  # elements of an output, at most


def tensors(drawn):
    return {name: torch.tensor(values.tolist(), dtype=torch.float64 if values.typecode == "d" else torch.int64).view(shape)
            for name, (shape, values) in drawn.items()}


def stored(y):
    """Each `step`-th element in row-major order; the step has no factor in common with the last dim, so that all columns
    are seen."""
    step = math.ceil(y.numel() / STORED) or 1
    while math.gcd(step, y.shape[-1]) > 1:
        step += 1
    values = y.reshape(-1)[::step].tolist()
    return {"shape": list(y.shape), "step": step, "values": [v if isinstance(v, int) else float(f"{v:.9g}") for v in values]}


@torch.no_grad()
def write(name):
    made = ALL[name].made()
    weights, lines = made.drawn_weights(), []
    for sizes in made.definition.calls:
        inputs = made.drawn_inputs(sizes)
        outputs = PEERS[name](tensors(weights), **tensors(inputs))
        lines.append(json.dumps({"sizes": sizes, "digest": digest({**weights, **inputs}),
                                 "outputs": {output: stored(y) for output, y in outputs.items()}}, separators=(",", ":")))
    path = FOLDER / "expected" / f"{name}.json"
    path.write_text(f'{{"torch": "{torch.__version__}", "calls": [\n' + ",\n".join(lines) + "]}\n")
    print(f"{name}: {path.stat().st_size} bytes")


if __name__ == "__main__":
    torch.set_num_threads(1)
    for chosen in sys.argv[1:] or ALL:
        write(chosen)
