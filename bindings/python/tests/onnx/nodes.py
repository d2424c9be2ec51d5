"""The node tests of ONNX: which of them Kiln has the types of, and how one is run.

`python nodes.py` prints a table by op: how many pass, how many are excluded, and why.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
import onnx
from exclusions import EXCLUDED
from onnx import numpy_helper

import kiln
import kiln.onnx
from kiln.onnx._types import dtype_of

TWO_UNITS = 2**-6
"""Of bf16: the tolerance that ONNX's own runner has for it."""


@cache
def all_cases() -> list[Any]:
    """All node tests, of any types."""
    from onnx.backend.test.loader import load_model_tests
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return list(load_model_tests(kind="node"))


def is_eligible(case: Any) -> bool:
    """Whether all inputs and outputs are tensors of types that Kiln has."""
    values = [*case.model.graph.input, *case.model.graph.output]
    return all(each.type.WhichOneof("value") == "tensor_type" and dtype_of(each.type.tensor_type.elem_type) is not None
               for each in values)


def cases() -> list[Any]:
    """The eligible ones."""
    return [case for case in all_cases() if is_eligible(case)]


def _array(value: Any) -> np.ndarray[Any, Any]:
    return numpy_helper.to_array(value) if isinstance(value, onnx.TensorProto) else np.asarray(value)


def _compare(got: Any, wanted: np.ndarray[Any, Any], case: Any) -> None:
    got = np.asarray(got)
    assert got.dtype == wanted.dtype, f"{got.dtype}, {wanted.dtype} was expected"
    assert got.shape == wanted.shape, f"{got.shape}, {wanted.shape} was expected"
    relative = max(case.rtol, TWO_UNITS) if got.dtype.name == "bfloat16" else case.rtol
    np.testing.assert_allclose(got.astype(np.float64), wanted.astype(np.float64), rtol=relative, atol=case.atol)


def of_any_size(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model with symbols for the sizes of its inputs: one for each number. Inputs of i64, which may tell sizes, stay."""
    made = onnx.ModelProto.FromString(model.SerializeToString())
    for value in made.graph.input:
        if value.type.tensor_type.elem_type != onnx.TensorProto.INT64:
            for dim in value.type.tensor_type.shape.dim:
                if dim.dim_value > 1:
                    dim.dim_param = f"d{dim.dim_value}"
    return made


def run(case: Any, context: kiln.Context, model: onnx.ModelProto | None = None) -> None:
    """Raises unless the outputs are the expected ones."""
    session = kiln.onnx.Session(model or case.model, context=context, backend="cpu")
    for inputs, outputs in case.data_sets:
        results = session(*(_array(each) for each in inputs))
        assert len(results) == len(outputs)
        for got, wanted in zip(results, outputs, strict=True):
            _compare(got, _array(wanted), case)


def _op(case: Any) -> str:
    nodes: Sequence[onnx.NodeProto] = case.model.graph.node
    if len(nodes) == 1:
        return ".".join(filter(None, [nodes[0].domain, nodes[0].op_type]))
    return "bodies of functions" if case.name.endswith("_expanded") else "several ops"


def main() -> None:
    """Prints the table."""
    context = kiln.Context(cache="off", threads=1)
    rows: dict[str, list[Any]] = {}
    for case in cases():
        row = rows.setdefault(_op(case), [0, 0, set()])
        try:
            run(case, context)
        except (kiln.Error, AssertionError) as error:
            row[1] += 1
            row[2].add(EXCLUDED[case.name].reason if case.name in EXCLUDED else f"NOT EXCLUDED: {case.name}: {error}")
        else:
            row[0] += 1
    print("| op | passed | excluded | why |\n| --- | --- | --- | --- |")
    for op, (passed, excluded, reasons) in sorted(rows.items()):
        print(f"| {op} | {passed} | {excluded} | {'; '.join(sorted(reasons))} |")
    passed = sum(row[0] for row in rows.values())
    eligible = sum(row[0] + row[1] for row in rows.values())
    print(f"\n{passed} of {eligible} pass ({100 * passed / eligible:.1f} %), of {len(all_cases())} in all.")


if __name__ == "__main__":
    main()
