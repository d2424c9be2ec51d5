"""Weights in files of their own: what is mapped, and what is refused."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from small_models import BOOL, F32, branch, model, node, value
from onnx import TensorProto, helper, numpy_helper

import kiln
import kiln.onnx

pytestmark = pytest.mark.fast


def test_external_weights_are_mapped(tmp_path: Path, context: kiln.Context) -> None:
    w = np.random.default_rng(0).standard_normal((64, 64)).astype(np.float32)
    made = model([node("MatMul", ["x", "w"], ["y"])], [value("x", [1, 64])], ["y"], {"w": w})
    onnx.save_model(made, str(tmp_path / "m.onnx"), save_as_external_data=True, location="m.bin", size_threshold=0)
    _, weights = kiln.onnx.load(tmp_path / "m.onnx", context=context)
    np.testing.assert_array_equal(weights["w"], w)
    with open("/proc/self/maps") as maps:
        assert str(tmp_path / "m.bin") in maps.read()


@pytest.mark.parametrize("location", ["../secret.bin", "/etc/hostname", "link.bin"])
def test_external_weights_outside_of_the_folder_are_refused(location: str, tmp_path: Path, context: kiln.Context) -> None:
    (tmp_path / "secret.bin").write_bytes(bytes(16))
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "link.bin").symlink_to(tmp_path / "secret.bin")
    made = model([node("Add", ["x", "w"], ["y"])], [value("x", [4])], ["y"], {"w": np.zeros(4, np.float32)})
    tensor = made.graph.initializer[0]
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    for key, told in (("location", location), ("offset", "0"), ("length", "16")):
        tensor.external_data.add(key=key, value=told)
    (folder / "m.onnx").write_bytes(made.SerializeToString())
    with pytest.raises(kiln.InvalidArgument, match=f"'w' lie in '{location}'"):
        kiln.onnx.load(folder / "m.onnx", context=context)
    with pytest.raises(kiln.InvalidArgument, match="from its file"):
        kiln.onnx.load(made, context=context)


@pytest.mark.parametrize("where", ["a node", "a default", "a branch"])
def test_weights_of_functions_lie_in_the_folder_too(where: str, tmp_path: Path, context: kiln.Context,
                                                    monkeypatch: pytest.MonkeyPatch) -> None:
    """As an attribute of a node, as what an attribute is where none is told, or of a graph inside."""
    (folder := tmp_path / "model").mkdir()
    (elsewhere := tmp_path / "elsewhere").mkdir()
    w = np.arange(100, dtype=np.float32)
    for path, array in ((folder / "w.bin", w), (elsewhere / "w.bin", -w), (tmp_path / "w.bin", -w)):
        path.write_bytes(array.tobytes())

    def made(location: str) -> bytes:
        tensor = TensorProto(name="w", data_type=F32, dims=[100], data_location=TensorProto.EXTERNAL)
        tensor.external_data.add(key="location", value=location)
        add, constant = node("Add", ["x", "w"], ["y"]), node("Constant", [], ["w"], value=tensor)
        if where == "a branch":
            then = branch("then", [node("Add", ["x", "w"], ["b"])], ["b"])
            then.initializer.append(tensor)
            nodes = [node("Constant", [], ["p"], value=numpy_helper.from_array(np.array(True))),
                     node("If", ["p"], ["y"], then_branch=then, else_branch=branch("e", [node("Neg", ["x"], ["c"])], ["c"]))]
        else:
            nodes = [constant, add]
        inner = helper.make_function("my", "F", ["x"], ["y"], nodes, [helper.make_opsetid("", 21)])
        if where == "a default":
            inner.node[0].attribute[0].CopyFrom(onnx.AttributeProto(name="value", ref_attr_name="w",
                                                                    type=onnx.AttributeProto.TENSOR))
            inner.attribute_proto.append(helper.make_attribute("w", tensor))
        model_ = model([node("F", ["x"], ["z"], domain="my")], [value("x", [100])], ["z"], functions=[inner])
        model_.opset_import.add(domain="my", version=1)
        return bytes(model_.SerializeToString())
    monkeypatch.chdir(elsewhere)
    (folder / "m.onnx").write_bytes(made("w.bin"))
    session = kiln.onnx.Session(folder / "m.onnx", context=context, backend="cpu")
    np.testing.assert_array_equal(session(np.ones(100, np.float32))[0], w + 1)
    (folder / "m.onnx").write_bytes(made("../w.bin"))
    with pytest.raises(kiln.InvalidArgument, match="'w' lie in '../w.bin', which is not in the model's folder"):
        kiln.onnx.load(folder / "m.onnx", context=context)


def test_files_that_are_none_are_not_waited_for(tmp_path: Path, context: kiln.Context) -> None:
    made = model([node("Add", ["x", "w"], ["y"])], [value("x", [4])], ["y"], {"w": np.zeros(4, np.float32)})
    onnx.save_model(made, str(tmp_path / "m.onnx"), save_as_external_data=True, location="m.bin", size_threshold=0)
    (tmp_path / "m.bin").unlink()
    os.mkfifo(tmp_path / "m.bin")
    with pytest.raises(kiln.FileError, match="'w' lie in 'm.bin', and there is no such file"):
        kiln.onnx.load(tmp_path / "m.onnx", context=context)


def test_weights_of_a_file_that_is_too_short(tmp_path: Path, context: kiln.Context) -> None:
    made = model([node("Add", ["x", "w"], ["y"])], [value("x", [4])], ["y"], {"w": np.zeros(4, np.float32)})
    onnx.save_model(made, str(tmp_path / "m.onnx"), save_as_external_data=True, location="m.bin", size_threshold=0)
    (tmp_path / "m.bin").write_bytes(b"1234567")
    with pytest.raises(kiln.Corrupt, match="'w' lie in 'm.bin', in bytes 0 to 16, and that file has 7"):
        kiln.onnx.load(tmp_path / "m.onnx", context=context)


def _external(folder: Path, weights: dict[str, Any], **told: str) -> Path:
    """A model's file whose weight w lies elsewhere: in m.bin, if nothing else is told."""
    (folder / "m.bin").write_bytes(bytes(2**15))
    made = model([node("MatMul", ["x", "w"], ["y"])], [value("x", [1, 64])], ["y"])
    tensor = TensorProto(**{"name": "w", "data_type": F32, "dims": [64, 64], **weights}, data_location=TensorProto.EXTERNAL)
    for key, text in {"location": "m.bin", **told}.items():
        tensor.external_data.add(key=key, value=text)
    made.graph.initializer.append(tensor)
    (folder / "m.onnx").write_bytes(made.SerializeToString())
    return folder / "m.onnx"


