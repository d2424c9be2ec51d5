"""One op beside the peers' forms of it, on as many threads: above 1 Kiln is ahead of the quickest of them.

What torch writes in place is marked: `out=` spares it the memory that a new result costs, as a result that is given
back spares JAX (peers.in_jax). What is constant for Kiln is packed for torch, too, where it has a packed form.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.nn import functional as F

import kiln
import kiln.ops as k
from figure import ASLEEP_S, Part, Row, able, beside_best, effort, error_of, interleave, timer
from peers import in_jax, jax, jnp

ROUNDS, SECONDS = 15, 0.02
TYPES = {torch.float32: "f32", torch.bfloat16: "bf16", torch.float16: "f16", torch.int8: "i8", torch.int64: "i64"}
# Of the largest element: some roundings to the type, more where peers round between the ops that they are made of.
MOST = {torch.float32: 1e-4, torch.bfloat16: 2e-2, torch.float16: 4e-3, torch.int8: 0.0}
PACKED, INPUTS, STREAMED, COPIED = 0.92, 0.88, 0.9, 0.8  # of the roof, where contractions or memory bound all
LARGE = 64 << 20  # bytes that no cache holds
Shape = tuple[int, ...]
Made = Callable[[], Any]


@dataclass(frozen=True)
class Kernel:
    ours: Callable[..., Any]    # of values of a graph
    theirs: Callable[..., Any]  # of tensors; `out` as a keyword where `writes`
    jax: Callable[..., Any]     # of JAX's arrays
    shapes: Sequence[Shape]
    weights: Sequence[Shape] = ()  # parameters of ours, prepared once
    writes: bool = False
    target: float = 1.0
    other: tuple[str, Callable[..., Made]] | None = None  # torch's other form: its name, and of tensors its call
    part: Part | None = None
    dtype: torch.dtype = torch.float32  # what is computed in
    types: Sequence[torch.dtype] = ()   # of inputs and weights where they are not all of it
    indices: int | None = None          # inputs of i64 are numbers below this
    exact: Callable[..., Any] | None = None  # theirs, where that takes no float64


def contraction(rows: int, depth: int, columns: int, target: float | None) -> Part:
    return Part("fma", 2.0 * rows * depth * columns, target)


def moved(roof: str, elements: int, size: int, target: float) -> Part | None:
    """Memory that a run reads and writes, whose roof caches do not have."""
    return Part(roof, float(elements * size), target) if elements * size >= LARGE else None


def matmul(n: int, dtype: torch.dtype = torch.float32, target: float = 1.0, **more: bool) -> Kernel:
    def turned(a: Any, b: Any) -> tuple[Any, Any]:
        return a.mT if more.get("transpose_a") else a, b.mT if more.get("transpose_b") else b

    return Kernel(lambda a, b: k.matmul(a, b, **more), lambda a, b, out: torch.matmul(*turned(a, b), out=out),
                  lambda a, b: jnp.matmul(*turned(a, b)), [(n, n), (n, n)], writes=True, target=target, dtype=dtype,
                  part=contraction(n, n, n, INPUTS) if dtype == torch.float32 else None)


def linear(rows: int, depth: int, columns: int, dtype: torch.dtype = torch.float32, target: float = 1.0) -> Kernel:
    def packed(x: torch.Tensor, w: torch.Tensor) -> Made:
        made = torch.ops.mkl._mkl_reorder_linear_weight(w, rows)
        return lambda: torch.ops.mkl._mkl_linear(x, made, w, None, rows)

    f32 = dtype == torch.float32
    part = (contraction(rows, depth, columns, PACKED if rows >= 64 else None) if rows > 1
            else moved("read", depth * columns, 4, STREAMED))
    return Kernel(k.linear, lambda x, w, out: torch.mm(x, w.mT, out=out), lambda x, w: jnp.einsum("mk,nk->mn", x, w),
                  [(rows, depth)], [(columns, depth)], True, target, ("packed", packed) if f32 else None,
                  part if f32 else None, dtype)


def conv(channels: int, size: int, outputs: int, window: int, stride: int = 1, groups: int = 1,
         target: float = 1.0, dtype: torch.dtype = torch.float32) -> Kernel:
    same, shape, f32 = window // 2, (1, channels, size, size), dtype == torch.float32

    def packed(x: torch.Tensor, w: torch.Tensor) -> Made:
        said = [same, same], [stride, stride], [1, 1], groups
        made = torch.ops.mkldnn._reorder_convolution_weight(w, *said, list(shape))
        return lambda: torch.ops.mkldnn._convolution_pointwise(x, made, None, *said, "none", [], "")

    products = outputs * (channels // groups) * window**2 * (size // stride) ** 2
    return Kernel(
        lambda x, w: k.conv2d(x, w, stride=(stride, stride), padding=(same, same), groups=groups),
        lambda x, w: F.conv2d(x, w, stride=stride, padding=same, groups=groups),
        lambda x, w: jax.lax.conv_general_dilated(x, w, (stride, stride), [(same, same)] * 2,
                                                  feature_group_count=groups),
        [shape], [(outputs, channels // groups, window, window)], target=target,
        other=("packed", packed) if f32 else None, part=Part("fma", 2.0 * products) if f32 and groups == 1 else None,
        dtype=dtype)


def attention(queries: int, keys: int, heads: int, shared: int, width: int, target: float,
              dtype: torch.dtype = torch.float32) -> Kernel:
    """The peers' forms of one query for each head take those of a group of heads as its queries."""
    causal, rows = queries == keys, (1, shared, heads // shared * queries, width)
    assert queries == 1 or heads == shared

    def in_jnp(q: Any, key: Any, v: Any) -> Any:
        scores = jnp.einsum("bhqd,bhkd->bhqk", q.reshape(rows), key) / width**0.5
        if causal:
            scores = jnp.where(jnp.tril(jnp.ones(scores.shape[-2:], bool)), scores, -jnp.inf)
        return jnp.einsum("bhqk,bhkd->bhqd", jax.nn.softmax(scores, -1), v).reshape(q.shape)

    def in_torch(q: torch.Tensor, key: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        return F.scaled_dot_product_attention(q.view(rows), key, v, is_causal=causal).reshape(q.shape)

    return Kernel(
        lambda q, key, v: k.attention(q, key, v, causal=causal), in_torch, in_jnp,
        [(1, heads, queries, width), (1, shared, keys, width), (1, shared, keys, width)], target=target, dtype=dtype)


def pointwise(name: str, shape: Shape, count: int = 1, dtype: torch.dtype = torch.float32,
              target: float = 1.0) -> Kernel:
    return Kernel(getattr(k, name), getattr(torch, name), lambda *xs: getattr(jnp, name)(*xs), [shape] * count,
                  writes=True, target=target, dtype=dtype,
                  part=moved("copy", (count + 1) * math.prod(shape), dtype.itemsize, STREAMED))


def gelu(shape: Shape, dtype: torch.dtype = torch.float32, target: float = 1.0) -> Kernel:
    return Kernel(k.gelu, F.gelu, lambda x: jax.nn.gelu(x, approximate=False), [shape], target=target, dtype=dtype,
                  part=moved("copy", 2 * math.prod(shape), dtype.itemsize, STREAMED))


def softmax(shape: Shape, dim: int, dtype: torch.dtype = torch.float32, target: float = 1.0) -> Kernel:
    return Kernel(lambda x: k.softmax(x, dim), lambda x, out: torch.softmax(x, dim, out=out),
                  lambda x: jax.nn.softmax(x, dim), [shape], writes=True, target=target, dtype=dtype)


def layer_norm(rows: int, width: int, dtype: torch.dtype = torch.float32, target: float = 1.0) -> Kernel:
    def in_jnp(x: Any, w: Any, b: Any) -> Any:
        wide = x.astype("float32")  # as torch and Kiln compute it
        centred = wide - wide.mean(-1, keepdims=True)
        scaled = centred * jax.lax.rsqrt((centred * centred).mean(-1, keepdims=True) + 1e-5)
        return (scaled * w + b).astype(x.dtype)

    return Kernel(k.layer_norm, lambda x, w, b: F.layer_norm(x, (width,), w, b), in_jnp, [(rows, width)],
                  [(width,), (width,)], target=target, dtype=dtype)


def sample(kernel: Kernel) -> tuple[list[torch.Tensor], dict[str, torch.Tensor]]:
    """The inputs, and the parameters by name."""
    torch.manual_seed(0)
    shapes = [*kernel.shapes, *kernel.weights]
    made = []
    for i, (shape, dtype) in enumerate(zip(shapes, kernel.types or [kernel.dtype] * len(shapes), strict=True)):
        if dtype == torch.int8:
            made.append(torch.randint(-128, 128, shape, dtype=dtype))
        elif dtype == torch.int64:
            made.append(torch.randint(0, kernel.indices or 1, shape))
        else:
            depth = math.prod(shape[1:]) if i >= len(kernel.shapes) else 1
            made.append((torch.randn(shape) / math.sqrt(depth)).to(dtype))
    count = len(kernel.shapes)
    return made[:count], {f"w{i}": w for i, w in enumerate(made[count:])}


def program(kernel: Kernel, context: kiln.Context, given: Sequence[torch.Tensor],
            weights: Mapping[str, torch.Tensor]) -> Any:
    """Bound to its inputs and to a result, so that a call is the kernel's work."""
    graph = kiln.Graph(context)
    inputs = {f"x{i}": x for i, x in enumerate(given)}
    values = [graph.input(name, TYPES[x.dtype], list(x.shape)) for name, x in inputs.items()]
    values += [graph.parameter(name, TYPES[w.dtype], list(w.shape)) for name, w in weights.items()]
    graph.output(kernel.ours(*values), "y")
    compiled = kiln.compile(graph)
    result = compiled.bind(weights)(*given) if weights else compiled(*given)
    return compiled.bind(**weights, **inputs, y=torch.empty_like(result)), result


def exact(kernel: Kernel, tensors: Sequence[torch.Tensor], like: torch.Tensor) -> torch.Tensor:
    doubles = [x if x.dtype == torch.int64 else x.double() for x in tensors]
    if kernel.exact:
        return kernel.exact(*doubles)  # type: ignore[no-any-return]
    out = {"out": torch.empty_like(like, dtype=torch.float64)} if kernel.writes else {}
    return kernel.theirs(*doubles, **out)  # type: ignore[no-any-return]


def measure(name: str, kernel: Kernel) -> Row:
    given, weights = sample(kernel)
    tensors = [*given, *weights.values()]
    with torch.no_grad(), kiln.Context(cache="off", threads=torch.get_num_threads()) as context:
        bound, result = program(kernel, context, given, weights)
        wanted, most = exact(kernel, tensors, result), MOST[kernel.dtype]
        off = error_of("kiln", [result], [wanted], most)

        def in_torch() -> Made:
            out = {"out": torch.empty_like(result)} if kernel.writes else {}
            return lambda: kernel.theirs(*tensors, **out)

        makers: dict[str, Callable[[], Made]] = {"torch": in_torch, "jax": lambda: in_jax(kernel.jax, tensors)}
        if kernel.other:
            form, prepare = kernel.other
            makers[f"torch, {form}"] = lambda: prepare(*tensors)
        notes = ["out="] if kernel.writes else []
        run, errors = able(makers, [wanted], most, notes)
        times = interleave({who: timer(call) for who, call in {"kiln": bound, **run}.items()}, ROUNDS, SECONDS,
                           ASLEEP_S)
    return beside_best(f"kernel_{name}", times, "kiln", list(makers), kernel.target, errors={"kiln": off, **errors},
                       note="; ".join(notes), part=kernel.part)


def chosen(table: Mapping[str, Kernel], brief: Sequence[str]) -> list[str]:
    return [name for name in table if not effort.brief or name in brief]
