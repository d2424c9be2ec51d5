"""Ops of one element, or of one element of each operand."""

import numpy as np
import torch

import elements
from peers import NoValue, peer

F = torch.nn.functional


def of_floats(op, function, name=None):
    """An op that takes floats alone, or bools: PyTorch's function."""
    peer(op, name or f"torch.{op}")(lambda c: function(*c.tensors()))


def of_numbers(op, function, of_integers, name):
    """An op of floats, by PyTorch, and of integers, by NumPy, which has all their types and wraps."""
    def compute(c):
        with np.errstate(all="ignore"):
            return function(*c.tensors()) if c.x[-1].dtype == np.float64 else of_integers(*c.x)
    peer(op, name)(compute)


for op, function in {"sqrt": torch.sqrt, "rsqrt": torch.rsqrt, "reciprocal": torch.reciprocal, "exp": torch.exp,
                     "log": torch.log, "tanh": torch.tanh, "erf": torch.erf, "sin": torch.sin, "cos": torch.cos,
                     "sigmoid": torch.sigmoid, "floor": torch.floor, "round": torch.round}.items():
    of_floats(op, function)
of_floats("not", torch.logical_not, "torch.logical_not")
of_floats("and", torch.logical_and, "torch.logical_and")
of_floats("or", torch.logical_or, "torch.logical_or")
of_floats("silu", F.silu, "torch.nn.functional.silu")

for op, function, of_integers in [
        ("neg", torch.neg, np.negative), ("abs", torch.abs, np.abs), ("add", torch.add, np.add),
        ("sub", torch.sub, np.subtract), ("mul", torch.mul, np.multiply), ("maximum", torch.maximum, np.maximum),
        ("minimum", torch.minimum, np.minimum), ("eq", torch.eq, np.equal), ("ne", torch.ne, np.not_equal),
        ("lt", torch.lt, np.less), ("le", torch.le, np.less_equal), ("gt", torch.gt, np.greater),
        ("ge", torch.ge, np.greater_equal), ("where", torch.where, np.where)]:
    of_numbers(op, function, of_integers, f"torch.{op}; of integers numpy.{of_integers.__name__}")

of_numbers("relu", torch.relu, lambda x: np.maximum(x, x.dtype.type(0)), "torch.relu; of integers numpy.maximum")


def refuse_zeros(a, b):
    if (b == 0).any() and np.broadcast(a, b).size:
        raise NoValue("integers are divided by zero, an error of the call")


def truncated_quotient(a, b):
    refuse_zeros(a, b)
    down = np.floor_divide(a, b)
    return down + ((down < 0) & (down * b != a)).astype(down.dtype)


def integer_remainder(a, b):
    refuse_zeros(a, b)
    return np.remainder(a, b)


def integer_power(a, b):
    """NumPy refuses negative exponents; Kiln truncates 1 / a, and gives 0 for a = 0."""
    power = np.power(a, np.where(b < 0, b.dtype.type(0), b))
    a, b = np.broadcast_arrays(a, b)
    inverse = np.where(a == 1, 1, np.where(a == -1, np.where(b % 2 == 0, 1, -1), 0)) if b.dtype.kind == "i" else power
    return np.where(b < 0, inverse, power).astype(power.dtype)


of_numbers("div", torch.div, truncated_quotient, "torch.div; of integers numpy.floor_divide, moved towards 0")
of_numbers("remainder", torch.remainder, integer_remainder, "torch.remainder; of integers numpy.remainder")
of_numbers("pow", torch.pow, integer_power, "torch.pow; of integers numpy.power, and 1 / a truncated")


@peer("gelu", "torch.nn.functional.gelu")
def gelu(c):
    return F.gelu(c.tensor(0), approximate=c.approximate)


@peer("convert", "torch.Tensor.to; of integers numpy.ndarray.astype; of floats as integers by its definition")
def convert(c):
    """PyTorch leaves floats beyond an integer type undefined. Of the 8-bit floats it saturates f8_e4m3fn alone (before
    version 2.12 neither); ONNX' Cast has both, as Kiln does."""
    x, to = c.x[0], c.dtype
    if to == c.types[0]:
        return x
    if not elements.is_float(to):
        return elements.to_integers(x, to) if c.is_float else x.astype(elements.NUMPY[to])
    x = torch.from_numpy(x.astype(np.float64))
    if not to.startswith("f8"):
        return x
    small = getattr(torch, to.replace("f8", "float8"))
    largest = torch.finfo(small).max
    saturated = x.clamp(-largest, largest).to(small).to(torch.float64)
    if c.saturate:
        return saturated
    return torch.where(x.abs() > 464, torch.nan, saturated) if to == "f8_e4m3fn" else x.to(small).to(torch.float64)
