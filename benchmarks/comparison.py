"""The tables of `docs/comparison.md`, written anew from the figures that are kept beside it.

    python -m benchmarks.comparison

A table stands between `<!-- NAME -->` and `<!-- end -->`; what is around it is written by hand.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from whyrank.evaluation.measures import MAIN, compare

from .speed.peers import OURS
from .speed.results import KeptContest, KeptRound, read

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

DOCS = Path(__file__).parent.parent / "docs"
PAGE = DOCS / "comparison.md"
CHANCE = 0.05
FEWEST = 6  # lines that have a set, for it to be shown
_BLOCK = re.compile(r"<!-- (?P<name>[a-z ]+) -->\n.*?<!-- end -->", re.S)
_STATES = ("failed", "passed", "not applicable")
_HYBRID = ("whyrank", "fts5+numpy", "lancedb", "chroma", "qdrant-edge", "txtai")


def main() -> None:
    PAGE.write_text(renewed(PAGE.read_text("utf-8")), "utf-8")


def renewed(page: str) -> str:
    """Return the page with every table written anew."""
    return _BLOCK.sub(lambda found: f"<!-- {found['name']} -->\n\n{TABLES[found['name']]()}\n\n<!-- end -->", page)


def finding() -> str:
    """Return nDCG@10 by set, the best first by the set that all have; marked where it differs beyond chance."""
    engines = _kept("finding")["engines"]
    sets = [one for one in engines[OURS]["sets"] if sum(one in each["sets"] for each in engines.values()) >= FEWEST]
    ordered = sorted(engines, key=lambda name: -engines[name]["sets"][sets[0]]["measures"][MAIN])
    counts = [f"{one} ({engines[OURS]['sets'][one]['queries']:,} questions)" for one in sets]
    rows = [[_called(name, engines[name]), *(_figure(engines, name, one) for one in sets)] for name in ordered]
    return _table([f"{MAIN}, on {_date(engines)}", *counts], rows)


def _figure(engines: dict[str, Any], name: str, one: str) -> str:
    found = engines[name]["sets"].get(one)
    if found is None:
        return "–"
    compared = compare(engines[OURS]["sets"][one]["per_query"], found["per_query"])
    mark = "" if compared.p >= CHANCE else " ▲" if compared.difference > 0 else " ▼"
    failed = f" ({found['failed']} failed)" if found.get("failed") else ""
    return f"{found['measures'][MAIN]:.3f}{mark}{failed}"


def _called(name: str, engine: dict[str, Any]) -> str:
    others = [at for package, at in engine["versions"].items() if package != OURS]
    version = engine["versions"].get(name, *others[:1]) if others else ""
    return f"**{name}**" if name == OURS else f"{name} {version}".strip()


def _date(engines: dict[str, Any]) -> str:
    return str(max(found["date"] for one in engines.values() for found in one["sets"].values()))


def calls() -> str:
    """Return the exact call of every engine."""
    engines = _kept("finding")["engines"]
    return "\n".join(f"- {_called(name, one)}: `{one['call']}`" for name, one in engines.items() if "," not in name)


def speed() -> str:
    """Return CPU of whole searches, of words alone and of vectors alone, as ratios to whyrank."""
    contest = read(DOCS / "benchmarks" / "results.json")
    names = sorted({line.name for one in contest.rounds for category in one.categories for line in category.lines})
    columns = [(name, one) for name in ("hybrid", "keyword", "vector", "insert") for one in contest.rounds]
    rows = [[name, *(_ratio(one, category, name) for category, one in columns)] for name in [OURS, *_others(names)]]
    titles = {"hybrid": "whole search", "keyword": "words", "vector": "vectors", "insert": "insert"}
    heads = [f"{titles[category]}, {one.notes:,}" for category, one in columns]
    return _table([f"CPU over whyrank's, {contest.date}", *heads], rows)


def _ratio(one: KeptRound, category: str, name: str) -> str:
    found = one.category(category)
    line = found.line(name) if found else None
    if line is None or line.ratio is None:
        return ""
    times = line.ratio.cpu
    return f"{line.cpu.p50:.1f} ms" if name == OURS else f"{times:.0f}" if times >= 10 else f"{times:.2g}"


def size() -> str:
    """Return what an index takes on the disk and to build, at every size."""
    contest = read(DOCS / "benchmarks" / "results.json")
    heads = [f"{what}, {one.notes:,}" for one in contest.rounds for what in ("disk MB", "build CPU s", "peak RSS MB")]
    return _table([f"{contest.date}", *heads], [[name, *_sizes(contest, name)] for name in _HYBRID])


def _sizes(contest: KeptContest, name: str) -> Iterator[str]:
    for one in contest.rounds:
        entrant = one.entrant(name)
        for where, key in (("build", "disk_mb"), ("build", "cpu_s"), ("cold", "peak_mb")):
            value = getattr(entrant, where).get(key) if entrant else None
            yield "–" if value is None else f"{value:,.0f}" if value >= 10 else f"{value:.1f}"


def installs() -> str:
    """Return what an installation takes, the smallest first."""
    kept = _kept("installs")
    ordered = sorted(kept["engines"].items(), key=lambda item: item[1]["mb"])
    rows = [[f"`pip install {asked}`", f"{one['mb']:,}", str(one["packages"])] for asked, one in ordered]
    return _table([f"Python {kept['python']}, {kept['date']}", "MB", "packages"], rows)


def conformance() -> str:
    """Return how many of the eighteen checks each engine passes, fails, and does not promise; ours and the peers'."""
    files = sorted((DOCS / "conformance").glob("*.json"))
    reports = [json.loads(file.read_text("utf-8")) for file in files]
    shown = [one for one in reports if one["engine"] == OURS or not one["engine"].startswith(f"{OURS}-")]
    counted = [(one["engine"], Counter(outcome["state"] for outcome in one["outcomes"]), one) for one in shown]
    ordered = sorted(counted, key=lambda each: (each[1]["failed"], -each[1]["passed"], each[0]))
    rows = [
        [f"**{name}**" if name == OURS else name, *(str(states[key]) for key in _STATES), _failed(one)]
        for name, states, one in ordered
    ]
    return _table(["", *_STATES, "which"], rows)


def _failed(report: dict[str, Any]) -> str:
    return ", ".join(str(one["check"]) for one in report["outcomes"] if one["state"] == "failed") or "–"


def _others(names: Sequence[str]) -> list[str]:
    return [name for name in names if name != OURS]


def _kept(name: str) -> dict[str, Any]:
    data: dict[str, Any] = json.loads((DOCS / "comparison" / f"{name}.json").read_text("utf-8"))
    return data


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [f"| {' | '.join(head)} |", f"|{'|'.join(['---', *['---:'] * (len(head) - 1)])}|"]
    return "\n".join([*lines, *(f"| {' | '.join(row)} |" for row in rows)])


TABLES: dict[str, Callable[[], str]] = {
    "finding": finding, "calls": calls, "speed": speed, "size": size, "installs": installs, "conformance": conformance,
}  # fmt: skip

if __name__ == "__main__":
    main()
