"""One op at a time beside the best of torch's forms of it, on as many threads: above 1 Kiln is ahead.

What is written in place by both is marked: `out=` spares torch the memory that a new result costs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.nn import functional as F

import kiln
import kiln.ops as k
from figure import ASLEEP_S, Row, effort, error_of, figure, interleave, ratios, timer

ROUNDS, SECONDS = 15, 0.02
Shape = tuple[int, ...]


@dataclass(frozen=True)
class Kernel:
    ours: Callable[..., Any]    # of values of a graph
    theirs: Callable[..., Any]  # of tensors; `out` as a keyword where `writes`
    shapes: Sequence[Shape]
    weights: Sequence[Shape] = ()  # parameters of ours, prepared once
    writes: bool = False
    target: float = 1.0
    indices: int | None = None  # the last input are numbers below this


def matmul(n: int, **more: bool) -> Kernel:
    def theirs(a: torch.Tensor, b: torch.Tensor, out: torch.Tensor) -> torch.Tensor:
        return torch.matmul(a.mT if more.get("transpose_a") else a, b.mT if more.get("transpose_b") else b, out=out)
    return Kernel(lambda a, b: k.matmul(a, b, **more), theirs, [(n, n), (n, n)], writes=True)


def linear(rows: int, depth: int, columns: int) -> Kernel:
    return Kernel(k.linear, lambda x, w, out: torch.mm(x, w.mT, out=out), [(rows, depth)], [(columns, depth)], True)


def conv(channels: int, size: int, outputs: int, window: int, stride: int = 1, groups: int = 1,
         target: float = 1.0) -> Kernel:
    same = window // 2
    return Kernel(
        lambda x, w: k.conv2d(x, w, stride=(stride, stride), padding=(same, same), groups=groups),
        lambda x, w: F.conv2d(x, w, stride=stride, padding=same, groups=groups),
        [(1, channels, size, size)], [(outputs, channels // groups, window, window)], target=target)


def attention(queries: int, keys: int, heads: int, shared: int, width: int, target: float) -> Kernel:
    causal = queries == keys
    return Kernel(
        lambda q, key, v: k.attention(q, key, v, causal=causal),
        lambda q, key, v: F.scaled_dot_product_attention(q, key, v, is_causal=causal, enable_gqa=heads != shared),
        [(1, heads, queries, width), (1, shared, keys, width), (1, shared, keys, width)], target=target)


def same(name: str, shape: Shape, count: int = 1) -> Kernel:
    return Kernel(getattr(k, name), getattr(torch, name), [shape] * count, writes=True)


def sums(dims: Sequence[int]) -> Kernel:
    return Kernel(lambda x: k.sum(x, dims), lambda x, out: torch.sum(x, list(dims), out=out), [(4096, 4096)],
                  writes=True)


KERNELS = {
    "add_in_cache": same("add", (256, 256), 2),
    "add_streaming": same("add", (4096, 4096), 2),
    "gelu_in_cache": Kernel(k.gelu, F.gelu, [(256, 256)]),
    "gelu_streaming": Kernel(k.gelu, F.gelu, [(4096, 4096)]),
    "layer_norm_in_cache": Kernel(k.layer_norm, lambda x, w, b: F.layer_norm(x, (768,), w, b), [(128, 768)],
                                  [(768,), (768,)]),
    "softmax_in_cache": Kernel(lambda x: k.softmax(x, -1), lambda x, out: torch.softmax(x, -1, out=out), [(256, 256)],
                               writes=True),
    "softmax_dim_0": Kernel(lambda x: k.softmax(x, 0), lambda x, out: torch.softmax(x, 0, out=out), [(1024, 1024)],
                            writes=True),
    "sum_rows": sums([1]),
    "sum_columns": sums([0]),
    "sum_all": sums([0, 1]),
    "transpose": Kernel(lambda x: k.permute(x, (1, 0)), lambda x, out: out.copy_(x.mT), [(2048, 2048)], writes=True),
    "embedding": Kernel(k.embedding, lambda table, index: F.embedding(index, table), [(50000, 768), (512,)],
                        indices=50000),
    "matmul_256": matmul(256),
    "matmul_512": matmul(512),
    "matmul_1024": matmul(1024),
    "matmul_2048": matmul(2048),
    "matmul_512_transposed_a": matmul(512, transpose_a=True),
    "matmul_512_transposed_b": matmul(512, transpose_b=True),
    "linear_1": linear(1, 2048, 2048),
    "linear_16": linear(16, 1024, 1024),
    "linear_64": linear(64, 1024, 1024),
    "linear_128": linear(128, 768, 3072),
    "linear_512": linear(512, 1024, 1024),
    "conv_3x3_64_56": conv(64, 56, 64, 3, target=1.05),
    "conv_3x3_128_28": conv(128, 28, 128, 3, target=1.05),
    "conv_3x3_256_14": conv(256, 14, 256, 3, target=1.05),
    "conv_3x3_512_7": conv(512, 7, 512, 3, target=1.05),
    "conv_3x3_stride_2": conv(64, 56, 128, 3, 2, target=1.05),
    "conv_7x7": conv(3, 224, 64, 7, 2),
    "conv_1x1": conv(256, 14, 1024, 1),
    "conv_depthwise": conv(144, 56, 144, 3, groups=144),
    "attention_128": attention(128, 128, 12, 12, 64, 1.5),
    "attention_1024": attention(1024, 1024, 12, 12, 64, 1.4),
    "attention_4096": attention(4096, 4096, 4, 4, 64, 1.4),
    "attention_decode_1k": attention(1, 1024, 32, 8, 64, 1.3),
    "attention_decode_8k": attention(1, 8192, 32, 8, 64, 1.3),
    "attention_decode_32k": attention(1, 32768, 32, 8, 64, 1.3),
}


def program(kernel: Kernel, context: kiln.Context, given: Sequence[torch.Tensor],
            weights: Mapping[str, torch.Tensor]) -> Any:
    """Bound to its inputs and to a result, so that a call is the kernel's work."""
    graph = kiln.Graph(context)
    inputs = {f"x{i}": x for i, x in enumerate(given)}
    types = {torch.float32: "f32", torch.int64: "i64"}
    values = [graph.input(name, types[x.dtype], list(x.shape)) for name, x in inputs.items()]
    values += [graph.parameter(name, "f32", list(w.shape)) for name, w in weights.items()]
    graph.output(kernel.ours(*values), "y")
    compiled = kiln.compile(graph)
    result = compiled.bind(weights)(*given) if weights else compiled(*given)
    return compiled.bind(**weights, **inputs, y=torch.empty_like(result)), result


