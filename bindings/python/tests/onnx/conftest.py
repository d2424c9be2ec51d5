"""What the tests of ONNX models have in common."""

from __future__ import annotations

import warnings

import pytest

import kiln

warnings.filterwarnings("ignore", category=RuntimeWarning, module="onnx")


@pytest.fixture(scope="session")
def context() -> kiln.Context:
    """One without a cache: what is tested is what is read, not what was."""
    return kiln.Context(cache="off", threads=1)
