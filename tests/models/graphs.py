"""Emits graphs in Kiln's JSON form; shared by the scripts of this folder."""

import json


class Graph:
    """A graph under construction. Every method that makes a value returns its name."""

    def __init__(self, symbols):
        self.members = {"symbols": symbols, "inputs": [], "parameters": [],
                        "constants": [], "nodes": [], "outputs": [], "graphs": {}}

    def input(self, name, dtype, shape):
        self.members["inputs"].append(
            {"name": name, "type": {"dtype": dtype, "shape": list(shape)}})
        return name

    def parameter(self, name, dtype, shape):
        self.members["parameters"].append(
            {"name": name, "type": {"dtype": dtype, "shape": list(shape)}})
        return name

    def parameters(self, state):
        """Declares one f32 parameter for each tensor of a PyTorch state dictionary."""
        for name, tensor in state.items():
            self.parameter(name, "f32", tensor.shape)

    def constant(self, name, dtype, shape, data):
        self.members["constants"].append(
            {"name": name, "type": {"dtype": dtype, "shape": list(shape)}, "data": list(data)})
        return name

    def node(self, name, op, *inputs, **attrs):
        node = {"name": name, "op": op, "inputs": list(inputs)}
        if attrs:
            node["attrs"] = attrs
        self.members["nodes"].append(node)
        return name

    def output(self, name, value):
        self.members["outputs"].append({"name": name, "value": value})

    def graph(self, name, nested):
        """Adds a graph that attributes of nodes name."""
        self.members["graphs"][name] = {key: member for key, member in nested.members.items() if member}
        return name

    def write(self, path):
        """Writes the graph with one symbol, value, node or nested graph per line, in the order given."""
        sections = ['"kiln": 1']
        for title, items in self.members.items():
            if not items:
                continue
            if isinstance(items, dict):
                lines = [f"{json.dumps(key)}: {json.dumps(item)}" for key, item in items.items()]
                opening, closing = "{}"
            else:
                lines = [json.dumps(item) for item in items]
                opening, closing = "[]"
            body = ",\n".join("  " + line for line in lines)
            sections.append(f'"{title}": {opening}\n{body}\n{closing}')
        with open(path, "w", encoding="utf-8", newline="\n") as file:
            file.write("{\n" + ",\n".join(sections) + "\n}\n")
