"""Element types: how Kiln's elements are held here, drawn, and converted.

Floats of every type are arrays of float64, whose values the type has; integers and bools are arrays of their own type."""

import hashlib

import numpy as np

NUMPY = {"i64": np.int64, "i32": np.int32, "i16": np.int16, "i8": np.int8, "u64": np.uint64, "u32": np.uint32,
         "u16": np.uint16, "u8": np.uint8, "bool": np.bool_}
# Bits of exponent and mantissa, and the largest number of what holds no infinity.
SMALL = {"f16": (5, 10, None), "bf16": (8, 7, None), "f8_e4m3fn": (4, 3, 448.0), "f8_e5m2": (5, 2, None)}
WORDS = {"nan": np.nan, "inf": np.inf, "-inf": -np.inf}


def is_float(dtype):
    return dtype not in NUMPY


def stored(x, dtype):
    """The float64 `x`, each rounded once to the float type, halves to even. No infinity: the largest number instead."""
    if dtype == "f64":
        return x
    if dtype == "f32":
        with np.errstate(over="ignore"):
            return x.astype(np.float32).astype(np.float64)
    exponent_bits, mantissa_bits, largest = SMALL[dtype]
    bias = (1 << exponent_bits - 1) - 1
    finite = np.where(np.isfinite(x), x, 0.0)
    exponent = np.maximum(np.frexp(finite)[1] - 1, 1 - bias)
    y = np.ldexp(np.rint(np.ldexp(finite, mantissa_bits - exponent)), exponent - mantissa_bits)
    y = np.where(np.isfinite(x), y, x)
    if largest:
        return np.where(np.abs(y) > largest, np.copysign(largest, y), y)
    top = np.ldexp(2.0 - np.ldexp(1.0, -mantissa_bits), bias)
    return np.where(np.abs(y) > top, np.copysign(np.inf, y), y)


def to_integers(x, dtype):
    """Floats as an integer type or bool, as `convert` says: truncated, saturated, 0 for NaN; bool: x != 0."""
    if dtype == "bool":
        return x != 0
    least, most = (int(bound) for bound in (np.iinfo(NUMPY[dtype]).min, np.iinfo(NUMPY[dtype]).max))
    numbers = [0 if np.isnan(v) else most if v >= most else least if v <= least else int(v) for v in x.ravel().tolist()]
    return np.array(numbers, NUMPY[dtype]).reshape(x.shape)


def converted(x, dtype):
    """Floats as another type has them."""
    return stored(x, dtype) if is_float(dtype) else to_integers(x, dtype)


def named(value, dtype):
    """The number of an attribute as another type has it: 8-bit floats saturate, as `convert` says."""
    largest = {"f8_e4m3fn": 448.0, "f8_e5m2": 57344.0}.get(dtype)
    return converted(np.array([value if largest is None else np.clip(value, -largest, largest)], np.float64), dtype)


def of_data(dtype, shape, data):
    """The elements of a tensor in a graph's JSON."""
    if not is_float(dtype):
        return np.array([int(v) for v in data], NUMPY[dtype]).reshape(shape)
    return stored(np.array([WORDS.get(v, v) for v in data], np.float64), dtype).reshape(shape)


def words_of(stream, count):
    """The first words of a stream: see sample_data.h, which defines them."""
    seed = 0xCBF29CE484222325
    for byte in stream.encode():
        seed = (seed ^ byte) * 0x100000001B3 % 2**64
    word = np.uint64(seed) + np.arange(1, count + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    word = (word ^ word >> np.uint64(30)) * np.uint64(0xBF58476D1CE4E5B9)
    word = (word ^ word >> np.uint64(27)) * np.uint64(0x94D049BB133111EB)
    return word ^ word >> np.uint64(31)


def drawn(dtype, shape, stream, bounds, integer_bounds):
    """Random elements, of a range [low, high) each: the same bits that sample_data.h draws."""
    with np.errstate(over="ignore"):
        words = words_of(stream, int(np.prod(shape, dtype=np.int64))).reshape(shape)
    if dtype == "bool":
        return (words >> np.uint64(63)).astype(np.bool_)
    if not is_float(dtype):
        low, high = (int(bound) for bound in integer_bounds)  # beyond 2^53 they are texts
        low = max(low, 0) if dtype.startswith("u") else low
        return (low + (words % np.uint64(max(high - low, 1))).astype(np.int64)).astype(NUMPY[dtype])
    first = np.ceil(bounds[0] * 8)
    count = max(np.ceil(bounds[1] * 8) - first, 1)
    return stored((first + (words % np.uint64(count)).astype(np.float64)) / 8, dtype)


def digest(arrays):
    """As digest_of_inputs in expected.h."""
    bits = hashlib.blake2b(digest_size=32)
    for x in arrays:
        if x.dtype == np.float64:
            bits.update(np.where(np.isnan(x), np.nan, x).tobytes())
        else:
            bits.update(x.astype(np.int64).tobytes())
    return bits.hexdigest()[:16]
