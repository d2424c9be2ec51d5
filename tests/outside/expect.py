"""Writes what other libraries give for the samples of ops. Usage: expect.py KILN FOLDER [OP…]

KILN is the program, whose `ops --samples --json` tells the samples; FOLDER gets a file OP.json for each op (or for those
that are named). PyTorch computes in float64; README.md says what the files hold."""

import json
import math
import pathlib
import subprocess
import sys

import numpy as np
import scipy
import torch

import elements
import graphs
import peers

STORED = 512  # elements of an output, at most


def inputs_of(sample, dtype):
    """The operands and their types, where f32 is `dtype`."""
    x, types = [], []
    for operand in sample["inputs"]:
        own, shape = operand["type"]["dtype"], operand["type"]["shape"]
        to = dtype if own == "f32" else own
        if "stream" in operand:
            x.append(elements.drawn(to, shape, operand["stream"], sample["range"], sample["integer_range"]))
        else:
            given = elements.of_data(own, shape, operand["data"])
            x.append(given if to == own else elements.converted(given, to))
        types.append(to)
    return [np.asarray(each) for each in x], types  # NumPy makes numbers of arrays without dims


def attrs_of(op, sample, dtype):
    kinds = {attr["name"]: attr["kind"] for attr in op["attrs"]}
    return {name: dtype if kinds[name] == "dtype" and value == "f32" else value
            for name, value in sample["attrs"].items()}


def stored_output(y):
    """An output as a file has it. The step has no factor in common with the last dim, so that all columns are seen."""
    step = math.ceil(y.size / STORED) or 1
    while y.ndim and y.size and math.gcd(step, y.shape[-1]) > 1:
        step += 1
    part = y.reshape(-1)[::step]
    if y.dtype == np.float64:
        return {"shape": list(y.shape), "step": step, "f64": [float_text(v) for v in part.tolist()]}
    return {"shape": list(y.shape), "step": step, "i64": [integer_text(v) for v in part.astype(np.int64).tolist()]}


def float_text(v):
    """The 15 digits that every double has, as short as JSON takes them; the word for what is no number."""
    if math.isnan(v):
        return "nan"
    if math.isinf(v):
        return "inf" if v > 0 else "-inf"
    short = float(f"{v:.15g}")
    if math.isinf(short):  # the last numbers of float64 need all their digits
        return v
    is_integer = short == math.trunc(short) and abs(short) < 2**53
    return int(short) if is_integer and (short or math.copysign(1, short) > 0) else short


def integer_text(v):
    return v if abs(v) <= 2**53 else str(v)


def wrapped(output, width):
    """An output's integers in `width` bits, for comparison."""
    return [int(v) % (1 << width) for v in output["i64"]] if "i64" in output else output["f64"]


def agrees(one, other, types):
    """Whether the case `one`, of 64-bit numbers, is right for the types' results as well."""
    width = min((int(t[1:]) if t[1:].isdigit() and t[0] in "iu" else 64) for t in types)
    return one["inputs"] == other["inputs"] and one.get("none") == other.get("none") and all(
        a.keys() == b.keys() and a["shape"] == b["shape"] and wrapped(a, width) == wrapped(b, width)
        for a, b in zip(one["outputs"], other["outputs"], strict=True))


def cases_of(machine, op, sample):
    """The sample's expectations: one for all types that share inputs and values."""
    cases = []
    for dtype in ["own"] + sample["other_types"]:
        to = "f32" if dtype == "own" else dtype
        x, types = inputs_of(sample, to)
        made = {"types": [dtype], "inputs": elements.digest(x), "outputs": []}
        try:
            results = machine.call(op["name"], x, types, attrs_of(op, sample, to))
            made["outputs"] = [stored_output(y) for y in results]
        except peers.NoValue as why:
            made["none"] = str(why)
        except Exception as error:
            error.add_note(f"at {op['name']}, sample {sample['name']}, in {to}: {sample['attrs']}")
            raise
        same = next((case for case in cases if agrees(case, made, types or [to])), None)
        if same:
            same["types"].append(dtype)
        else:
            cases.append(made)
    return cases


def write(machine, op, path):
    samples = {sample["name"]: cases_of(machine, op, sample) for sample in op["samples"]}
    lines = [f'{{"op": "{op["name"]}",\n"peer": {json.dumps(machine.peers[op["name"]].name)},\n"samples": {{']
    for number, (name, cases) in enumerate(samples.items()):
        text = ",\n ".join(json.dumps(case, separators=(",", ":")) for case in cases)
        lines.append(f'{"," if number else ""}\n{json.dumps(name)}:[\n {text}]')
    path.write_text("".join(lines) + "}}\n")


def main(kiln, folder, *names):
    torch.set_num_threads(1)  # all is small, and a sum's order does not depend on the machine
    ops = json.loads(subprocess.run([kiln, "ops", "--samples", "--json"], check=True, capture_output=True).stdout,
                     parse_int=lambda digits: -0.0 if digits == "-0" else int(digits))
    ops = [op for op in ops if op["samples"]]  # of a token there is nothing to compare
    machine = graphs.Machine(ops, peers.load())
    folder = pathlib.Path(folder)
    versions = "".join(f"{library.__name__} {library.__version__}\n" for library in (np, scipy, torch))
    (folder / "versions.txt").write_text(versions)
    missing = sorted(set(machine.ops) - set(machine.peers))
    if missing:
        sys.exit(f"no peer for {', '.join(missing)}: add an entry to the family's file in tests/outside/peers")
    for op in ops:
        if not names or op["name"] in names:
            write(machine, op, folder / f"{op['name']}.json")
    for path in folder.glob("*.json"):
        if path.stem not in machine.ops:
            path.unlink()
    print(f"{len(ops)} ops, {sum(path.stat().st_size for path in folder.glob('*.json'))} bytes in all")


if __name__ == "__main__":
    main(*sys.argv[1:])
