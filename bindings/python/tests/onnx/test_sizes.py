"""Models whose images have sizes that only a run tells, against the same with sizes that are known."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

import kiln
import kiln.onnx

pytestmark = pytest.mark.fast

SIZES = ((7, 5), (8, 4), (3, 9))


def both(nodes: list[onnx.NodeProto], weights: dict[str, Any], context: kiln.Context, outputs: tuple[str, ...] = ("y",),
         dtype: type = np.float32, sizes: Any = SIZES) -> None:
    """One program for all sizes gives what a program for each does."""
    def session(shape: list[Any]) -> kiln.onnx.Session:
        graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", helper.np_dtype_to_tensor_dtype(
            np.dtype(dtype)), shape)], [helper.make_tensor_value_info(name, 1, None) for name in outputs],
            [numpy_helper.from_array(np.asarray(array), name) for name, array in weights.items()])
        return kiln.onnx.Session(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)]), context=context,
                                 backend="cpu")
    symbolic = session([1, 2, "h", "w"])
    for h, w in sizes:
        x = (np.random.default_rng(h).standard_normal((1, 2, h, w)) * 8).astype(dtype)
        for made, wanted in zip(symbolic(x), session([1, 2, h, w])(x), strict=True):
            np.testing.assert_allclose(np.asarray(made), np.asarray(wanted), rtol=1e-5, atol=1e-5)
    assert len(symbolic.report["variants"]) == 1


@pytest.mark.parametrize("auto_pad", ["SAME_UPPER", "SAME_LOWER"])
@pytest.mark.parametrize("stride", [[2, 2], [3, 1]])
def test_windows_pad_themselves_by_a_size_of_the_run(context: kiln.Context, auto_pad: str, stride: list[int]) -> None:
    w = np.random.default_rng(0).standard_normal((3, 2, 3, 2)).astype(np.float32)
    told = {"auto_pad": auto_pad, "strides": stride}
    both([helper.make_node("Conv", ["x", "w"], ["y"], **told)], {"w": w}, context)
    for pool in ("MaxPool", "AveragePool"):
        both([helper.make_node(pool, ["x"], ["y"], kernel_shape=[3, 2], **told)], {}, context)
    both([helper.make_node("AveragePool", ["x"], ["y"], kernel_shape=[3, 2], count_include_pad=1, **told)], {}, context)
    both([helper.make_node("MaxPool", ["x"], ["y", "i"], kernel_shape=[3, 2], **told)], {}, context, ("y", "i"))


def test_what_two_convolutions_padded_adds_up(context: kiln.Context) -> None:
    w = np.ones((2, 2, 3, 3), np.float32)
    both([helper.make_node("Conv", ["x", "w"], ["a"], auto_pad="SAME_UPPER", strides=[2, 2]),
          helper.make_node("MaxPool", ["x"], ["b"], auto_pad="SAME_UPPER", strides=[2, 2], kernel_shape=[2, 2]),
          helper.make_node("Add", ["a", "b"], ["y"])], {"w": w}, context)


@pytest.mark.parametrize("where", ["half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners", "asymmetric",
                                   "tf_half_pixel_for_nn"])
@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
@pytest.mark.parametrize("scale", [2.0, 1.5, 0.4])
def test_an_image_is_resized_by_scales_whatever_its_size(context: kiln.Context, mode: str, where: str, scale: float) -> None:
    both([helper.make_node("Resize", ["x", "", "s"], ["y"], mode=mode, coordinate_transformation_mode=where)],
         {"s": np.array([1, 1, scale, 3], np.float32)}, context)


@pytest.mark.parametrize("nearest", ["round_prefer_floor", "round_prefer_ceil", "floor", "ceil"])
def test_a_nearest_element_is_found_by_each_rounding(context: kiln.Context, nearest: str) -> None:
    both([helper.make_node("Resize", ["x", "", "s"], ["y"], mode="nearest", nearest_mode=nearest)],
         {"s": np.array([1, 1, 1.5, 0.5], np.float32)}, context)


@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
@pytest.mark.parametrize("where", ["half_pixel", "align_corners", "pytorch_half_pixel"])
def test_an_image_is_resized_to_a_known_size(context: kiln.Context, mode: str, where: str) -> None:
    both([helper.make_node("Resize", ["x", "", "", "size"], ["y"], mode=mode, coordinate_transformation_mode=where)],
         {"size": np.array([1, 2, 6, 1])}, context)


@pytest.mark.parametrize("more", [{"antialias": 1}, {"exclude_outside": 1, "mode": "cubic"}])
def test_filters_of_resized_images_follow_the_run(context: kiln.Context, more: dict[str, Any]) -> None:
    both([helper.make_node("Resize", ["x", "", "s"], ["y"], **{"mode": "linear", **more})],
         {"s": np.array([1, 1, 0.5, 1.25], np.float32)}, context)


def test_a_filter_whose_width_only_a_run_tells_is_refused(context: kiln.Context) -> None:
    with pytest.raises(kiln.Unimplemented, match=r"\[Resize\] node 'y': antialias of sizes h and 3"):
        both([helper.make_node("Resize", ["x", "", "", "size"], ["y"], mode="linear", antialias=1)],
             {"size": np.array([1, 2, 3, 3])}, context)
