"""The rows, one file an op family."""

from __future__ import annotations

from kiln.torch.aten import (activation, attention, convolution, create, indexing, loss, matmul, norm, pointwise,  # noqa: F401
                             pooling, reduction, scans, shape)
