"""kiln.bench: the program's figures of graphs and executables at hand. No time is asserted."""

import copy

import kiln
import numpy as np
import pytest

QUICK = {"rounds": 2, "ms": 1}


@pytest.fixture
def linear(graph):
    x = graph.input("x", "f32", ["n", 3])
    graph.output(kiln.ops.linear(x, graph.parameter("w", "f32", [2, 3])), "y")
    return graph


def variants(figures):
    return list(dict.fromkeys(row["run_name"] for row in figures["benchmarks"] if row["run_name"].endswith("/run")))


def test_a_graph_is_measured_with_each_value(linear, tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    figures = kiln.bench(linear, vary={"fuse": [True, False], "n": [2], "disable_passes": [None, ["cse", "merge_views"]]}, **QUICK)
    assert variants(figures) == [f"graph.json/fuse:{fuse}/n:2/disable_passes:{passes}/run"
                                 for fuse in ("true", "false") for passes in ("none", "cse:merge_views")]
    assert figures["failures"] == [] and figures["context"]["kiln_build_id"] == kiln.build_report()["build_id"]
    assert list(tmp_path.glob("kiln*")) == []


def test_an_executable_is_measured_on_given_arrays(linear):
    given = {"inputs": {"x": np.ones([4, 3], np.float32)}, "weights": {"w": np.ones([2, 3], np.float32)}}
    figures = kiln.bench([kiln.compile(linear), linear], options={"disable_passes": ["cse"]}, threads=1, **given, **QUICK)
    assert variants(figures) == ["executable0.kiln/run", "graph1.json/run"]
    assert {row["threads"] for row in figures["benchmarks"]} == {1}


def test_figures_of_before_are_compared_with(linear):
    before = kiln.bench(linear, sizes={"n": 2}, **QUICK)
    faster = copy.deepcopy(before)
    for row in faster["benchmarks"]:
        row["real_time"] /= 1e6
    changes = kiln.bench(linear, sizes={"n": 2}, against=faster, **QUICK)["against"]
    assert {row["change"] for row in changes if row["unit"] == "s"} == {"slower"}


def test_what_all_variants_fail_with_is_raised(linear):
    with pytest.raises(kiln.InvalidArgument, match="--vary: 'fuze' is neither .*did you mean 'fuse'"):
        kiln.bench(linear, vary={"fuze": [True]})
    with pytest.raises(kiln.InvalidArgument, match="the size of 'x' .* is not known"):
        kiln.bench(linear, **QUICK)
    with pytest.raises(kiln.Error, match="No such file"):
        kiln.bench("/no/such/graph.json", **QUICK)


def test_a_variant_that_fails_is_in_the_result(linear):
    figures = kiln.bench(linear, vary={"cpu": ["x86-64", "v9"]}, sizes={"n": 2}, **QUICK)
    assert variants(figures) == ["graph.json/cpu:x86-64/run"]
    assert [failure["name"] for failure in figures["failures"]] == ["graph.json/cpu:v9"]
