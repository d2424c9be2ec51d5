"""How rows are told: as data, as a page, as a plot."""

from __future__ import annotations

import pathlib
import statistics
from collections.abc import Mapping
from typing import Any

from figure import Row, effort
from machine import ROOFS

COLOURS = {True: "#2a7f3f", False: "#b8442c", None: "#555555"}  # met, missed, published


def of_time(seconds: float) -> str:
    for scale, unit in ((1e9, "ns"), (1e6, "us"), (1e3, "ms")):
        if seconds * scale < 1000:
            return f"{seconds * scale:.3g} {unit}"
    return f"{seconds:.3g} s"


def medians(row: Row) -> str:
    return ", ".join(f"{who} {of_time(statistics.median(each))}" for who, each in row.times.items())


def verdict(met: bool | None) -> str:
    return "" if met is None or effort.brief else "met" if met else "missed"


def met_roof(row: Row, roofs: Mapping[str, float]) -> bool | None:
    share = row.of_roof(roofs)
    if share is None or row.part is None or row.part.target is None:
        return None
    return share >= row.part.target


def share_of(row: Row, roofs: Mapping[str, float]) -> str:
    share = row.of_roof(roofs)
    if share is None or row.part is None:
        return ""
    target = "" if row.part.target is None else f", ≥ {row.part.target:.2g} {verdict(met_roof(row, roofs))}".rstrip()
    return f"{share:.2g} of {row.part.roof}{target}"


def as_data(row: Row, roofs: Mapping[str, float]) -> dict[str, Any]:
    part = None if row.part is None else {"roof": row.part.roof, "amount": row.part.amount, "target": row.part.target,
                                          "value": row.of_roof(roofs), "met": met_roof(row, roofs)}
    return {"name": row.name, "value": row.value, "quartiles": row.quartiles, "unit": row.unit, "target": row.target,
            "met": row.met, "rounds": len(row.samples),
            "median_seconds": {who: statistics.median(each) for who, each in row.times.items()},
            "errors": dict(row.errors), "of_roof": part, "note": row.note}


def told_roofs(before: Mapping[str, float], after: Mapping[str, float]) -> str:
    if not before:
        return "Roofs of the machine: not measured, for kiln_bench is not built."
    each = [f"{name} {before[name] / 1e9:.3g} and {after[name] / 1e9:.3g} {ROOFS[name][1]}" for name in before]
    return (f"Roofs of the machine, before and after the rows: {', '.join(each)}. `of the roof` is Kiln's quickest "
            "round as a part of the higher one.")


def page(told: Mapping[str, Any], rows: list[Row], roofs: Mapping[str, float], picture: str) -> str:
    lines = ["# Kiln from Python, beside its peers", "",
             f"By `./dev bench --peers python`, on {told['machine']['cores']} cores ({told['machine']['cpu']}), load "
             f"{told['machine']['load']} before the run; Python {told['machine']['python']}, "
             + ", ".join(f"{name} {version}" for name, version in told["versions"].items()) + ".",
             f"All have {told['threads']} threads. Medians of ratios or differences of rounds in which all took turns, "
             "with their quartiles; of `x kiln / …` Kiln is quicker below 1, of `x … / kiln` above it. Errors are "
             "against float64, as parts of the largest element.",
             told_roofs(told["roofs"]["before"], told["roofs"]["after"]), ""]
    if picture:
        lines += [f"![How many times as quick as its peer Kiln is]({picture})", ""]
    lines += ["| figure | value | quartiles | target | | of the roof | times | largest error |",
              "|---|---|---|---|---|---|---|---|"]
    for row in rows:
        target = "" if row.target is None else f"{'≥' if row.higher_is_better else '≤'} {row.target:.3g}"
        errors = ", ".join(f"{who} {error:.0e}" for who, error in row.errors.items())
        note = f" ({row.note})" if row.note else ""
        low, high = row.quartiles
        lines.append(f"| {row.name}{note} | {row.value:.3g} {row.unit} | {low:.3g} to {high:.3g} | {target} "
                     f"| {verdict(row.met)} | {share_of(row, roofs)} | {medians(row)} | {errors} |")
    return "\n".join([*lines, "", *(f"Failed: {name}: {why}" for name, why in told["failed"].items())]).rstrip() + "\n"


def plot(rows: list[Row], path: pathlib.Path) -> bool:
    """The rows that are ratios, as points with their quartiles; the same rows make the same file. False: not drawn."""
    points = [(row, found) for row in rows if (found := row.speedup)]
    try:
        import matplotlib
    except ImportError:
        return False
    if not points:
        return False
    matplotlib.use("svg")
    from matplotlib import pyplot, ticker
    with matplotlib.rc_context({"svg.hashsalt": "kiln", "svg.fonttype": "none", "font.size": 8}):
        drawn, axes = pyplot.subplots(figsize=(8, 0.7 + 0.16 * len(points)), layout="constrained")
        for place, (row, (low, value, high)) in enumerate(points):
            axes.plot([low, high], [place, place], color=COLOURS[row.met], linewidth=1.5)
            axes.plot([value], [place], "o", color=COLOURS[row.met], markersize=3.5)
            if row.target:
                axes.plot([row.target if row.higher_is_better else 1 / row.target], [place], "|", color="#999999")
        axes.axvline(1, color="#000000", linewidth=0.8)
        axes.set(xscale="log", ylim=(len(points) - 0.5, -0.5),
                 xlabel="times as quick as the peer; right of 1 Kiln is ahead, | is the target")
        axes.set_yticks(range(len(points)), [row.name for row, _ in points])
        axes.xaxis.set_major_locator(ticker.LogLocator(subs=(1, 2, 5)))
        axes.xaxis.set_major_formatter(ticker.FormatStrFormatter("%g"))
        axes.grid(axis="x", color="#dddddd", linewidth=0.5)
        axes.spines[["top", "right", "left"]].set_visible(False)
        drawn.savefig(path, format="svg", metadata={"Date": None})
        pyplot.close(drawn)
    return True
