"""The node tests that ONNX has, on the backend `cpu`; what is excluded must fail, and as the table says."""

from __future__ import annotations

from typing import Any

import pytest

import kiln

nodes = pytest.importorskip("nodes")
exclusions = pytest.importorskip("exclusions")

CASES = nodes.cases()


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_node(case: Any, context: kiln.Context) -> None:
    excluded = exclusions.EXCLUDED.get(case.name)
    if excluded is None:
        nodes.run(case, context)
    elif excluded.message:
        with pytest.raises(kiln.Unimplemented, match=excluded.message):
            nodes.run(case, context)
    else:
        with pytest.raises(AssertionError, match="Not equal to tolerance"):
            nodes.run(case, context)


@pytest.mark.parametrize("case", [case for case in CASES if case.name not in exclusions.EXCLUDED], ids=lambda case: case.name)
def test_node_of_any_size(case: Any, context: kiln.Context) -> None:
    """Where all sizes are those of the run, the outputs are the same, or a message says what has to be known."""
    try:
        nodes.run(case, context, nodes.of_any_size(case.model))
    except kiln.Error as error:
        if not isinstance(error, kiln.Unimplemented | kiln.TypeMismatch):
            raise
        assert "node '" in str(error)
        pytest.skip(str(error))


def test_nearly_all_pass() -> None:
    names = {case.name for case in CASES}
    assert exclusions.EXCLUDED.keys() <= names, exclusions.EXCLUDED.keys() - names
    assert len(exclusions.EXCLUDED) <= 0.03 * len(names)
