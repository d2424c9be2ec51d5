"""Rounding, bits, quotients, and what is a number at all."""

import numpy as np
import torch

import elements
from peers import peer
from peers.pointwise import of_floats, of_numbers, refuse_zeros, truncated_quotient

for op, function in {"ceil": torch.ceil, "trunc": torch.trunc, "hypot": torch.hypot, "lerp": torch.lerp}.items():
    of_floats(op, function)
of_floats("xor", torch.logical_xor, "torch.logical_xor")
of_floats("xlogy", torch.xlogy, "torch.xlogy")

for op, function, of_integers in [
        ("square", torch.square, np.square), ("isnan", torch.isnan, np.isnan), ("isinf", torch.isinf, np.isinf),
        ("isfinite", torch.isfinite, np.isfinite)]:
    of_numbers(op, function, of_integers, f"torch.{op}; of integers numpy.{of_integers.__name__}")

for op, function in {"bit_and": np.bitwise_and, "bit_or": np.bitwise_or, "bit_xor": np.bitwise_xor,
                     "bit_not": np.bitwise_not}.items():
    of_numbers(op, None, function, f"numpy.{function.__name__}")


@peer("sign", "torch.sign; of integers numpy.sign")
def sign(c):
    """PyTorch makes 0 of NaN; Kiln leaves it, as the array API does."""
    if not c.is_float:
        return np.sign(c.x[0])
    return torch.where(c.tensor(0).isnan(), torch.nan, torch.sign(c.tensor(0)))


@peer("nan_to_num", "torch.nan_to_num")
def nan_to_num(c):
    """PyTorch's default bounds are the type's, which Kiln says by an infinite attribute."""
    if not c.is_float:
        return c.x[0]
    infos = {"f64": torch.float64, "f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16}
    most = torch.finfo(infos[c.types[0]]).max
    bounds = [np.clip(bound, -most, most) if np.isinf(bound) else bound for bound in (c.posinf, c.neginf)]
    return torch.nan_to_num(c.tensor(0), c.nan, *bounds)


def shifted(op, name):
    """NumPy leaves shifts beyond the width open."""
    @peer(op, name + "; 0, or all sign, beyond the width")
    def compute(c):
        x, by = np.broadcast_arrays(*c.x)
        width = 8 * x.dtype.itemsize
        beyond = (by < 0) | (by >= width)
        within = np.where(beyond, by.dtype.type(0), by)
        if op == "shift_left":
            return np.where(beyond, x.dtype.type(0), np.left_shift(x, within))
        return np.where(beyond, np.where(x < 0, x.dtype.type(-1 if x.dtype.kind == "i" else 0), x.dtype.type(0)),
                        np.right_shift(x, within))


shifted("shift_left", "numpy.left_shift")
shifted("shift_right", "numpy.right_shift")


def integer_fmod(a, b):
    refuse_zeros(a, b)
    return a - truncated_quotient(a, b) * b


def integer_floor_divide(a, b):
    refuse_zeros(a, b)
    return np.floor_divide(a, b)


of_numbers("fmod", torch.fmod, integer_fmod, "torch.fmod; of integers numpy.floor_divide, moved towards 0")
of_numbers("floor_divide", torch.floor_divide, integer_floor_divide, "torch.floor_divide; of integers numpy.floor_divide")


@peer("copysign", "torch.copysign")
def copysign(c):
    """The sign of a NaN counts for nothing in Kiln."""
    a, b = c.tensors()
    return torch.copysign(a, torch.where(b.isnan(), 1.0, b))


@peer("clamp", "torch.clamp; of integers numpy.clip")
def clamp(c):
    if c.is_float:
        bounds = elements.converted(np.array([c.min, c.max]), c.types[0])
        return torch.clamp(c.tensor(0), *bounds.tolist())
    low, high = elements.to_integers(np.array([c.min, c.max]), c.types[0])
    return np.minimum(np.maximum(c.x[0], low), high)
