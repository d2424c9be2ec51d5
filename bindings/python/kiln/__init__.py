"""Kiln: a JIT runtime for tensor graphs.

    import kiln, numpy as np
    g = kiln.Graph()
    x = g.input("x", "f32", ["n", 4])
    g.output(kiln.ops.softmax(x * 2.0))
    softmax = kiln.compile(g)          # or maps it from the cache; one compilation serves every n
    softmax(np.ones((3, 4), np.float32))
"""

from __future__ import annotations

from kiln._errors import (Busy, Cancelled, Corrupt, Error, FileError, FileForbidden, FileNotFound, Incompatible,
                          Internal, InvalidArgument, Invariant, NoDevice, NotCached, OutOfMemory, OutOfRange, Overflow,
                          PluginFailed, TypeMismatch, Unimplemented, UnknownName)
from kiln._kiln import (Array, Call, Context, Dim, DType, Executable, Graph, Node, Value, bf16, bool_, build_report,
                        dim_max, dim_min, dtype, dtypes, f8_e4m3fn, f8_e5m2, f16, f32, f64, i8, i16, i32, i64,
                        inspect_plugin, join, open_tensors, options, plan_parts, save_tensors, token, u8, u16, u32, u64)
from kiln._graph import region, scope

TYPE_CHECKING = False  # typing costs more to import than all of this
if TYPE_CHECKING:
    from typing import Any

    from kiln import array_api as array_api
    from kiln import ops as ops
    from kiln._bench import bench as bench
    from kiln._default import compile as compile
    from kiln._default import default_context as default_context
    from kiln._default import load as load
    from kiln._default import set_default_context as set_default_context
    from kiln._hosts import Type as Type
    from kiln._hosts import function as function
    from kiln._hosts import graph_pass as graph_pass
    from kiln._hosts import op as op
    from kiln._jit import jit as jit
    from kiln._progress import progress as progress
    from kiln._trees import register_tree as register_tree

    __version__: str

# What is imported when it is first used: a start costs what it uses.
_LATER = {"ops": "kiln.ops", "jit": "kiln._jit", "register_tree": "kiln._trees", "array_api": "kiln.array_api",
          "bench": "kiln._bench", "compile": "kiln._default", "load": "kiln._default",
          "progress": "kiln._progress",
          "graph_pass": "kiln._hosts", "op": "kiln._hosts", "function": "kiln._hosts", "Type": "kiln._hosts",
          "default_context": "kiln._default", "set_default_context": "kiln._default"}

__all__ = [
    "Array", "Busy", "Call", "Cancelled", "Context", "Corrupt", "DType", "Dim", "Error", "Executable", "FileError",
    "FileForbidden", "FileNotFound", "Graph", "Incompatible", "Internal", "InvalidArgument", "Invariant", "NoDevice",
    "Node", "NotCached", "OutOfMemory", "OutOfRange", "Overflow", "PluginFailed", "Type", "TypeMismatch", "Unimplemented",
    "UnknownName", "Value", "array_api",
    "bench", "bf16", "bool_", "build_report", "compile", "default_context", "dim_max", "dim_min", "dtype", "dtypes", "f16",
    "f32", "f64", "f8_e4m3fn", "f8_e5m2", "function", "graph_pass", "i16", "i32", "i64", "i8", "inspect_plugin",
    "jit", "join", "load", "op", "open_tensors", "ops", "options", "plan_parts", "progress", "region", "register_tree",
    "save_tensors", "scope", "set_default_context", "token", "u16", "u32", "u64", "u8"]


def __getattr__(name: str) -> Any:
    if name == "__version__":  # the library's
        return build_report()["version"]
    if name not in _LATER:
        raise AttributeError(f"module 'kiln' has no attribute {name!r}")
    import importlib
    module = importlib.import_module(_LATER[name])
    found = module if _LATER[name] == f"kiln.{name}" else getattr(module, name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *_LATER})
