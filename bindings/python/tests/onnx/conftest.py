"""What the tests of ONNX models have in common. Where onnx is not installed there are none."""

from __future__ import annotations

import importlib.util
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
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


@pytest.fixture
def run(context: kiln.Context) -> Callable[..., list[np.ndarray[Any, Any]]]:
    def call(made: Any, *arrays: Any) -> list[np.ndarray[Any, Any]]:
        import kiln.onnx
        session = kiln.onnx.Session(made, context=context, backend="cpu")
        return [np.asarray(each) for each in session(*arrays)]
    return call
