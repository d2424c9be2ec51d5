"""The rows, one file an op family."""

from __future__ import annotations

from kiln.torch.aten import activation, attention, convolution, copies, create, functions, indexing  # noqa: F401
from kiln.torch.aten import loss, matmul, norm, others, padding, pointwise, pooling, random, recurrent  # noqa: F401
from kiln.torch.aten import reduction, resample, scans, shape, vectors  # noqa: F401
