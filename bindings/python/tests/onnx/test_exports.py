"""Models that torch exports, beside ONNX Runtime: the same outputs, one program for all sizes."""

from __future__ import annotations

import importlib.util

import numpy as np
import pytest

import kiln
import kiln.onnx

torch = pytest.importorskip("torch")
onnxruntime = pytest.importorskip("onnxruntime")
models = pytest.importorskip("models")

EXPORTERS = ["torchscript"] + (["dynamo"] if importlib.util.find_spec("onnxscript") else [])
NAMES = [(name, exporter) for name, make in models.CASES.items() for exporter in make().exporters if exporter in EXPORTERS]


@pytest.mark.parametrize("name, exporter", NAMES)
def test_the_same_as_onnxruntime(name: str, exporter: str, context: kiln.Context) -> None:
    torch.manual_seed(0)
    case = models.CASES[name]()
    case.module.eval()
    data = models.export(case, exporter)
    theirs = onnxruntime.InferenceSession(data, providers=["CPUExecutionProvider"])
    ours = kiln.onnx.Session(data, context=context, backend="cpu")
    for example in case.examples:
        arrays = [each.numpy() for each in example]
        given = dict(zip((each.name for each in theirs.get_inputs()), arrays, strict=True))
        for got, wanted in zip(ours(*arrays), theirs.run(None, given), strict=True):
            assert got.dtype == wanted.dtype and got.shape == wanted.shape
            np.testing.assert_allclose(got, wanted, rtol=case.tolerance, atol=case.tolerance)
    assert len(ours.report["variants"]) == 1, ours.report
