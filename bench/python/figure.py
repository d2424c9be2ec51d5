"""What a figure is: how it is timed, what it is held to, how it is told."""

from __future__ import annotations

import statistics
import time
import timeit
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Part:
    """What one run of Kiln does of that which a roof of the machine bounds (machine.roofs)."""

    roof: str  # "fma": FLOP of f32; "copy": bytes read and written; "read": bytes read
    amount: float
    target: float | None = None  # of the roof, at least


@dataclass
class Row:
    """One number: a ratio or a difference, of which each round gave one."""

    name: str
    samples: Sequence[float]
    unit: str  # "x kiln / numpy": a ratio, and of what
    target: float | None = None  # None: published, and held to nothing
    higher_is_better: bool = False
    times: Mapping[str, Sequence[float]] = field(default_factory=dict)  # seconds, by who took them
    errors: Mapping[str, float] = field(default_factory=dict)  # against float64, as a part of the largest element
    note: str = ""
    part: Part | None = None

    @property
    def value(self) -> float:
        return statistics.median(self.samples)

    @property
    def quartiles(self) -> tuple[float, float]:
        if len(self.samples) < 2:
            return self.value, self.value
        low, _, high = statistics.quantiles(self.samples, n=4, method="inclusive")
        return low, high

    @property
    def met(self) -> bool | None:
        if self.target is None:
            return None
        return self.value >= self.target if self.higher_is_better else self.value <= self.target

    @property
    def speedup(self) -> tuple[float, float, float] | None:
        """Of a ratio, its quartiles with the value between them: how many times as quick as its peer Kiln is."""
        if not self.unit.startswith("x "):
            return None
        low, high = self.quartiles
        return (low, self.value, high) if self.higher_is_better else (1 / high, 1 / self.value, 1 / low)

    def of_roof(self, roofs: Mapping[str, float]) -> float | None:
        """The part of its roof that Kiln's quickest round reached; roofs are per second."""
        if self.part is None or self.part.roof not in roofs:
            return None
        return self.part.amount / min(self.times["kiln"]) / roofs[self.part.roof]


class Wrong(Exception):
    """What was computed is not what float64 says."""


class Effort:
    """How much each figure does; a brief run shows only that each works."""

    brief = False

    def rounds(self, full: int) -> int:
        return 2 if self.brief else full


effort = Effort()
Figure = Callable[[], Iterator[Row]]
figures: dict[str, Figure] = {}


def figure(function: Figure) -> Figure:
    """Registers what yields rows, under its name."""
    figures[function.__name__] = function
    return function


def timer(work: str | Callable[[], Any], **names: Any) -> timeit.Timer:
    """Of a statement, whose names are given (what takes well under a microsecond), or of a function."""
    return timeit.Timer(work, globals=names)


# Threads of OpenMP wait awake for the next work, on the core that the next turn needs: torch's for up to 10 ms.
ASLEEP_S = 0.02
LONG_S = 0.3  # of a run: what is cold as it begins does not show


def interleave(timers: Mapping[str, timeit.Timer], rounds: int, seconds: float = 0.005,
               pause: float = 0.0) -> dict[str, list[float]]:
    """Seconds of each, a number a round: they take turns, so that what disturbs the machine disturbs all alike.

    Each turn lasts about `seconds`, after an eighth of it that is not counted: caches, and threads that have slept.
    `pause` comes before that: ASLEEP_S where threads work, and those of whose turn it was should sleep. What takes far
    longer runs once a turn.
    """
    counts: dict[str, int] = {}
    times: dict[str, list[float]] = {name: [] for name in timers}
    for name, each in timers.items():
        each.timeit(1)
        long = each.timeit(1) > LONG_S
        counts[name] = 0 if long else 1 if effort.brief else max(1, round(seconds / (min(each.repeat(3, 3)) / 3)))
    for turn in range(effort.rounds(rounds)):
        for name in timers if turn % 2 else reversed(list(timers)):
            if pause:
                time.sleep(pause)
            if counts[name]:
                timers[name].timeit(max(1, counts[name] // 8))
            count = max(1, counts[name])
            times[name].append(timers[name].timeit(count) / count)
    return times


def ratios(times: Mapping[str, Sequence[float]], ours: str, theirs: str) -> list[float]:
    return [a / b for a, b in zip(times[ours], times[theirs], strict=True)]


def differences(times: Mapping[str, Sequence[float]], ours: str, theirs: str, scale: float) -> list[float]:
    return [(a - b) * scale for a, b in zip(times[ours], times[theirs], strict=True)]


def beside_best(name: str, times: Mapping[str, Sequence[float]], ours: str, peers: Sequence[str],
                target: float | None = None, **more: Any) -> Row:
    """How many times as long as ours the quickest of the peers took; without a peer, how long ours did."""
    there = [peer for peer in peers if peer in times]
    if not there:
        return Row(name, [1e3 * each for each in times[ours]], "ms, without a peer", times=times, **more)
    quickest = min(there, key=lambda peer: statistics.median(times[peer]))
    return Row(name, ratios(times, quickest, ours), f"x {quickest} / {ours}", target, higher_is_better=True,
               times=times, **more)


def as_float64(x: Any) -> np.ndarray[Any, Any]:
    return np.asarray(x.detach().double() if hasattr(x, "detach") else x, np.float64)  # bf16 is torch's alone


def error_of(who: str, results: Sequence[Any], exact: Sequence[Any], most: float = 1e-4) -> float:
    """The largest error as a part of the largest element of float64's; Wrong where it is above `most`."""
    if len(results) != len(exact):
        raise Wrong(f"{who} gave {len(results)} results, expected {len(exact)}")
    worst = 0.0
    for got, wanted in zip(results, exact):
        a, b = as_float64(got), as_float64(wanted)
        if a.shape != b.shape:
            raise Wrong(f"{who} gave shape {a.shape}, expected {b.shape}")
        error = float(np.abs(a - b).max() / max(float(np.abs(b).max()), 1e-30))
        worst = error if not error <= worst else worst  # NaN, too
    if not worst <= most:
        raise Wrong(f"{who} is off by {worst:.1e} of the largest element, at most {most:.0e} was expected")
    return worst


def able(makers: Mapping[str, Callable[[], Callable[[], Any]]], exact: Sequence[Any], most: float,
         notes: list[str]) -> tuple[dict[str, Callable[[], Any]], dict[str, float]]:
    """The calls that makers make, and how far what they give is off. A peer that refuses, or is off by more than `most`,
    is left out, and a note says why; of Kiln that is an error."""
    run, errors = {}, {}
    for who, make in makers.items():
        try:
            call = make()
            given = call()
            errors[who] = error_of(who, given if isinstance(given, (tuple, list)) else [given], exact, most)
            run[who] = call
        except Exception as why:  # of any kind: it is another's
            if who.startswith("kiln"):
                raise
            notes.append(f"{who} is left out: {(str(why) or type(why).__name__).splitlines()[0][:120]}")
    return run, errors
