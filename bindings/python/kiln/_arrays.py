"""What the extension asks of Python about arrays: once a type, or when something is refused."""

from __future__ import annotations

import sys
from typing import Any, Callable

# Of a number, by struct's letters; others are made by hand.
_LETTERS = {"f64": "d", "f32": "f", "f16": "e", "i64": "q", "i32": "i", "i16": "h", "i8": "b", "u64": "Q", "u32": "I",
            "u16": "H", "u8": "B", "bool": "?"}


def inspect(kind: type) -> tuple[bool, str, Callable[[Any], Any] | None, bool]:
    """Of a type of arrays: whether it is torch's, why it is refused ("": it is not), its library's from_dlpack, and
    whether nobody may write them."""
    torch = sys.modules.get("torch")
    if torch is not None and hasattr(torch, "Tensor") and issubclass(kind, torch.Tensor):
        return True, _refused_tensor(torch, kind), torch.from_dlpack, False
    name = kind.__module__.partition(".")[0].removesuffix("lib")  # jaxlib's arrays are jax's
    library: Any = sys.modules.get(name)
    for module in (library, getattr(library, "numpy", None), getattr(library, "dlpack", None)):
        from_dlpack = getattr(module, "from_dlpack", None)
        if from_dlpack is not None and hasattr(kind, "__dlpack__"):
            return False, "", from_dlpack, name == "jax"
    return False, "", None, False


_NESTED = "a nested tensor, whose parts have sizes of their own; a dense one was expected, as by .to_padded_tensor(0.0)"


def _refused_tensor(torch: Any, kind: type) -> str:
    if kind.__name__ == "FakeTensor":
        return "a fake tensor, which has a type and no elements"
    if kind.__name__ == "NestedTensor":
        return _NESTED
    dispatch = getattr(kind, "__torch_dispatch__", None)
    plain = getattr(torch.Tensor, "__torch_dispatch__", None)
    if getattr(dispatch, "__func__", dispatch) is not getattr(plain, "__func__", plain):
        return "a subclass of torch.Tensor that says itself what operations do; what its memory means is not known"
    return ""


def is_dual(tensor: Any) -> bool:
    """Whether a tensor of torch's has a tangent of forward-mode differentiation."""
    torch: Any = sys.modules["torch"]
    return torch.autograd.forward_ad.unpack_dual(tensor).tangent is not None


def why_not(array: Any, error: BaseException) -> str:
    """Why a library gave no tensor for the array, in words of ours where they say more."""
    if getattr(array, "is_nested", False):
        return _NESTED
    if getattr(array, "is_meta", False):
        return "a meta tensor, which has a type and no elements"
    layout = str(getattr(array, "layout", "torch.strided"))
    if layout != "torch.strided":
        return f"of layout {layout}; a dense one was expected, as by .to_dense()"
    if getattr(array, "is_quantized", False):
        return "a quantized tensor; a plain one was expected, as by .int_repr()"
    first_line = str(error).partition("\n")[0]  # torch's go on with a backtrace
    return f"it gives no memory: {first_line}"


def require_shape(array: Any, name: str) -> None:
    """Raises for what has no sizes to trace: of such a tensor of torch's even to ask for the shape is an error."""
    if getattr(array, "is_nested", False):
        from kiln._errors import TypeMismatch
        raise TypeMismatch(f"'{name}' is a {type(array).__name__}: {_NESTED}")


def dlpack(array: Any, name: str) -> Any:
    """A capsule of DLPack's that lends the array."""
    try:
        try:
            return array.__dlpack__(max_version=(1, 3))
        except TypeError:  # from before versions
            return array.__dlpack__()
    except Exception as error:
        from kiln._errors import TypeMismatch
        raise TypeMismatch(f"'{name}' is a {type(array).__name__}: {why_not(array, error)}") from error


def pack(number: bool | int | float, dtype: str, memory: memoryview) -> bool:
    """Writes the number as an element; False where the type does not hold it."""
    import struct
    if isinstance(number, float) and dtype[0] in "iu" or dtype == "bool" and not isinstance(number, bool):
        return False
    try:
        if dtype == "bf16":
            (bits,) = struct.unpack("I", struct.pack("f", number))
            rounded = bits if number != number else bits + 0x7FFF + (bits >> 16 & 1)
            struct.pack_into("H", memory, 0, rounded >> 16 & 0xFFFF)
        elif dtype in _LETTERS:
            struct.pack_into(_LETTERS[dtype], memory, 0, number)
        else:
            return False
    except (struct.error, OverflowError):
        return False
    return True


def view(array: Any, numpy_has: bool) -> Any:
    """Memory of Kiln's as a NumPy array, where NumPy is there and has its type, else as it is."""
    if not numpy_has and "ml_dtypes" not in sys.modules:
        return array
    try:
        import numpy  # noqa: F401
    except ImportError:
        return array
    return array.numpy()

