"""What a traced function computes with: values that promote as the array API standard (2024.12) says."""

from __future__ import annotations

from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Callable, Sequence

from kiln import _kiln
from kiln._arrays import require_shape
from kiln._errors import Overflow
from kiln._graph import current
from kiln._kiln import Dim, DType, Graph, Value, add_node, traced_sizes
from kiln._kiln import dtype as to_dtype

f64, f32, i64, bool_ = _kiln.f64, _kiln.f32, _kiln.i64, _kiln.bool_

_FLOATS = ("f8_e4m3fn", "f8_e5m2", "f16", "bf16", "f32", "f64")


def kind(dtype: DType) -> str:
    """'b', 'i' (signed), 'u' or 'f'."""
    return "f" if dtype.is_float else dtype.name[0]


def range_of(dtype: DType) -> tuple[int, int]:
    """The least and the greatest integer."""
    bits = 8 * dtype.itemsize
    return (0, 2**bits - 1) if kind(dtype) == "u" else (-2**(bits - 1), 2**(bits - 1) - 1)


class Trace:
    """One tracing: the graph, and the arrays from outside that the function used."""

    def __init__(self, graph: Graph, small: int, least: int) -> None:
        self.graph, self.small, self.least = graph, small, least  # least: of every symbol
        self.captured: dict[int, tuple[Any, Value]] = {}  # by identity; the array is kept, so that its id is its own
        self.parameters: dict[str, Any] = {}
        self.ranges: dict[str, tuple[int, int, DType]] = {}  # of inputs that are Python ints

    def convert_number(self, number: Value, dtype: DType) -> None:
        """Notes that a Python number takes the dtype of an array, which holds fewer of them."""
        if kind(dtype) in "iu" and number.graph is self.graph and number.node.kind == "input":
            low, high = range_of(dtype)
            before = self.ranges.get(number.name, (low, high, dtype))
            self.ranges[number.name] = (max(low, before[0]), min(high, before[1]), dtype)

    def capture(self, array: Any) -> Value:
        """An array from outside: a constant if it is small, else a parameter, which is bound once."""
        known = self.captured.get(id(array))
        if known is None:
            dtype, shape = to_dtype(array.dtype), tuple(array.shape)
            count = 1
            for size in shape:
                count *= size
            if count <= self.small:
                value = self.graph.constant(array)
            else:
                name = f"captured{len(self.parameters)}"
                value = self.graph.parameter(name, dtype, shape)
                self.parameters[name] = array
            known = self.captured[id(array)] = (array, value)
        return known[1]


tracing: ContextVar[Trace | None] = ContextVar("kiln_tracing", default=None)


def promote(a: DType, b: DType) -> DType:
    """The dtype of both together, of one kind; TypeError for kinds that the standard does not mix."""
    if a is b:
        return a
    kinds = {kind(a), kind(b)}
    if kinds == {"f"}:
        if {a.name, b.name} == {"f16", "bf16"}:
            return f32
        return max(a, b, key=lambda dtype: _FLOATS.index(dtype.name))
    if len(kinds) == 1:
        return max(a, b, key=lambda dtype: dtype.itemsize)
    if kinds == {"i", "u"}:
        signed, unsigned = (a, b) if kind(a) == "i" else (b, a)
        size = max(signed.itemsize, 2 * unsigned.itemsize)
        if size <= 8:
            return to_dtype(f"i{8 * size}")
    raise TypeError(f"{a} and {b} do not mix; astype says which is wanted")


def _number_fits(number: bool | int | float, dtype: DType) -> bool:
    if isinstance(number, bool):
        return dtype is bool_
    return kind(dtype) in ("iuf" if isinstance(number, int) else "f")


