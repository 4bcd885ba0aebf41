"""Plots of a contest: how the time of a question grows with the notes."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeAlias

from .contestant import OURS
from .kept import KeptContest

DRAWN = ("hybrid", "keyword")
PICTURES = ("png", "svg")
Points: TypeAlias = dict[str, list[tuple[int, float]]]  # size and milliseconds, by contestant


def draw(contest: KeptContest, folder: Path) -> list[str]:
    """Write a PNG and an SVG for each drawn category; return their names, none without matplotlib."""
    if find_spec("matplotlib") is None:
        return []
    import matplotlib

    matplotlib.use("Agg")
    matplotlib.rcParams["svg.hashsalt"] = OURS  # the same figures give the same file
    from matplotlib import pyplot

    drawn = {name: points for name in DRAWN if (points := _points(contest, name))}
    for name, points in drawn.items():
        figure, axes = pyplot.subplots(figsize=(8, 5), layout="constrained")
        _fill(axes, name, points)
        for ending in PICTURES:
            figure.savefig(folder / f"{name}.{ending}", metadata={"Date": None} if ending == "svg" else None)
        pyplot.close(figure)
    return list(drawn)


def _fill(axes: Any, name: str, points: Points) -> None:
    for contestant, places in points.items():
        sizes, medians = zip(*places, strict=True)
        ours = {"color": "black", "linewidth": 3, "zorder": 3} if contestant == OURS else {"linewidth": 1.2}
        axes.plot(sizes, medians, marker="o", label=contestant, **ours)
    axes.set(xscale="log", yscale="log", xlabel="notes", ylabel="CPU ms, median of the questions", title=name)
    axes.xaxis.set_major_formatter("{x:,.0f}")
    axes.yaxis.set_major_formatter("{x:g}")
    axes.grid(which="both", alpha=0.25)
    axes.legend(fontsize="small", loc="center left", bbox_to_anchor=(1, 0.5))


def _points(contest: KeptContest, name: str) -> Points:
    points: Points = {}
    for one in contest.rounds:
        category = one.category(name)
        for line in category.lines if category else ():
            points.setdefault(line.name, []).append((one.notes, line.cpu.p50))
    return points