@pytest.mark.parametrize("weights, told, message", [
    ({}, {"length": "16"}, r"the weights of 'w' lie in 'm.bin', of length 16, and 16384 bytes were expected for FLOAT\[64, 64\]"),
    ({}, {"length": "0"}, "of length 0, and 16384 bytes were expected"),
    ({}, {"length": "16388"}, "of length 16388, and 16384 bytes were expected"),
    ({"data_type": TensorProto.UINT4}, {"length": "4096"}, "of length 4096, and 2048 bytes were expected"),
    ({}, {"length": "1e5"}, "the length of the weights of 'w' in their file is '1e5', and a number of bytes was expected"),
    ({}, {"length": "9" * 5000}, "the length of the weights of 'w' in their file is '9{32}', and a number"),
    ({}, {"offset": "-4"}, "the offset of the weights of 'w' in their file is '-4', and a number of bytes was expected"),
    ({}, {"offset": "abc", "length": "16384"}, "the offset of the weights of 'w' in their file is 'abc', and a number"),
    ({}, {"location": "a\0b"}, r"the weights of 'w' lie in 'a\\x00b', and a file's name has no null byte"),
    ({"dims": [-1, 64]}, {}, r"the weights of 'w' are of shape \[-1, 64\]")])
def test_weights_that_lie_where_nothing_fits(weights: dict[str, Any], told: dict[str, str], message: str, tmp_path: Path,
                                             context: kiln.Context) -> None:
    path = _external(tmp_path, weights, **told)
    with pytest.raises(kiln.Corrupt, match=message):
        kiln.onnx.load(path, context=context)
    with pytest.raises(kiln.Corrupt, match=message):
        kiln.onnx.Session(path, context=context, backend="cpu")(np.ones((1, 64), np.float32))


def test_weights_of_a_branch_that_lie_where_no_number_says(tmp_path: Path, context: kiln.Context) -> None:
    tensor = TensorProto(name="k", data_type=F32, dims=[4], data_location=TensorProto.EXTERNAL)
    for key, text in (("location", "m.bin"), ("offset", "four")):
        tensor.external_data.add(key=key, value=text)
    then = branch("then", [node("Constant", [], ["a"], value=tensor)], ["a"])
    made = model([node("If", ["p"], ["y"], then_branch=then, else_branch=branch("e", [node("Neg", ["x"], ["b"])], ["b"]))],
                 [value("x", [4]), value("p", [], BOOL)], ["y"])
    for source in (made, made.SerializeToString()):
        with pytest.raises(kiln.Corrupt, match="the offset of the weights of 'k' in their file is 'four'"):
            kiln.onnx.load(source, context=context)


@pytest.mark.parametrize("told", [{}, {"length": "8"}])
def test_weights_of_a_type_without_a_size(told: dict[str, str], tmp_path: Path, context: kiln.Context) -> None:
    with pytest.raises(kiln.TypeMismatch, match="the elements of 'w' cannot be read: .*STRING"):
        kiln.onnx.load(_external(tmp_path, {"data_type": TensorProto.STRING}, **told), context=context)
