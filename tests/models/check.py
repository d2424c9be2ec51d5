"""Computes what expected.json states from graph.json, weights and held-out data alone, in float64.

Usage: python check.py          (needs numpy and safetensors; neither PyTorch nor Kiln)

A second reading of the graphs, one numpy function per op, which tells an error in a graph from
one in Kiln. It exits with 1 where a figure differs from the one PyTorch computed.
"""

import json
import pathlib
import sys

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from safetensors.numpy import load_file

FOLDER = pathlib.Path(__file__).resolve().parent


def patches(x, kernel, stride, padding, fill):
    """All windows of x [N,C,H,W] as [N,C,OH,OW,KH,KW]."""
    edges = [(0, 0), (0, 0)] + [(p, p) for p in padding]
    windows = sliding_window_view(np.pad(x, edges, constant_values=fill), kernel, axis=(2, 3))
    return windows[:, :, ::stride[0], ::stride[1]]


def conv2d(x, weight, padding):
    return np.einsum("nchwij,ocij->nohw",
                     patches(x, weight.shape[2:], (1, 1), padding, 0.0), weight, optimize=True)


def batch_norm(x, scale, bias, mean, variance, eps):
    scale, bias, mean, variance = (v[:, None, None] for v in (scale, bias, mean, variance))
    return (x - mean) / np.sqrt(variance + eps) * scale + bias


def rope(x, positions, theta):
    half = x.shape[-1] // 2
    angles = np.outer(positions, theta ** (-np.arange(half) / half))
    turned = (x[..., :half] + 1j * x[..., half:]) * np.exp(1j * angles)
    return np.concatenate((turned.real, turned.imag), axis=-1)


def attention(query, key, value, causal):
    assert causal
    result = np.empty(query.shape[:3] + value.shape[3:])
    shared = query.shape[1] // key.shape[1]
    queries, keys = query.shape[2], key.shape[2]
    hidden = np.triu(np.ones((queries, keys), bool), 1 + keys - queries)
    for head in range(query.shape[1]):
        scores = query[:, head] @ key[:, head // shared].swapaxes(1, 2) / query.shape[3] ** 0.5
        scores = np.exp(np.where(hidden, -np.inf, scores - scores.max(-1, keepdims=True)))
        result[:, head] = scores / scores.sum(-1, keepdims=True) @ value[:, head // shared]
    return result


OPS = {
    "add": np.add,
    "mul": np.multiply,
    "mean": lambda x, dims, keepdim: x.mean(tuple(dims), keepdims=keepdim),
    "rsqrt": lambda x: 1.0 / np.sqrt(x),
    "relu": lambda x: np.maximum(x, 0.0),
    "silu": lambda x: x / (1.0 + np.exp(-x)),
    "iota": lambda shape, dim, dtype: np.arange(shape[dim]),
    "reshape": lambda x, shape: x.reshape(shape),
    "permute": lambda x, dims: x.transpose(dims),
    "embedding": lambda weight, index: weight[index],
    "linear": lambda x, weight, bias=0.0: x @ weight.T + bias,
    "conv2d": conv2d,
    "max_pool2d": lambda x, kernel: patches(x, kernel, kernel, (0, 0), -np.inf).max((-2, -1)),
    "batch_norm": batch_norm,
    "rope": rope,
    "attention": attention,
}


class Interpreter:
    def __init__(self, folder):
        self.graph = json.loads((folder / "graph.json").read_text(encoding="utf-8"))
        weights = load_file(folder / "weights.safetensors")
        declared = {p["name"]: tuple(p["type"]["shape"]) for p in self.graph["parameters"]}
        assert declared == {name: weight.shape for name, weight in weights.items()}
        self.fixed = {name: weight.astype(np.float64) for name, weight in weights.items()}
        for constant in self.graph.get("constants", []):
            shape = constant["type"]["shape"]
            self.fixed[constant["name"]] = np.array(constant["data"], np.float64).reshape(shape)

    def __call__(self, x):
        """Runs the graph, which has one input and one output, node by node."""
        [declared] = self.graph["inputs"]
        assert len(declared["type"]["shape"]) == x.ndim
        sizes = dict(zip(declared["type"]["shape"], x.shape))
        values = {**self.fixed, declared["name"]: x}
        for node in self.graph["nodes"]:
            attrs = dict(node.get("attrs", {}))
            if "shape" in attrs:
                attrs["shape"] = [sizes.get(dim, dim) for dim in attrs["shape"]]
            assert node["name"] not in values
            values[node["name"]] = OPS[node["op"]](*(values[i] for i in node["inputs"]), **attrs)
        [output] = self.graph["outputs"]
        return values[output["value"]]


def accuracy(folder):
    images = np.load(folder / "test_images.npy").astype(np.float64)
    labels = np.load(folder / "test_labels.npy")
    return float((Interpreter(folder)(images).argmax(1) == labels).mean())


def bits(run, tokens, length, batch, start):
    windows = tokens[start:start + batch * (length + 1)].reshape(batch, length + 1)
    logits = run(windows[:, :-1])
    logits -= logits.max(-1, keepdims=True)
    chosen = np.take_along_axis(logits, windows[:, 1:, None], -1)[..., 0]
    return float((np.log2(np.exp(logits).sum(-1)) - chosen / np.log(2.0)).mean())


def main():
    def expected(name):
        return json.loads((FOLDER / name / "expected.json").read_text(encoding="utf-8"))

    rows = [("digits accuracy", accuracy(FOLDER / "digits"), expected("digits")["accuracy"])]
    run, tokens = Interpreter(FOLDER / "chars"), np.load(FOLDER / "chars" / "held_out.npy")
    figures = expected("chars")
    for window in figures["windows"] + [figures["whole"]]:
        stated = window.pop("bits_per_character")
        rows.append((f"chars bits {window}", bits(run, tokens, **window), stated))
    for what, computed, stated in rows:
        print(f"{what}: {computed:.12f}, {computed - stated:+.1e} from PyTorch")
    return any(abs(computed - stated) > 1e-9 for _, computed, stated in rows)


if __name__ == "__main__":
    sys.exit(main())
