"""Kernels of types that are smaller than f32: bf16, f16, products of i8, weights of i8 beside larger activations."""

from __future__ import annotations

from collections.abc import Iterator

import torch

import kiln.ops as k
from figure import Row, figure
from kernel import (TYPES, Kernel, Made, attention, chosen, conv, gelu, layer_norm, linear, matmul, measure, pointwise,
                    softmax)
from peers import jnp

TARGET = 0.9
I8, F32 = torch.int8, torch.float32


def products(rows: int, depth: int, columns: int) -> Kernel:
    """i8 by i8, whose sums are exact in i32; the second is a weight."""
    return Kernel(k.linear, lambda x, w: torch._int_mm(x, w.mT),
                  lambda x, w: jnp.einsum("mk,nk->mn", x, w, preferred_element_type="int32"), [(rows, depth)],
                  [(columns, depth)], target=TARGET, dtype=I8, exact=lambda x, w: x @ w.mT)


def weights(rows: int, depth: int, columns: int, dtype: torch.dtype) -> Kernel:
    """Of i8, with a scale for each column, in a product of floats."""
    def exact(x: torch.Tensor, w: torch.Tensor, scales: torch.Tensor) -> torch.Tensor:
        return x @ (w * scales[:, None]).mT

    def dequantized(*tensors: torch.Tensor) -> Made:
        return lambda: exact(*tensors)

    return Kernel(
        lambda x, w, scales: k.linear(x, k.dequantize(w, scales, axis=0, dtype=TYPES[dtype])),
        torch._weight_int8pack_mm, lambda x, w, scales: jnp.einsum("mk,nk->mn", x, w.astype(x.dtype)) * scales,
        [(rows, depth)], [(columns, depth), (columns,)], target=TARGET, dtype=dtype, types=(dtype, I8, dtype),
        other=("dequantized", dequantized), exact=exact)


def of_16_bits(dtype: torch.dtype) -> dict[str, Kernel]:
    return {
        "add_in_cache": pointwise("add", (256, 256), 2, dtype, TARGET),
        "add_streaming": pointwise("add", (4096, 4096), 2, dtype, TARGET),
        "gelu_in_cache": gelu((256, 256), dtype, TARGET),
        "softmax_in_cache": softmax((256, 256), -1, dtype, TARGET),
        "layer_norm_in_cache": layer_norm(128, 768, dtype, TARGET),
        "matmul_512": matmul(512, dtype, TARGET),
        "linear_1": linear(1, 2048, 2048, dtype, TARGET),
        "linear_16": linear(16, 1024, 1024, dtype, TARGET),
        "linear_128": linear(128, 768, 3072, dtype, TARGET),
        "linear_512": linear(512, 1024, 1024, dtype, TARGET),
        "conv_3x3_128_28": conv(128, 28, 128, 3, target=TARGET, dtype=dtype),
        "attention_128": attention(128, 128, 12, 12, 64, TARGET, dtype),
        "attention_1024": attention(1024, 1024, 12, 12, 64, TARGET, dtype),
        "attention_decode_1k": attention(1, 1024, 32, 8, 64, TARGET, dtype),
    }


SHAPES = {"1": (1, 2048, 2048), "16": (16, 1024, 1024), "128": (128, 768, 3072), "512": (512, 1024, 1024)}
KERNELS = {
    **{f"{TYPES[dtype]}_{name}": kernel for dtype in (torch.bfloat16, torch.float16)
       for name, kernel in of_16_bits(dtype).items()},
    **{f"i8_linear_{rows}": products(*shape) for rows, shape in SHAPES.items()},
    **{f"{TYPES[dtype]}_linear_{rows}_of_i8": weights(*shape, dtype) for dtype in (F32, torch.bfloat16)
       for rows, shape in SHAPES.items()},
}


@figure
def kernels_small() -> Iterator[Row]:
    """The ops that models spend their time in, beside peers of the same types."""
    for name in chosen(KERNELS, ("bf16_linear_16", "f16_add_in_cache", "i8_linear_16", "f32_linear_16_of_i8")):
        yield measure(name, KERNELS[name])
