"""Calls of ops: attributes as values, and graphs (attributes of call, cond, while) run node by node."""

import json
import re

import numpy as np
import torch

import elements


class Call:
    """One op with what it is called with. `x`: the operands; `types`: their element types; `attrs`: all attributes."""

    def __init__(self, x, types, attrs, run):
        self.x, self.types, self.attrs, self.run = [np.asarray(each) for each in x], types, attrs, run

    def __getattr__(self, name):
        """An attribute of the op."""
        try:
            return self.__dict__["attrs"][name]
        except KeyError as error:
            raise AttributeError(name) from error

    def tensor(self, operand):
        return torch.from_numpy(np.ascontiguousarray(self.x[operand]).reshape(self.x[operand].shape))

    def tensors(self):
        return [self.tensor(k) for k in range(len(self.x))]

    @property
    def is_float(self):
        return self.x[0].dtype == np.float64


def default_of(attr):
    """An attribute's default, which `kiln ops` tells as text."""
    text = attr["default"]
    if attr["kind"] == "dtype":
        return None if text == "none" else text
    if attr["kind"] == "graph":
        return None
    return float(text) if attr["kind"] == "f64" and text != "[]" else json.loads(text)


def value_of(kind, given, sizes):
    """One value as a graph's JSON has it; a dim may be an expression over symbols."""
    if isinstance(given, list):
        return [value_of(kind, item, sizes) for item in given]
    if kind == "f64":
        return float(given)
    if kind == "i64":
        return int(given)
    if kind == "dim" and isinstance(given, str):  # in Python's words, for one slash divides exactly
        return int(eval(re.sub("/+", "//", given), {"min": min, "max": max}, dict(sizes)))
    return given


def complete(op, given, sizes):
    """All attributes of the op, a schema, where `given` are those that are no defaults."""
    return {attr["name"]: value_of(attr["kind"], given[attr["name"]], sizes) if attr["name"] in given
            else default_of(attr) for attr in op["attrs"]}


class Machine:
    """Calls peers: `ops` are the schemas, `peers` what computes each."""

    def __init__(self, ops, peers):
        self.ops, self.peers = {op["name"]: op for op in ops}, peers

    def call(self, name, x, types, given, sizes=None):
        """The op's results, a list of arrays."""
        op = self.ops[name]
        results = self.peers[name].compute(Call(x, types, complete(op, given, sizes or {}), self.run))
        results = list(results) if isinstance(results, (list, tuple)) else [results]
        return [as_array(y) for y in results]

    def run(self, graph, arguments):
        """The outputs of a graph, in a graph's JSON form."""
        sizes, values = {}, {}
        for node, x in zip(graph.get("inputs", []), arguments, strict=True):
            sizes.update((dim, x.shape[d]) for d, dim in enumerate(node["type"]["shape"]) if isinstance(dim, str))
            values[node["name"]] = [(x, node["type"]["dtype"])]
        for node in graph.get("nodes", []):
            operands = [values[name.partition(":")[0]][int(name.partition(":")[2] or 0)] for name in node["inputs"]]
            results = self.call(node["op"], [x for x, _ in operands], [dtype for _, dtype in operands],
                                node.get("attrs", {}), sizes)
            values[node["name"]] = [(y, type_of(y)) for y in results]
        outputs = [output["value"].partition(":") for output in graph["outputs"]]
        return [values[name][int(number or 0)][0] for name, _, number in outputs]


def type_of(x):
    return next((name for name, dtype in elements.NUMPY.items() if x.dtype == dtype), "f64")


def as_array(y):
    y = np.asarray(y)
    return y.astype(np.float64) if y.dtype.kind == "f" else y