class Traced:
    """An array of a function that is traced: it has a dtype and a shape, and no elements yet."""

    __slots__ = ("value", "weak", "_dtype")
    __array_ufunc__ = None
    __array_priority__ = 1000

    def __init__(self, value: Value, weak: bool = False) -> None:
        self.value, self.weak = value, weak  # weak: it stands for a Python number, and takes the other's dtype
        self._dtype = value.dtype

    def __array_namespace__(self, api_version: str | None = None) -> Any:
        from kiln import array_api
        return array_api

    @property
    def dtype(self) -> DType:
        return self._dtype

    @property
    def shape(self) -> tuple[Any, ...]:
        return traced_sizes(self.value.shape)

    @property
    def ndim(self) -> int:
        return self.value.ndim

    @property
    def size(self) -> Any:
        total: Any = 1
        for size in self.shape:
            total = total * size
        return total

    @property
    def device(self) -> str:
        return "cpu"

    @property
    def T(self) -> Traced:
        if self.ndim != 2:
            raise ValueError(f"T is of matrices, this has {self.ndim} dims; see permute_dims")
        return self.mT

    @property
    def mT(self) -> Traced:
        dims = list(range(self.ndim))
        dims[-2:] = dims[:-3:-1]
        return call("permute", self, dims=dims)

    def to_device(self, device: Any, /, *, stream: Any = None) -> Traced:
        return self

    def astype(self, dtype: Any) -> Traced:
        return convert(self, to_dtype(dtype))

    def __getattr__(self, name: str) -> Any:
        """Methods that the standard has as functions: x.sum(axis=0), x.reshape(...)."""
        from kiln import array_api
        if name.startswith("_") or name not in array_api.METHODS:
            raise AttributeError(f"a traced array has no attribute {name!r}")
        function = getattr(array_api, name)
        return lambda *args, **keywords: function(self, *args, **keywords)

    def __getitem__(self, key: Any) -> Traced:
        from kiln.array_api.indexing import getitem
        return getitem(self, key)

    def __setitem__(self, key: Any, value: Any) -> None:
        raise TypeError("a traced array is not written; make a new one, as by where")

    def __bool__(self) -> bool:
        raise TypeError(f"{self!r} is known when the program runs: it is neither true nor false while it is traced; "
                        "see where, kiln.ops.cond, or make the argument static")

    def __int__(self) -> int:
        raise TypeError(f"{self!r} has no elements while it is traced; make the argument static")

    __float__ = __index__ = __complex__ = __int__

    def __len__(self) -> int:
        return len(self.value)

    def __iter__(self) -> Any:
        return (self[i] for i in range(len(self)))

    def __hash__(self) -> int:
        return hash(self.value)

    def __repr__(self) -> str:
        return f"Traced({', '.join(map(str, self.shape))}; {self._dtype})"

    if TYPE_CHECKING:  # made of a table below
        def __add__(self, other: Any) -> Traced: ...
        def __radd__(self, other: Any) -> Traced: ...
        def __sub__(self, other: Any) -> Traced: ...
        def __mul__(self, other: Any) -> Traced: ...
        def __and__(self, other: Any) -> Traced: ...
        def __or__(self, other: Any) -> Traced: ...
        def __xor__(self, other: Any) -> Traced: ...

    def __neg__(self) -> Traced:
        return call("neg", self)

    def __pos__(self) -> Traced:
        return self

    def __abs__(self) -> Traced:
        return call("abs", self)

    def __invert__(self) -> Traced:
        return call("not" if self._dtype is bool_ else "bit_not", self)


def call(op: str, *operands: Any, **attrs: Any) -> Traced:
    """One node; operands are Traced."""
    return Traced(add_node(op, tuple([x.value for x in operands]), attrs or None),
                  bool(operands) and all(x.weak for x in operands))


def node(op: str, operands: Sequence[Any], attrs: dict[str, Any] | None, name: str | None) -> Any:
    """One node of whatever operands kiln.ops takes; Traced where an operand is. Arrays from outside are captured, but for
    nested graphs, which capture nothing: there they are constants."""
    found, trace = False, tracing.get()
    inside = trace is not None and current(op) is trace.graph

    def plain(x: Any) -> Any:
        nonlocal found
        if isinstance(x, (list, tuple)):
            return [plain(each) for each in x]
        if not isinstance(x, Traced):
            is_array = inside and hasattr(x, "dtype") and hasattr(x, "shape") and not isinstance(x, Value)
            return lift(x).value if is_array else x
        found = True
        return x.value
    made = add_node(op, tuple([plain(x) for x in operands]), attrs, name)
    if not found:
        return made
    return tuple([Traced(each) for each in made]) if isinstance(made, tuple) else Traced(made)


def convert(x: Traced, dtype: DType) -> Traced:
    return x if x.dtype is dtype and not x.weak else Traced(
        x.value if x.dtype is dtype else add_node("convert", (x.value,), {"dtype": dtype}))


def lift(x: Any) -> Traced:
    """Whatever stands for an array, but for Python numbers."""
    if type(x) is Traced:
        return x
    if isinstance(x, Value):
        return Traced(x)
    trace = tracing.get()
    require_shape(x, "an array from outside")
    if hasattr(x, "dtype") and hasattr(x, "shape"):
        if trace is None:
            raise TypeError(f"a {type(x).__name__} meets a traced array outside of what kiln.jit traces")
        return Traced(trace.capture(x))
    raise TypeError(f"a {type(x).__name__} is no array")


def is_number(x: Any) -> bool:
    return isinstance(x, (int, float)) and not hasattr(x, "dtype")


def array_of(x: Any, dtype: DType | None = None) -> Traced:
    """The same, and numbers as constants of their default dtype, or of `dtype`, in the graph that is traced."""
    if not is_number(x):
        return lift(x)
    own = bool_ if isinstance(x, bool) else i64 if isinstance(x, int) else f32
    return constant(x, dtype or own, current("asarray"))


def float_of(x: Any, name: str) -> Traced:
    """The same of floats alone."""
    array = array_of(x)
    if kind(array.dtype) != "f":
        raise TypeError(f"[{name}] an array of {array.dtype}: it is of floats alone")
    return array


def constant(number: bool | int | float, dtype: DType, graph: Graph | None = None) -> Traced:
    attrs: dict[str, Any] = {"dtype": dtype, "shape": ()}
    if kind(dtype) in "iu" and not range_of(dtype)[0] <= number <= range_of(dtype)[1]:
        raise Overflow(f"the number {number} is one that {dtype} does not hold")
    if isinstance(number, int) and abs(number) > 2**53:
        attrs["exact"] = str(number)
    else:
        attrs["value"] = float(number)
    return Traced(add_node("full", (), attrs, None, graph))


