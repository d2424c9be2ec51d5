"""`torch.compile(model, backend="kiln")`: torch's models on Kiln.

    import torch
    model = torch.compile(model, backend="kiln")        # or backend=kiln.torch.backend
"""

from __future__ import annotations

from kiln.torch.compiler import backend
from kiln.torch.export import export
from kiln.torch.freeze import refresh
from kiln.torch.report import clear as clear_reports
from kiln.torch.report import graphs as reports
from kiln.torch.report import summary
from kiln.torch.rows import coverage

__all__ = ["backend", "clear_reports", "coverage", "export", "refresh", "reports", "summary"]
