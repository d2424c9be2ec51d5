"""A context of its own for each test, with a cache in a fresh folder: nothing is shared, and nothing is left behind."""

from importlib.util import find_spec

import kiln
import numpy as np
import pytest

HAS_TORCH = find_spec("torch") is not None
collect_ignore = [] if HAS_TORCH else ["torch_compile"]


def pytest_report_header():
    return [] if HAS_TORCH else ["SKIP: tests/torch_compile: torch is not installed in this environment"]


@pytest.fixture
def cache(tmp_path):
    return tmp_path / "cache"


@pytest.fixture(autouse=True)
def context(cache):
    with kiln.Context(cache=str(cache)) as context:
        kiln.set_default_context(context)
        yield context
    kiln.set_default_context(None)


@pytest.fixture
def graph():
    return kiln.Graph()


@pytest.fixture
def random():
    return np.random.default_rng(0)
