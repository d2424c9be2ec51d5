"""Products of matrices."""

from __future__ import annotations

from kiln import Value, ops
from kiln.onnx._node import Node
from kiln.onnx._registry import op


@op("MatMul")
def matmul(n: Node, a: Value, b: Value) -> Value:
    """The product of matrices; batch dims broadcast."""
    return ops.matmul(a, b)


@op("Gemm")
def gemm(n: Node, a: Value, b: Value, c: Value | None = None) -> Value:
    """alpha a b + beta c, with a and b transposed or not."""
    alpha, beta = n.number("alpha", 1.0), n.number("beta", 1.0)
    transpose_a, transpose_b = n.flag("transA"), n.flag("transB")
    if c is not None and alpha == beta == 1.0 and transpose_b and not transpose_a and (
            c.ndim == 1 and c.shape[0] == b.shape[0]):
        return ops.linear(a, b, c)
    made = ops.matmul(a, b, transpose_a=transpose_a, transpose_b=transpose_b)
    if alpha != 1.0:
        made = made * alpha
    if c is None or beta == 0.0:
        return made
    return made + (c if beta == 1.0 else c * beta)


@op("Einsum")
def einsum(n: Node, *xs: Value) -> Value:
    """The sums of products that an equation names."""
    return ops.einsum(*xs, equation="".join(n.text("equation").split()))


@op("Det")
def det(n: Node, x: Value) -> Value:
    """Determinants."""
    return ops.det(x)
