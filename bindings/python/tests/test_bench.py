"""The figures beside peers (bench/python) work: each once, small."""

import json
import os
import pathlib
import subprocess
import sys

import pytest

MAIN = pathlib.Path(__file__).resolve().parents[3] / "bench/python/main.py"


def test_each_figure_works_and_is_checked(tmp_path):
    for peer in ("torch", "onnx", "onnxruntime"):
        pytest.importorskip(peer, reason=f"{peer} is not installed in this environment")
    told = tmp_path / "figures.json"
    run = subprocess.run([sys.executable, MAIN, "--brief", "--json", told], capture_output=True, text=True, check=False,
                         env={**os.environ, "TORCHINDUCTOR_CACHE_DIR": str(tmp_path / "inductor")})
    assert run.returncode == 0, run.stdout + run.stderr
    rows = {row["name"]: row for row in json.loads(told.read_text())["results"]}
    assert rows["call_torch"]["target"] == 0.5 and rows["run_mlp"]["errors"]["kiln, frozen"] < 1e-5
    assert rows["compile_warm_mlp"]["median_seconds"]["kiln"] > 0
    assert "| call_torch |" in told.with_suffix(".md").read_text()