def measure(name: str, kernel: Kernel) -> Row:
    torch.manual_seed(0)
    given = [torch.randn(shape) for shape in kernel.shapes]
    if kernel.indices:
        given[-1] = torch.randint(0, kernel.indices, kernel.shapes[-1])
    weights = {f"w{i}": torch.randn(shape) / math.sqrt(math.prod(shape[1:])) for i, shape in enumerate(kernel.weights)}
    tensors = [*given, *weights.values()]
    with torch.no_grad(), kiln.Context(cache="off", threads=torch.get_num_threads()) as context:
        bound, result = program(kernel, context, given, weights)
        out = {"out": torch.empty_like(result)} if kernel.writes else {}
        exact = [x.double() if x.is_floating_point() else x for x in tensors]
        wanted = kernel.theirs(*exact, **{name: torch.empty_like(result).double() for name in out})
        theirs = kernel.theirs(*tensors, **out)
        errors = {"kiln": error_of("kiln", [result], [wanted]), "torch": error_of("torch", [theirs], [wanted])}
        times = interleave({"kiln": timer(bound), "torch": timer(lambda: kernel.theirs(*tensors, **out))}, ROUNDS,
                           SECONDS, ASLEEP_S)
    return Row(f"kernel_{name}", ratios(times, "torch", "kiln"), "x torch / kiln", kernel.target,
               higher_is_better=True, times=times, errors=errors, note="out=" if kernel.writes else "")


@figure
def kernels() -> Iterator[Row]:
    """The ops that models spend their time in, of f32."""
    for name in list(KERNELS)[:4] if effort.brief else KERNELS:
        yield measure(name, KERNELS[name])
