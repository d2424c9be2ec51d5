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


def test_nearly_all_pass() -> None:
    names = {case.name for case in CASES}
    assert exclusions.EXCLUDED.keys() <= names, exclusions.EXCLUDED.keys() - names
    assert len(exclusions.EXCLUDED) <= 0.03 * len(names)
