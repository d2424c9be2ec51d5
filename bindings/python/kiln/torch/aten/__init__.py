"""The rows, one file an op family."""

from __future__ import annotations

from kiln.torch.aten import activation, attention, convolution, create, indexing, loss  # noqa: F401
from kiln.torch.aten import matmul, norm, pointwise, pooling, random, reduction, scans, shape  # noqa: F401