def together(op: str, *operands: Any) -> list[Traced]:
    """The operands, in the dtype of all together."""
    known = [x if type(x) is Traced else None if is_number(x) else lift(x) for x in operands]
    strong = [x.dtype for x in known if x is not None and not x.weak]
    weak = [x for x in known if x is not None and x.weak]
    if not strong and not weak:
        raise TypeError(f"[{op}] none of the operands is an array")
    dtype = strong[0] if strong else weak[0].dtype
    for other in strong[1:]:
        if other is not dtype:
            dtype = promote(dtype, other)
    for number in weak:
        if kind(number.dtype) != kind(dtype) and not (kind(number.dtype) == "i" and kind(dtype) in "uf"):
            if strong:
                raise TypeError(f"[{op}] a Python number of kind {number.dtype} and an array of {dtype} do not mix")
            dtype = number.dtype if kind(number.dtype) == "f" else dtype
    result = []
    for given, x in zip(operands, known, strict=True):
        if x is None:
            if not _number_fits(given, dtype):
                raise TypeError(f"[{op}] {given!r} and an array of {dtype} do not mix; astype says which is wanted")
            graph = next(y for y in known if y is not None).value.graph
            result.append(Traced(constant(given, dtype, graph).value, not strong))
        else:
            if x.weak and x.dtype is i64 and x.dtype is not dtype and (trace := tracing.get()) is not None:
                trace.convert_number(x.value, dtype)
            value = x.value if x.dtype is dtype else add_node("convert", (x.value,), {"dtype": dtype})
            result.append(Traced(value, x.weak and not strong))
    return result


def binary(op: str, a: Any, b: Any) -> Traced:
    if type(a) is Traced and type(b) is Traced and a._dtype is b._dtype and a.weak == b.weak:
        return Traced(add_node(op, (a.value, b.value)), a.weak)
    if type(a) is Traced and not a.weak and is_number(b) and _number_fits(b, a._dtype):
        return Traced(add_node(op, (a.value, b)))
    if type(b) is Traced and not b.weak and is_number(a) and _number_fits(a, b._dtype):
        return Traced(add_node(op, (a, b.value)))
    return call(op, *together(op, a, b))


def _operator(op: str, logical: str = "", of: str = "") -> tuple[Callable[..., Any], Callable[..., Any]]:
    def check(x: Traced) -> str:
        if of and kind(x.dtype) not in of:
            raise TypeError(f"[{op}] an array of {x.dtype}: it is of {' and '.join(_KIND_NAMES[k] for k in of)} alone")
        return logical if logical and x.dtype is bool_ else op

    def forward(a: Traced, b: Any) -> Any:
        return binary(check(a), a, b) if _is_operand(b) else NotImplemented

    def backward(a: Traced, b: Any) -> Any:
        return binary(check(a), b, a) if _is_operand(b) else NotImplemented
    return forward, backward


_KIND_NAMES = {"f": "floats", "i": "integers", "u": "unsigned integers", "b": "bools"}


def _is_operand(x: Any) -> bool:
    return type(x) is Traced or is_number(x) or (hasattr(x, "dtype") and hasattr(x, "shape"))


for _name, _arguments in {"add": ("add", "", "fiu"), "sub": ("sub", "", "fiu"), "mul": ("mul", "", "fiu"),
                          "truediv": ("div", "", "f"), "floordiv": ("floor_divide", "", "fiu"),
                          "mod": ("remainder", "", "fiu"), "pow": ("pow", "", "fiu"),
                          "and": ("bit_and", "and", "iub"), "or": ("bit_or", "or", "iub"),
                          "xor": ("bit_xor", "xor", "iub"),
                          "lshift": ("shift_left", "", "iu"), "rshift": ("shift_right", "", "iu"),
                          "matmul": ("matmul", "", "fiu")}.items():
    _forward, _backward = _operator(*_arguments)
    setattr(Traced, f"__{_name}__", _forward)
    setattr(Traced, f"__r{_name}__", _backward)
for _name in ("lt", "le", "gt", "ge", "eq", "ne"):
    _forward, _ = _operator(_name)
    setattr(Traced, f"__{_name}__", _forward)
Traced.__hash__ = lambda self: hash(self.value)  # type: ignore[method-assign]  # __eq__ took it away


def axes(x: Traced, axis: int | Sequence[int] | None) -> list[int]:
    """Dims as Kiln takes them, from the start; None: all."""
    if axis is None:
        return list(range(x.ndim))
    given = [axis] if isinstance(axis, int) else list(axis)
    for each in given:
        if not -x.ndim <= each < x.ndim:
            raise IndexError(f"axis {each}, of an array of {x.ndim} dims")
    dims = [each % x.ndim for each in given]
    if len(set(dims)) != len(dims):
        raise ValueError(f"axes {given} name one twice")
    return dims


def is_size(x: Any) -> bool:
    return isinstance(x, (int, Dim)) and not isinstance(x, bool)
