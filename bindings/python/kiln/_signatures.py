"""An op's schema as a Python function: what kiln.ops runs, and what its stub says."""

from __future__ import annotations

import json
import keyword
import sys
from typing import Any

from kiln._kiln import add_node

_KINDS = {"i64": "int", "f64": "float", "text": "str", "bool": "bool", "dtype": "DTypeLike", "dim": "Size",
          "graph": "Graph", "tensor": "Operand"}


def python_name(name: str) -> str:
    """`and_` for `and`: Python's keywords get a final _."""
    return name + "_" if keyword.iskeyword(name) else name


def _default(attr: dict[str, Any]) -> str:
    text = attr["default"]
    if attr["kind"] in ("graph", "tensor"):
        return "None"
    if attr["kind"] == "dtype":
        return "None" if text in ("none", "") else repr(text)
    try:
        value = json.loads(text)
    except ValueError:  # a text, or a size that is an expression
        value = text
    if attr["kind"] == "f64" and isinstance(value, str):  # "inf"
        return f"float({value!r})"
    return repr(tuple(value)) if isinstance(value, list) else repr(value)


def parameters(schema: dict[str, Any], typed: bool = False) -> list[str]:
    """The parameters of its function, as they are written in a def."""
    def say(name: str, kind: str, default: str | None = None) -> str:
        said = f"{name}: {kind}" if typed else name
        return said if default is None else f"{said} = {default}" if typed else f"{said}={default}"

    all_: list[str] = []
    variadic = False
    for arg in schema["args"]:
        name = python_name(arg["name"])
        if arg["arity"] == "variadic":
            all_.append(say("*" + name, "Operand | Sequence[Operand]"))
            variadic = True
        elif arg["arity"] == "optional":
            all_.append(say(name, "Operand | None", "None"))
        else:
            all_.append(say(name, "Operand"))
    required = [attr for attr in schema["attrs"] if attr["required"]]
    others = [attr for attr in schema["attrs"] if not attr["required"]]
    after_default = any(arg["arity"] == "optional" for arg in schema["args"]) and not variadic
    if (after_default or variadic) and schema["attrs"] and not variadic:
        all_.append("*")
    star = variadic or "*" in all_
    for attr in required + others:
        kind = _KINDS.get(attr["kind"], "Any")
        kind = f"Sequence[{kind}]" if attr["list"] else kind
        default = None if attr["required"] else _default(attr)
        all_.append(say(python_name(attr["name"]), kind + (" | None" if default == "None" else ""), default))
    if not star:
        all_.append("*")
    all_.append(say("name", "str | None", "None"))
    return all_


def result(schema: dict[str, Any]) -> str:
    """The type of what its function gives."""
    return "Value" if len(schema["results"]) == 1 else "tuple[Value, ...]" if not schema["results"] else "Any"


def doc(schema: dict[str, Any]) -> str:
    """What is known of the op, for people."""
    lines = [schema["doc"], ""]
    for arg in schema["args"]:
        dtypes = ", ".join(arg["dtypes"])
        lines.append(f"{python_name(arg['name'])}: {arg['doc']} ({dtypes})")
    for attr in schema["attrs"]:
        default = "" if attr["required"] else f"; default {_default(attr)}"
        kind = attr["kind"] + ("[]" if attr["list"] else "")
        lines.append(f"{python_name(attr['name'])}: {attr['doc']} ({kind}{default})")
    lines.append("name: of the node")
    return "\n".join(lines)


def source(schema: dict[str, Any]) -> str:
    """A def whose body adds the node."""
    stars = {"variadic": "*"}
    operands = "".join(f"{stars.get(arg['arity'], '')}{python_name(arg['name'])}, " for arg in schema["args"])
    attrs = ", ".join(f"{attr['name']!r}: {python_name(attr['name'])}" for attr in schema["attrs"])
    name = python_name(schema["name"].replace(".", "_").replace("-", "_"))
    return (f"def {name}({', '.join(parameters(schema))}):\n"
            f"    return add_node({schema['name']!r}, ({operands}), {'{' + attrs + '}' if attrs else None}, name)\n")


def _add_node(op: str, operands: tuple[Any, ...], attrs: dict[str, Any] | None, name: str | None) -> Any:
    """A node; of traced arrays, which only a trace has, traced arrays."""
    traced = sys.modules.get("kiln._traced")
    if traced is None or traced.tracing.get() is None:
        return add_node(op, operands, attrs, name)
    return traced.node(op, operands, attrs, name)


def function(schema: dict[str, Any], module: str) -> Any:
    """The function of an op."""
    scope: dict[str, Any] = {"add_node": _add_node, "__name__": module}
    exec(source(schema), scope)  # a def, so that help, signatures and messages are Python's own
    made = next(value for key, value in scope.items() if key not in ("add_node", "__name__", "__builtins__"))
    made.__doc__ = doc(schema)
    return made
