"""The peers that are not asked for what torch is: how each is set up, on as many threads as torch has."""

from __future__ import annotations

import importlib.util
import os
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch

# XLA makes as many threads when it is first used. Calls that are waited for at once are quicker made by the caller.
os.environ["NPROC"] = str(torch.get_num_threads())
os.environ["JAX_PLATFORMS"] = "cpu"
jax: Any = None
jnp: Any = None
if importlib.util.find_spec("jax"):
    import jax
    import jax.numpy as jnp
    jax.config.update("jax_cpu_enable_async_dispatch", False)


class Absent(Exception):
    """A peer that is left out, and why."""


def as_jax(x: torch.Tensor) -> Any:
    if x.is_floating_point() and x.element_size() < 4:  # torch alone has bf16; f32 holds all of its numbers
        return jnp.asarray(x.float().numpy()).astype({torch.bfloat16: "bfloat16", torch.float16: "float16"}[x.dtype])
    return jnp.asarray(x.numpy())


def in_jax(function: Callable[..., Any], tensors: Sequence[torch.Tensor]) -> Callable[[], Any]:
    """A call of the compiled function whose result takes the memory of the one before, as torch's `out=` spares it."""
    if jax is None:
        raise Absent("not installed")
    arrays = [as_jax(x) for x in tensors]
    spare = jnp.zeros_like(jax.jit(function)(*arrays))
    compiled = jax.jit(lambda out, *given: function(*given), donate_argnums=0, keep_unused=True)

    def call() -> Any:
        nonlocal spare
        spare = compiled(spare, *arrays).block_until_ready()
        return spare

    return call


def export(module: torch.nn.Module, x: tuple[torch.Tensor, ...], folder: str) -> str:
    """An ONNX file; by torch's older exporter, which lacks some ops, where what the newer one needs is absent."""
    path = os.path.join(folder, "model.onnx")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(module, x, path, dynamo=importlib.util.find_spec("onnxscript") is not None, opset_version=20,
                          input_names=[f"x{i}" for i in range(len(x))], verbose=False)
    return path


def in_onnxruntime(path: str, arrays: Sequence[np.ndarray[Any, Any]]) -> Callable[[], list[Any]]:
    import onnxruntime
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = torch.get_num_threads()
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    given = {each.name: array for each, array in zip(session.get_inputs(), arrays, strict=True)}
    return lambda: session.run(None, given)


def in_openvino(path: str, arrays: Sequence[np.ndarray[Any, Any]]) -> Callable[[], list[Any]]:
    """Its threads are not bound to cores, which it would do to the caller's, too."""
    if not importlib.util.find_spec("openvino"):
        raise Absent("not installed")
    import openvino
    compiled = openvino.Core().compile_model(path, "CPU", {
        "PERFORMANCE_HINT": "LATENCY", "INFERENCE_NUM_THREADS": torch.get_num_threads(),
        "INFERENCE_PRECISION_HINT": "f32", "ENABLE_CPU_PINNING": False})
    request, given = compiled.create_infer_request(), list(arrays)
    return lambda: list(request.infer(given, share_inputs=True, share_outputs=True).values())
