"""The ops of ONNX, a file a family. Importing one registers its functions."""

from __future__ import annotations

import importlib
import pkgutil


def load_all() -> None:
    """Registers all of them."""
    for module in pkgutil.iter_modules(__path__):
        importlib.import_module(f"{__name__}.{module.name}")
