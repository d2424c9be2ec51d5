"""main.py [NAME…] [--json FILE] [--brief]: each NAME is a regular expression over figures; none means all.

A line a row, misses included. A run of all figures is kept in bench/results/, as data and as a page. --brief runs each
figure once and small: whether it works, not what it is.
"""

from __future__ import annotations

import argparse
import json
import pathlib
import re
import sys
import time
from typing import Any

import torch

import calls  # noqa: F401
import captures  # noqa: F401
import compiles  # noqa: F401
import runs  # noqa: F401  # before kernels: inductor forks, which is safe until JAX has threads
import kernels_f32  # noqa: F401
import kernels_small  # noqa: F401
import starts  # noqa: F401
from figure import Row, effort, figures
from machine import highest, machine, roofs, versions
from page import as_data, medians, page, plot, share_of, verdict

RESULTS = pathlib.Path(__file__).resolve().parents[1] / "results"


def told_line(row: Row, before: dict[str, float]) -> str:
    low, high = row.quartiles
    target = "" if row.target is None else f"{row.target:.3g}"
    said = "; ".join(filter(None, (row.unit, medians(row), share_of(row, before), row.note)))
    return f"{row.name:36} {row.value:8.3g} {low:8.3g} {high:8.3g} {target:>7} {verdict(row.met):6} {said}"


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
    before = roofs()
    told: dict[str, Any] = {"brief": said.brief, "machine": machine(), "versions": versions(),
                            "threads": torch.get_num_threads(), "results": [], "failed": {}}
    rows: list[Row] = []
    print(f"{'figure':36} {'value':>8} {'quartiles':>17} {'target':>7}")
    for name in names:
        try:
            for row in figures[name]():
                rows.append(row)
                print(told_line(row, before), flush=True)
        except Exception as why:  # the others go on
            told["failed"][name] = f"{type(why).__name__}: {why}"
            print(f"{name:36} failed: {told['failed'][name]}", flush=True)
    told["roofs"] = {"before": before, "after": roofs()}
    reached = highest(before, told["roofs"]["after"])
    told["results"], told["seconds"] = [as_data(row, reached) for row in rows], round(time.monotonic() - begin)
    path = said.json
    if path is None and not said.names and not said.brief:
        path = RESULTS / f"python-{told['machine']['cpu']}-{told['machine']['cores']}-cores.json"
    if path:
        path.write_text(json.dumps(told, indent=1) + "\n")
        picture = path.with_suffix(".svg")
        drawn = plot(rows, picture)
        path.with_suffix(".md").write_text(page(told, rows, reached, picture.name if drawn else ""))
        print(f"{path} and {path.with_suffix('.md').name}, in {told['seconds']} s")
    return 1 if told["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())
