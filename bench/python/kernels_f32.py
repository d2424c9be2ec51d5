"""Kernels of f32."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch
from torch.nn import functional as F

import kiln.ops as k
from figure import Row, figure
from kernel import (COPIED, STREAMED, Kernel, attention, chosen, conv, gelu, layer_norm, linear, matmul, measure, moved,
                    pointwise, softmax)
from peers import jnp


def sums(dims: Sequence[int]) -> Kernel:
    return Kernel(lambda x: k.sum(x, dims), lambda x, out: torch.sum(x, list(dims), out=out),
                  lambda x: jnp.sum(x, tuple(dims)), [(4096, 4096)], writes=True,
                  part=moved("read", 4096 * 4096, 4, STREAMED))


def transpose(n: int) -> Kernel:
    return Kernel(lambda x: k.permute(x, (1, 0)), lambda x, out: out.copy_(x.mT), lambda x: x.T, [(n, n)], writes=True,
                  part=moved("copy", 2 * n * n, 4, COPIED))


KERNELS = {
    "add_in_cache": pointwise("add", (256, 256), 2),
    "add_streaming": pointwise("add", (4096, 4096), 2),
    "gelu_in_cache": gelu((256, 256)),
    "gelu_streaming": gelu((4096, 4096)),
    "layer_norm_in_cache": layer_norm(128, 768),
    "softmax_in_cache": softmax((256, 256), -1),
    "softmax_dim_0": softmax((1024, 1024), 0),
    "sum_rows": sums([1]),
    "sum_columns": sums([0]),
    "sum_all": sums([0, 1]),
    "transpose": transpose(2048),
    "transpose_4096": transpose(4096),
    "embedding": Kernel(k.embedding, lambda table, index: F.embedding(index, table),
                        lambda table, index: table.at[index].get(mode="promise_in_bounds"), [(50000, 768), (512,)],
                        types=(torch.float32, torch.int64), indices=50000),
    "matmul_256": matmul(256),
    "matmul_512": matmul(512),
    "matmul_1024": matmul(1024),
    "matmul_2048": matmul(2048),
    "matmul_512_transposed_a": matmul(512, transpose_a=True),
    "matmul_512_transposed_b": matmul(512, transpose_b=True),
    "linear_1": linear(1, 2048, 2048),
    "linear_1_streaming": linear(1, 4096, 8192),
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


@figure
def kernels() -> Iterator[Row]:
    """The ops that models spend their time in, of f32."""
    for name in chosen(KERNELS, ("add_in_cache", "linear_16", "layer_norm_in_cache", "conv_1x1", "attention_128")):
        yield measure(name, KERNELS[name])
