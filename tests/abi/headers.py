"""Reads the public headers: their functions, structs and host tables. Shared by the scripts of this folder."""

import pathlib
import re

HEADERS = ("types.h", "graph.h", "function.h", "backend.h", "kiln.h", "plugin.h", "dlpack.h")


def include(root):
    """The folder that a compiler is given: of Kiln's sources, or the root itself, where that has headers."""
    own = pathlib.Path(root, "abi/include")
    return own if own.exists() else pathlib.Path(root)


def source(root, name):
    """A header without comments, white space collapsed."""
    text = (include(root) / "kiln" / name).read_text()
    text = re.sub(r"/\*.*?\*/", " ", text, flags=re.DOTALL)
    return re.sub(r"[ \t\n]+", " ", re.sub(r"\\\n", " ", re.sub(r"(?m)^\s*#.*(\\\n.*)*$", "", text)))


def exports(root, name):
    """Name -> (result, arguments without their names) of each exported function of a header."""
    found = {}
    for result, function, arguments in re.findall(r"KILN_EXPORT ([^;]*?)\b(kiln_\w+)\(([^;]*?)\);", source(root, name)):
        found[function] = (result.replace(" ", ""), types_of(arguments))
    return found


def types_of(arguments):
    """The types of a list of arguments: their names may differ between two declarations."""
    return [re.sub(r"\s*\b\w+$", "", argument.strip()).replace(" ", "") if " " in argument.strip() else argument.strip()
            for argument in arguments.split(",")]


def host_tables(root):
    """Group -> {slot: (result, argument types)}, from the structs kiln_host_GROUP of plugin.h."""
    tables = {}
    for group, body in re.findall(r"typedef struct kiln_host_(\w+) \{(.*?)\} kiln_host_\w+;", source(root, "plugin.h")):
        tables[group] = {slot: (result.replace(" ", ""), types_of(arguments))
                         for result, slot, arguments in re.findall(r"([\w *]+?)\(\*(\w+)\)\(([^;]*?)\);", body)}
    return tables


def structs(root):
    """Name -> fields, for every struct that has fields, in order of the headers."""
    found = {}
    for name in HEADERS:
        text = source(root, name)
        for tag, body, alias in re.findall(r"typedef struct (\w*) ?\{([^{}]*)\} (\w+);", text):
            fields = []
            for declaration in filter(None, (part.strip() for part in body.split(";"))):
                pointer = re.search(r"\(\*(\w+)\)", declaration)
                if pointer:
                    fields.append(pointer.group(1))
                else:
                    fields += [re.sub(r"\[.*", "", part).split()[-1].lstrip("*") for part in declaration.split(",")]
            found[alias] = fields
    return found
