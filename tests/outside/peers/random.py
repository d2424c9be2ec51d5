"""Random numbers: Philox 4x32-10 in whole numbers of Python, held to the known answers that its authors publish."""

import numpy as np

from peers import peer

M0, M1, W0, W1, WORD = 0xD2511F53, 0xCD9E8D57, 0x9E3779B9, 0xBB67AE85, 0xFFFFFFFF


def philox(x, key):
    (a, b, c, d), (k, m) = x, key
    for _ in range(10):
        first, second = M0 * a, M1 * c
        a, b, c, d = second >> 32 ^ b ^ k, second & WORD, first >> 32 ^ d ^ m, first & WORD
        k, m = k + W0 & WORD, m + W1 & WORD
    return [a, b, c, d]


assert philox([0] * 4, [0] * 2) == [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]
assert philox([WORD] * 4, [WORD] * 2) == [0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD]
assert philox([0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344],
              [0xA4093822, 0x299F31D0]) == [0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1]


def bits(c, seed, count, width):
    """`count` numbers of 32 or 64 bits."""
    key, counter = int(c.x[seed]), int(c.x[seed + 1])
    words = []
    while len(words) * 32 < count * width:
        block = (counter + len(words) // 4) % 2**64
        words += philox([block & WORD, block >> 32, 0, 0], [key & WORD, key >> 32])
    if width == 64:
        words = [low | high << 32 for low, high in zip(words[::2], words[1::2])]
    return words[:count]


def units(c, seed, shape, dtype):
    shape = tuple(shape)
    if dtype == "f64":
        numbers = [(b >> 11) * 2.0**-53 for b in bits(c, seed, int(np.prod(shape)), 64)]
    else:
        numbers = [(b >> 8) * 2.0**-24 for b in bits(c, seed, int(np.prod(shape)), 32)]
    return np.array(numbers, dtype=np.float64).reshape(shape)


@peer("random_bits", "Philox in Python")
def random_bits(c):
    width = int(c.dtype[1:])
    drawn = bits(c, 0, int(np.prod(c.shape)), 64 if width == 64 else 32)
    made = np.array([b % 2**width for b in drawn], dtype=np.uint64)
    return made.astype(np.int64 if c.dtype[0] == "i" else np.uint64).reshape(c.shape)


@peer("uniform", "Philox in Python")
def uniform(c):
    return units(c, 0, c.shape, c.dtype) * (c.high - c.low) + c.low


@peer("normal", "Philox in Python, Box and Muller in NumPy")
def normal(c):
    count = int(np.prod(c.shape))
    u = units(c, 0, [count + count % 2], c.dtype)
    size = np.sqrt(-2 * np.log(u[::2] + (2.0**-53 if c.dtype == "f64" else 2.0**-24)))
    pairs = np.stack([size * np.cos(2 * np.pi * u[1::2]), size * np.sin(2 * np.pi * u[1::2])], -1)
    return (pairs.reshape(-1)[:count] * c.std + c.mean).reshape(c.shape)


@peer("randint", "Philox in Python")
def randint(c):
    width = 64 if c.dtype.endswith("64") else 32
    drawn = [c.low + (b * (c.high - c.low) >> width) for b in bits(c, 0, int(np.prod(c.shape)), width)]
    return np.array(drawn, dtype=np.uint64 if c.dtype == "u64" else np.int64).reshape(c.shape)


@peer("bernoulli", "Philox in Python")
def bernoulli(c):
    return units(c, 1, c.x[0].shape, c.types[0]) < c.x[0]


@peer("multinomial", "Philox in Python, numpy.searchsorted; without replacement numpy.argsort")
def multinomial(c):
    weights = c.x[0]
    if not c.replacement:
        with np.errstate(all="ignore"):
            times = -np.log1p(-units(c, 1, weights.shape, c.types[0])) / weights
        order = np.argsort(np.where(weights > 0, times, np.inf), axis=-1, kind="stable")
        return order[..., : c.samples].astype(np.int64)
    u = units(c, 1, (*weights.shape[:-1], c.samples), c.types[0])
    rows, draws = weights.reshape(-1, weights.shape[-1]), u.reshape(-1, c.samples)
    found = [np.searchsorted(np.cumsum(row), draw * row.sum(), "right") for row, draw in zip(rows, draws)]
    return np.minimum(np.array(found, dtype=np.int64).reshape(u.shape), weights.shape[-1] - 1)


@peer("dropout", "Philox in Python")
def dropout(c):
    kept = units(c, 1, c.x[0].shape, c.types[0]) >= c.p
    return np.where(kept, c.x[0] * (1 / (1 - c.p) if c.p < 1 else 0), 0), kept


@peer("permutation", "Philox in Python, numpy.argsort")
def permutation(c):
    return np.argsort(np.array(bits(c, 0, c.n, 64), dtype=np.uint64), kind="stable").astype(np.int64)
