"""main.py [NAME…] [--json FILE] [--brief]: each NAME is a regular expression over figures; none means all.

A line a row, misses included. A run of all figures is kept in bench/results/, as data and as a page. --brief runs each
figure once and small: whether it works, not what it is.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import os
import pathlib
import re
import statistics
import sys
import time
from typing import Any

import calls  # noqa: F401
import captures  # noqa: F401
import compiles  # noqa: F401
import kernels  # noqa: F401
import runs  # noqa: F401
import starts  # noqa: F401
from figure import Row, effort, figures

RESULTS = pathlib.Path(__file__).resolve().parents[1] / "results"
PEERS = ("torch", "numpy", "onnxruntime", "torchvision", "transformers", "onnx")


def machine() -> dict[str, Any]:
    flags = pathlib.Path("/proc/cpuinfo").read_text().split()
    level = "v4" if "avx512f" in flags else "v3" if "avx2" in flags else "x86-64"
    return {"cores": len(os.sched_getaffinity(0)), "cpu": level, "python": sys.version.split()[0],
            "load": round(os.getloadavg()[0], 1)}  # what else ran, when the run began


def versions() -> dict[str, str]:
    found = {}
    for name in PEERS:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            found[name] = "absent"
    return found


def of_time(seconds: float) -> str:
    for scale, unit in ((1e9, "ns"), (1e6, "us"), (1e3, "ms")):
        if seconds * scale < 1000:
            return f"{seconds * scale:.3g} {unit}"
    return f"{seconds:.3g} s"


def medians(row: Row) -> str:
    return ", ".join(f"{who} {of_time(statistics.median(each))}" for who, each in row.times.items())


def verdict(row: Row) -> str:
    return "" if row.met is None or effort.brief else "met" if row.met else "missed"


def as_data(row: Row) -> dict[str, Any]:
    return {"name": row.name, "value": row.value, "quartiles": row.quartiles, "unit": row.unit, "target": row.target,
            "met": row.met, "rounds": len(row.samples),
            "median_seconds": {who: statistics.median(each) for who, each in row.times.items()},
            "errors": dict(row.errors), "note": row.note}


def page(told: dict[str, Any], rows: list[Row]) -> str:
    lines = ["# Kiln from Python, beside its peers", "",
             f"By `./dev bench --peers python`, on {told['machine']['cores']} cores ({told['machine']['cpu']}), load "
             f"{told['machine']['load']} before the run; Python {told['machine']['python']}, "
             + ", ".join(f"{name} {version}" for name, version in told["versions"].items()) + ".",
             "Medians of ratios or differences of rounds in which all took turns, with their quartiles; below 1 Kiln "
             "is quicker, but for compiles and kernels. Errors are against float64, as parts of the largest element.",
             "",
             "| figure | value | quartiles | target | | times | largest error |", "|---|---|---|---|---|---|---|"]
    for row in rows:
        target = "" if row.target is None else f"{'≥' if row.higher_is_better else '≤'} {row.target:.3g}"
        errors = ", ".join(f"{who} {error:.0e}" for who, error in row.errors.items())
        note = f" ({row.note})" if row.note else ""
        low, high = row.quartiles
        lines.append(f"| {row.name}{note} | {row.value:.3g} {row.unit} | {low:.3g} to {high:.3g} | {target} "
                     f"| {verdict(row)} | {medians(row)} | {errors} |")
    return "\n".join([*lines, "", *(f"Failed: {name}: {why}" for name, why in told["failed"].items())]).rstrip() + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--json", type=pathlib.Path, metavar="FILE")
    parser.add_argument("--brief", action="store_true")
    said = parser.parse_args()
    effort.brief = said.brief
    names = [name for name in figures if not said.names or any(re.search(each, name) for each in said.names)]
    if not names:
        parser.error(f"no figure is named like that; there are {', '.join(figures)}")
    begin = time.monotonic()
    told: dict[str, Any] = {"brief": said.brief, "machine": machine(), "versions": versions(), "results": [],
                            "failed": {}}
    rows: list[Row] = []
    print(f"{'figure':36} {'value':>8} {'quartiles':>17} {'target':>7}")
    for name in names:
        try:
            for row in figures[name]():
                rows.append(row)
                low, high = row.quartiles
                target = "" if row.target is None else f"{row.target:.3g}"
                print(f"{row.name:36} {row.value:8.3g} {low:8.3g} {high:8.3g} {target:>7} {verdict(row):6} {row.unit}; "
                      f"{medians(row)}", flush=True)
        except Exception as why:  # the others go on
            told["failed"][name] = f"{type(why).__name__}: {why}"
            print(f"{name:36} failed: {told['failed'][name]}", flush=True)
    told["results"], told["seconds"] = [as_data(row) for row in rows], round(time.monotonic() - begin)
    path = said.json
    if path is None and not said.names and not said.brief:
        path = RESULTS / f"python-{told['machine']['cpu']}-{told['machine']['cores']}-cores.json"
    if path:
        path.write_text(json.dumps(told, indent=1) + "\n")
        path.with_suffix(".md").write_text(page(told, rows))
        print(f"{path} and {path.with_suffix('.md').name}, in {told['seconds']} s")
    return 1 if told["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())
