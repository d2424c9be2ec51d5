"""A context of its own for each test, with a cache in a fresh folder: nothing is shared, and nothing is left behind."""

import kiln
import numpy as np
import pytest


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


def compiled(build, *types, **options):
    """The executable of a function of values, whose inputs have the types (dtype, shape)."""
    graph = kiln.Graph()
    results = build(*(graph.input(f"x{i}", dtype, shape) for i, (dtype, shape) in enumerate(types)))
    for value in results if isinstance(results, tuple) else (results,):
        graph.output(value)
    return kiln.compile(graph, **options)
