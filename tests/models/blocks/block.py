"""What all blocks share: their registry, the graph under construction, and the elements of weights and inputs.

A block is a function that adds nodes to a Block; `blocks.py` lists them. Its weights and inputs are declared where they are
used, and drawn from the streams of tests/outside/sample_data.h, so that Python, PyTorch and Kiln have the very same
numbers: multiples of 1/64 or 1/8 of few bits, which f32 and bf16 hold exactly. Python's standard library only.
"""

import hashlib
import math
import pathlib
import sys
from array import array

FOLDER = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(FOLDER.parent))

from graphs import Graph  # noqa: E402
from tensor_files import bfloat, write_safetensors  # noqa: E402

REGISTRY = {}  # name -> Definition


class Definition:
    """A block: `build` adds it to a Block, `calls` are the sizes of symbols that it is called with."""

    def __init__(self, build, calls, symbols, salt):
        self.name, self.build, self.calls, self.symbols, self.salt = build.__name__, build, calls, symbols, salt

    def made(self, dtype="f32"):
        block = Block(self, dtype)
        self.build(block)
        return block


def block(calls, symbols=None, salt=""):
    """Registers a block. `salt` names other streams, for blocks whose choices (top k, a threshold) must be clear ones."""
    def register(build):
        REGISTRY[build.__name__] = Definition(build, calls, symbols or {}, salt)
        return build
    return register


def words(stream):
    """The words of a stream without end: see sample_data.h, which defines them."""
    state = 0xCBF29CE484222325
    for byte in stream.encode():
        state = (state ^ byte) * 0x100000001B3 % 2**64
    while True:
        state = (state + 0x9E3779B97F4A7C15) % 2**64
        word = (state ^ state >> 30) * 0xBF58476D1CE4E5B9 % 2**64
        word = (word ^ word >> 27) * 0x94D049BB133111EB % 2**64
        yield word ^ word >> 31


class Draw:
    """A tensor's elements: integers from low to high, divided by `divisor` unless that is 0."""

    def __init__(self, stream, shape, low, high, divisor):
        self.stream, self.shape, self.low, self.count, self.divisor = stream, shape, low, high - low + 1, divisor

    def at(self, sizes):
        """(shape, elements) for these sizes of symbols."""
        shape = [dim if isinstance(dim, int) else eval(dim, {}, dict(sizes)) for dim in self.shape]
        numbers = [self.low + word % self.count for word, _ in zip(words(self.stream), range(math.prod(shape)))]
        return shape, array("d", (number / self.divisor for number in numbers)) if self.divisor else array("q", numbers)


class Nodes(Graph):
    """A graph whose nodes are added by calls of their ops' names: `g.add(x, y)` gives the sum's name."""

    def __init__(self, symbols=None):
        super().__init__(symbols or {})

    def __getattr__(self, op):
        if op.startswith("_"):
            raise AttributeError(op)

        def add_node(*inputs, **attrs):
            return self.node(f"{op}_{len(self.members['nodes'])}", op, *inputs, **attrs)
        return add_node

    def parts(self, x, sizes, dim):
        """The results of `split`."""
        node = self.split(x, sizes=sizes, dim=dim)
        return [f"{node}:{k}" for k in range(len(sizes))]

    def fixed(self, dtype, shape, data):
        """A constant."""
        return self.constant(f"constant_{len(self.members['constants'])}", dtype, shape, data)

    def heads(self, x, shape):
        """[..., tokens, heads * D] as [shape[0], heads, tokens, D]; `shape` is [batch, tokens, heads, D]."""
        return self.permute(self.reshape(x, shape=shape), dims=[0, 2, 1, 3])

    def merged(self, x, shape):
        """The way back: `shape` is [batch, tokens, heads * D]."""
        return self.reshape(self.permute(x, dims=[0, 2, 1, 3]), shape=shape)


class Block(Nodes):
    def __init__(self, definition, dtype):
        super().__init__(dict(definition.symbols))
        self.definition, self.dtype = definition, dtype
        self.weights, self.arguments = {}, {}  # name -> Draw

    def _stream(self, name):
        return f"{self.definition.name}{self.definition.salt}/{name}"

    def weight(self, name, shape, spread=1.0):
        """Of variance spread^2 over the number of products that a result sums up: all but the first dim."""
        bound = max(round(64 * spread * math.sqrt(3 / math.prod(shape[1:]))), 1)
        self.weights[name] = Draw(self._stream(name), shape, -bound, bound, 64)
        return self.parameter(name, self.dtype, shape)

    def bias(self, name, shape):
        self.weights[name] = Draw(self._stream(name), shape, -16, 16, 64)
        return self.parameter(name, self.dtype, shape)

    def scale(self, name, shape):
        """About 1, as those of norms."""
        self.weights[name] = Draw(self._stream(name), shape, 48, 80, 64)
        return self.parameter(name, self.dtype, shape)

    def dense(self, x, name, outputs, inputs, bias=True):
        """linear, with the parameters that torch.nn.Linear has."""
        more = [self.bias(f"{name}.bias", [outputs])] if bias else []
        return self.linear(x, self.weight(f"{name}.weight", [outputs, inputs]), *more)

    def layer_normed(self, x, name, size, **attrs):
        return self.layer_norm(x, self.scale(f"{name}.weight", [size]), self.bias(f"{name}.bias", [size]), **attrs)

    def floats(self, name, shape):
        """An input of numbers from -2 to 2."""
        self.arguments[name] = Draw(self._stream(name), shape, -16, 16, 8)
        return self.input(name, self.dtype, shape)

    def indices(self, name, shape, below, least=0):
        self.arguments[name] = Draw(self._stream(name), shape, least, below - 1, 0)
        return self.input(name, "i64", shape)

    def number(self, value):
        """A scalar constant of the block's type."""
        return self.fixed(self.dtype, [], [value])

    def result(self, name, value):
        """An output, in f32 whatever the block's type is: the test reads it from a file that knows no bf16."""
        self.output(name, value if self.dtype == "f32" else self.convert(value, dtype="f32"))

    def drawn_weights(self):
        """name -> (shape, elements)"""
        return {name: draw.at({}) for name, draw in self.weights.items()}

    def drawn_inputs(self, sizes):
        return {name: draw.at(sizes) for name, draw in self.arguments.items()}

    def store(self, path, tensors):
        """Writes drawn tensors in the block's type."""
        def typed(values):
            if values.typecode == "q":
                return "I64", values.tobytes()
            return ("BF16", bfloat(values)) if self.dtype == "bf16" else ("F32", array("f", values).tobytes())

        def entry(shape, values):
            dtype, data = typed(values)
            return dtype, shape, data
        write_safetensors(path, {name: entry(*tensor) for name, tensor in tensors.items()})


def digest(tensors):
    """Of drawn tensors, with their names and shapes: expected values are those of these elements."""
    bits = hashlib.blake2b(digest_size=8)
    for name, (shape, values) in sorted(tensors.items()):
        bits.update(f"{name} {shape} ".encode() + values.tobytes())
    return bits.hexdigest()
