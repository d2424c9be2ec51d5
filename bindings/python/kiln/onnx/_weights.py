"""Weights of a model: parameters of the Kiln graph where they are many or floats, else constants."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir

import kiln
from kiln._errors import file_error
from kiln.onnx._types import dtype_of_array, is_literal, of_four_bits
from kiln.onnx._values import NOBODY, Array, Tensor

FOLDER = "kiln.folder"
"""Where the folder of a model that was read from a file stands in its `meta`."""

SMALL = 64
"""Known elements up to here are constants (and part of a cache key), more are parameters."""


def kiln_name(name: str) -> str:
    """A name of ONNX's as Kiln has names: without colons and control characters."""
    return re.sub(r"[:\x00-\x1f\x7f]", ".", name)


def kiln_names(names: Sequence[str]) -> dict[str, str]:
    """The same of several at once, each with a name of its own: `x:0` beside `x.0` is `x.0.2`."""
    made = {name: name for name in names if kiln_name(name) == name}
    taken = set(made.values())
    for name in names:
        base, number = kiln_name(name), 1
        while name not in made:
            called = base if number == 1 else f"{base}.{number}"
            number += 1
            if called not in taken:
                made[name] = called
                taken.add(called)
    return made


class NameTaken(Exception):
    """A node that Kiln named has a weight's name: weights have to come first."""


class Weights:
    """Those of one graph, by name; `taken` are names that others have.

    They are declared when something uses them, since many only tell sizes; or all of them at once (`declare`).
    `folder` is the model's; a model that is not of a file has none.
    """

    def __init__(self, graph: kiln.Graph, taken: Iterable[str], folder: str | None, declare: bool = False) -> None:
        self.graph, self.arrays = graph, dict[str, Array]()
        self._taken, self._folder, self._declare = set(taken), folder, declare

    def elements(self, tensor: ir.TensorProtocol) -> Array:
        """What a tensor of the model holds; of one in a file the mapped file. Here alone are such files opened.

        Refuses files outside of the model's folder, links out of it included, and without a folder all files.
        """
        try:
            if any(size < 0 for size in tensor.shape.numpy()):  # NumPy would take it for what is left of the bytes
                raise kiln.Corrupt(f"the weights of '{tensor.name}' are of shape {list(tensor.shape.numpy())}")
            if isinstance(tensor, ir.ExternalTensor):
                self._check_file(tensor)
            return np.asarray(tensor.numpy())
        except kiln.Error:
            raise
        except (TypeError, ValueError) as error:
            raise kiln.TypeMismatch(f"the elements of '{tensor.name}' cannot be read: {error}") from error

    def _check_file(self, tensor: ir.ExternalTensor) -> None:
        location = os.fspath(tensor.location)
        said = f"the weights of '{tensor.name}' lie in {location!r}"
        if self._folder is None:
            raise kiln.InvalidArgument(f"{said}: read the model from its file")
        if "\0" in location:
            raise kiln.Corrupt(f"{said}, and a file's name has no null byte")
        root = os.path.realpath(self._folder)
        path = os.path.realpath(os.path.join(root, location))
        if os.path.isabs(location) or os.path.commonpath([root, path]) != root:
            raise kiln.InvalidArgument(f"{said}, which is not in the model's folder")
        if not os.path.isfile(path):  # a pipe would be waited for
            raise file_error(errno.ENOENT, f"{said}, and there is no such file", path)
        if tensor.length not in (None, tensor.nbytes):
            raise kiln.Corrupt(f"{said}, of length {tensor.length}, and {tensor.nbytes} bytes were expected for "
                               f"{tensor.dtype.name}{list(tensor.shape.numpy())}")
        size, begin = os.path.getsize(path), tensor.offset or 0
        end = begin + tensor.nbytes
        if end > size:
            raise kiln.Corrupt(f"{said}, in bytes {begin} to {end}, and that file has {size}")
        tensor.base_dir = self._folder

    def tensor(self, array: Array, name: str) -> Tensor:
        """Elements that the model holds, which are put into the graph when something uses them there."""
        if of_four_bits(array):  # as bytes; dequantize has a way for halves of them
            made = Tensor("i4" if array.dtype.name == "int4" else "u4", array.shape, known=array, deciders=NOBODY)
            made.make = lambda: self._stored(array.astype(np.int8 if made.dtype == "i4" else np.uint8), name)
            return made
        try:
            made = Tensor.elements(array)
        except KeyError:
            raise kiln.Unimplemented(f"'{name}' is of {array.dtype}, a type that Kiln does not have") from None
        if not is_few(made) or (array.ndim and made.dtype.startswith(("f", "bf"))):
            made.make = lambda: self._stored(array, name)
            if self._declare:
                made.in_graph(self.graph)
        return made

    def packed(self, tensor: Tensor, name: str) -> kiln.Value | None:
        """Numbers of 4 bits as Kiln has them, two a byte along the last dim; None where that is of odd size."""
        known = tensor.known
        if known is None or tensor.dtype not in ("i4", "u4") or not known.ndim or known.shape[-1] % 2:
            return None
        low, high = (known[..., i::2].astype(np.uint8) & 15 for i in range(2))
        return self._stored(low | high << 4, name)

    def _stored(self, array: Array, name: str) -> kiln.Value:
        base, number = kiln_name(name), 1
        while True:
            called = base if number == 1 else f"{base}.{number}"
            number += 1
            if called in self._taken:
                continue  # names of nested graphs may be those of others
            self._taken.add(called)
            try:
                value = self.graph.parameter(called, dtype_of_array(array), array.shape)
            except kiln.InvalidArgument as error:
                if "is taken" not in str(error):
                    raise
                if not self._declare:
                    raise NameTaken(called) from None
            else:
                self.arrays[called] = array
                return value


def misplaced(model: onnx.ModelProto) -> str | None:
    """Of a model that onnx-ir does not read: what should tell where weights lie, and is no number; else None."""
    messages: list[Any] = [model]
    while messages:
        message = messages.pop()
        for entry in message.external_data if isinstance(message, onnx.TensorProto) else ():
            if entry.key in ("offset", "length") and not _is_count(entry.value):
                return (f"the {entry.key} of the weights of '{message.name}' in their file is {entry.value[:32]!r}, and a "
                        "number of bytes was expected")
        for field, value in message.ListFields():
            if field.message_type:
                messages.extend([value] if hasattr(value, "ListFields") else value)
    return None


def _is_count(text: str) -> bool:
    try:
        return int(text) >= 0  # as onnx reads it
    except ValueError:
        return False


def is_few(tensor: Tensor) -> bool:
    """Whether it is known, and as good as a constant anywhere."""
    known = tensor.known
    return known is not None and (known.size <= SMALL or not is_literal(known)) and not of_four_bits(known)
