"""What the tests of ONNX models have in common. Where onnx is not installed there are none."""

from __future__ import annotations

import importlib.util
import warnings
from collections.abc import Iterator

import pytest

import kiln

warnings.filterwarnings("ignore", category=RuntimeWarning, module="onnx")

collect_ignore_glob = [] if importlib.util.find_spec("onnx") and importlib.util.find_spec("onnx_ir") else ["test_*.py"]


@pytest.fixture(scope="session")
def uncached() -> kiln.Context:
    """One context without a cache: what is tested is what is read, not what was."""
    return kiln.Context(cache="off", threads=1)


@pytest.fixture(autouse=True)
def context(uncached: kiln.Context) -> Iterator[kiln.Context]:
    kiln.set_default_context(uncached)
    yield uncached
    kiln.set_default_context(None)
