"""An evaluation as text: the same whether it was measured just now or kept."""

from __future__ import annotations

from collections.abc import Sequence

from ...evaluation.abstention import KEPT_SHOWN, KEPT_WANTED, Point
from ...evaluation.harness import CEILING, SLIPS
from ...evaluation.kept import Kept, KeptAbstention, KeptQuery, KeptSet, KeptSide
from ...evaluation.measures import MAIN, MEASURES
from ...evaluation.significance import bootstrap, compare
from ...wording import counted, which
from . import output

_NAMES = [measure.name for measure in MEASURES]
_ROUNDING = 1e-9  # by which a share that was asked for may miss the one that was measured


def say_kept(found: Kept, file: str) -> None:
    """Print everything that was kept of an evaluation."""
    settings = ", ".join(f"{key} {value}" for key, value in found.settings.items())
    output.say(output.dim(f"{file}: whyrank {found.whyrank}, {found.made}" + (f", {settings}" if settings else "")))
    for one in found.sets:
        say_set(one)
    for measured in found.abstentions:
        _say_abstention(measured)


def say_set(one: KeptSet) -> None:
    """Print the lines of a set, the first recipe by kind of query, and whether every trail replayed."""
    output.say(output.bold(f"{one.name}: {counted(len(one.queries), 'query', 'queries')}"))
    output.say(f"{'':20}" + "".join(f"{name:>11}" for name in _NAMES) + f"   95 % of {MAIN}   against {one.recipes[0]}")
    for line in one.lines:
        low, high = bootstrap(one.values(line))
        output.say(f"{line:20}{_means(one.queries, line)}   {low:.4f} – {high:.4f}" + _against(one, line))
    for kind, queries in _by_kind(one.queries).items():
        count = counted(len(queries), "query", "queries")
        output.say(f"  {kind or '–':18}{_means(queries, one.recipes[0])}   {count}")
    if one.broken:
        failing = which(one.broken, "does", "do")
        output.say(f"{one.broken} of {counted(one.trails, 'trail')} {failing} not replay to the exact key")
    else:
        output.say(output.dim(f"{counted(one.trails, 'trail')} replayed, every one to its exact key"))
    for code, told in SLIPS.items():
        if one.notices.get(code):
            output.say(f"{code}: {one.notices[code]:,} {told}")
    output.say()


def _means(queries: Sequence[KeptQuery], line: str) -> str:
    totals = (sum(query.figures[line][name] for query in queries) for name in _NAMES)
    return "".join(f"{total / len(queries):>11.4f}" for total in totals)


def _by_kind(queries: Sequence[KeptQuery]) -> dict[str, list[KeptQuery]]:
    """Return the queries of each kind; nothing where there is one kind alone."""
    groups: dict[str, list[KeptQuery]] = {}
    for query in queries:
        groups.setdefault(query.kind, []).append(query)
    return dict(sorted(groups.items())) if len(groups) > 1 else {}


def _against(one: KeptSet, line: str) -> str:
    if line in (one.recipes[0], CEILING):
        return ""
    found = compare(one.values(one.recipes[0]), one.values(line))
    return f"   {found.difference:+.4f} (better {found.better}, worse {found.worse}, p {found.p:.4f})"


def _say_abstention(measured: KeptAbstention) -> None:
    for side in measured.sides:
        output.say(output.bold(f"{measured.name}: {side.name}"))
        output.say(f"{counted(side.answerable, 'answerable question')}, {side.unanswerable} unanswerable")
        say_curve([_at_kept(side, share) for share in KEPT_SHOWN])
        output.say(f"at {KEPT_WANTED:.0%} kept: {side.rejected_at_95_kept:.1%} rejected; AUC {side.auc:.3f}")
        output.say(f"the verdict, calibrated without labels: {side.kept:.1%} kept, {side.rejected:.1%} rejected")
        output.say()
    say_uncalibrated(measured.uncalibrated)


def _at_kept(side: KeptSide, share: float) -> Point:
    """Return the highest threshold that keeps this share of the answerable, among those that were kept."""
    keeping = [point for point in side.points if point.kept >= share - _ROUNDING]
    return max(keeping, key=lambda point: point.threshold, default=side.points[0])


def say_curve(points: Sequence[Point]) -> None:
    """Print what thresholds keep and reject."""
    output.say(f"{'kept':>8}{'rejected':>10}{'evidence':>10}{'answered':>10}{'risk':>8}")
    for point in points:
        output.say(
            f"{point.kept:>8.1%}{point.rejected:>10.1%}{point.threshold:>10.3f}{point.coverage:>10.1%}{point.risk:>8.1%}"
        )


def say_uncalibrated(names: Sequence[str]) -> None:
    """Name the scopes that were too small to calibrate."""
    if names:
        output.say(output.dim(f"too few memories to calibrate by: {', '.join(names)}"))
