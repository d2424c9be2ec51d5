"""Weights as a safetensors file, which `kiln run --weights` and kiln.h's hosts read."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping

import numpy as np

from kiln.onnx._types import dtype_of_array
from kiln.onnx._values import Array

_NAMES = {"f8_e4m3fn": "F8_E4M3", "f8_e5m2": "F8_E5M2", "bf16": "BF16", "bool": "BOOL"}


def write(path: str | os.PathLike[str], weights: Mapping[str, Array]) -> None:
    """One after the other, as they lie mapped; the file is there when all of it is."""
    header, offset = {}, 0
    for name, array in weights.items():
        dtype = dtype_of_array(array)
        header[name] = {"dtype": _NAMES.get(dtype, dtype.upper()), "shape": list(array.shape),
                        "data_offsets": [offset, offset + array.nbytes]}
        offset += array.nbytes
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    unfinished = f"{os.fspath(path)}.part"
    with open(unfinished, "wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        for array in weights.values():
            file.write(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)
    os.replace(unfinished, path)
