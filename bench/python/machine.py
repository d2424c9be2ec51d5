"""What the figures are measured on: the machine, what it can do at most, and the versions of what runs there."""

from __future__ import annotations

import importlib.metadata
import json
import os
import pathlib
import subprocess
import sys
import tempfile
from typing import Any

import kiln
from figure import effort

PEERS = ("torch", "jax", "jaxlib", "openvino", "onnxruntime", "numpy", "torchvision", "transformers", "onnx",
         "onnxscript")
BENCH = pathlib.Path(kiln.__file__).resolve().parents[3] / "build/bin/kiln_bench"  # beside the library that runs
CHEAP = "^call_overhead_ns"  # a figure that takes no time: roofs are told with any
ROOFS = {"fma": ("fma_peak_flops", "GFLOP/s"), "copy": ("copy_bytes_per_s", "GB/s copied"),
         "read": ("read_bytes_per_s", "GB/s read")}  # by the names of Part: those of kiln_bench, and 1e9 of what


def machine() -> dict[str, Any]:
    flags = pathlib.Path("/proc/cpuinfo").read_text().split()
    level = "v4" if "avx512f" in flags else "v3" if "avx2" in flags else "x86-64"
    return {"cores": len(os.sched_getaffinity(0)), "cpu": level, "python": sys.version.split()[0],
            "load": round(os.getloadavg()[0], 1)}  # what else ran, when the run began


def versions() -> dict[str, str]:
    found = {}
    for name in PEERS:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            found[name] = "absent"
    return found


def roofs() -> dict[str, float]:
    """Per second, by the names of Part, of all cores: bench/machine.cpp's. Empty where kiln_bench is not built."""
    if not BENCH.exists():
        return {}
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "figures.json")
        subprocess.run([BENCH, CHEAP, "--json", path, *["--brief"] * effort.brief], check=True, capture_output=True)
        told = json.loads(path.read_text())["machine"]
    return {name: told[key] for name, (key, _) in ROOFS.items() if key in told}


def highest(*measured: dict[str, float]) -> dict[str, float]:
    """Of each roof: whatever else runs only lowers them."""
    return {name: max(each.get(name, 0.0) for each in measured) for name in {**measured[0], **measured[-1]}}
