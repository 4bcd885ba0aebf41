"""The page of an evaluation: figures, comparisons, failures, risk."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...formatting import counted, which
from ..abstention import POINTS_DRAWN, Answered, Risk, area, best_possible, risk_by_coverage
from ..compare import Against, Duel, Pair, by_name, within
from ..harness import CEILING, SINGLE_RUNS
from ..measures import MAIN, Comparison, bootstrap, compare
from ..results import FIRST, Kept, KeptAbstention, KeptQuery, KeptSet, KeptSide, drawn
from ..small_stores import VERDICTS
from .html import (
    Axis,
    ChartBar,
    Markup,
    Section,
    Series,
    Spot,
    bars,
    element,
    facts,
    falls_and_rises,
    folded,
    foreign,
    joined,
    lines,
    listing,
    notice,
    page,
    paragraph,
    preformatted,
    table,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..results import FailureDocument, Story

_MOVED_SHOWN = 15  # queries of each side
_CHANCE = 0.05  # p-value below which a difference counts as one


def duel_part(duel: Duel, *, is_against: bool) -> Markup:
    """Return one duel: its summary, the chart of all queries, and those that moved most."""
    before = f"{duel.before} of the other results" if is_against else duel.before
    title = element("h3", foreign(duel.after), " against ", foreign(before))
    remarks = notice("Mind:", listing(map(foreign, duel.remarks))) if duel.remarks else None
    missing = _not_compared(duel.left_out)
    if not duel.pairs:
        return joined(title, paragraph("No query can be compared."), remarks, missing)
    won, lost = duel.moved()
    parts = [paragraph(_sentence(duel)), remarks, missing]
    if won or lost:
        caption = f"what {duel.after} gains or loses against {before}, each query a bar"
        parts.append(falls_and_rises([pair.difference for pair in duel.pairs], caption=caption, label=MAIN))
        parts.append(_kinds(duel))
    parts += [_moved("Won", won, duel), _moved("Lost", lost, duel)]
    return joined(title, *parts)


def _sentence(duel: Duel) -> str:
    (before, after), found, (low, high) = duel.means, duel.comparison(), duel.interval()
    verdict = "The difference is within chance."
    if not (found.better or found.worse):
        verdict = "No query moved."
    elif found.p < _CHANCE:
        verdict = "The difference is beyond chance."
    return (
        f"{MAIN} {before:.4f} → {after:.4f}: {found.difference:+.4f} (95 %: {low:+.4f} to {high:+.4f}). "
        f"{found.better:,} better + {found.worse:,} worse + {found.same:,} same = "
        f"{counted(len(duel.pairs), 'query', 'queries')}; "
        f"p = {found.p:.4f}. {verdict}"
    )


def _kinds(duel: Duel) -> Markup | None:
    rows = [_duel_row(kind or "no kind", one) for kind, one in duel.kinds().items()]
    return table(["kind", *_DUEL_HEAD], rows, caption=f"{MAIN} by kind") if rows else None


_DUEL_HEAD = ("queries", "before", "now", "difference", "better", "worse", "same", "p")


def _duel_row(name: str, duel: Duel) -> list[Markup | str]:
    means = [f"{mean:.3f}" for mean in duel.means]
    return [foreign(name), f"{len(duel.pairs):,}", *means, *_compared(duel.comparison())]


def _compared(found: Comparison) -> list[str]:
    counts = [f"{number:,}" for number in (found.better, found.worse, found.same)]
    return [f"{found.difference:+.4f}", *counts, f"{found.p:.4f}"]


def _moved(title: str, pairs: Sequence[Pair], duel: Duel) -> Markup | None:
    if not pairs:
        return None
    rows = [
        [foreign(pair.query.id), foreign(pair.query.text), f"{pair.before:.3f}", f"{pair.after:.3f}",
         f"{pair.difference:+.3f}"]
        for pair in pairs[:_MOVED_SHOWN]
    ]  # fmt: skip
    head = ["query", "text", duel.before, duel.after if duel.after != duel.before else "now", "difference"]
    left = len(pairs) - len(rows)
    more = paragraph(f"{left:,} more moved less.", kind="dim small") if left else None
    return folded(f"{title}: {counted(len(pairs), 'query', 'queries')}", table(head, rows, words=2, caption=MAIN), more)


_OURS, _OTHER, _CEILING = 1, 6, 3  # colours


def _mean(values: Sequence[float]) -> str:
    return f"{sum(values) / len(values):.3f}"


def _interval(values: Sequence[float]) -> str:
    low, high = bootstrap(values)
    return f"{low:.3f}–{high:.3f}"


def _mean_bar(name: str, values: Sequence[float], colour: int = _OURS) -> ChartBar:
    """Return the bar of a mean with its 95 % interval."""
    return ChartBar(foreign(name), sum(values) / len(values), *bootstrap(values), colour, _mean(values))


def _mean_bars(shown: Sequence[ChartBar], of: str = MAIN) -> Markup:
    return bars(shown, Axis(MAIN, 0, 1), caption=f"{of}, with its 95 % interval")


def figures_part(one: KeptSet) -> Markup:
    """Return the table of every measure of every line, and its bar chart."""
    rows = [
        [_name(line), *(_mean(one.values(line, name)) for name in one.measures), _interval(one.values(line))]
        for line in one.lines
    ]
    strong = [place for place, line in enumerate(one.lines) if line == one.recipes[0]]
    caption = counted(len(one.queries), "query", "queries")
    head = ["", *one.measures, f"95 % of {MAIN}"]
    colours = {CEILING: _CEILING, **dict.fromkeys(one.recipes, _OURS)}
    shown = [_mean_bar(line, one.values(line), colours.get(line, _OTHER)) for line in one.lines]
    return joined(table(head, rows, strong=strong, caption=caption), _mean_bars(shown), _standing(one))


def stores_part(one: KeptSet) -> Markup | None:
    """Return the draws and verdicts of small stores, if they were measured."""
    if one.stores is None:
        return None
    rows = [
        [_name(group), f"{shares.questions:,}", *(f"{share:.1%}" for share in shares[1:])]
        for group, shares in one.stores.verdicts.items()
    ]
    return joined(
        paragraph(*drawn(one.stores)),
        table(["", "questions", *VERDICTS], rows, caption="verdicts, each question counted once"),
    )


def _standing(one: KeptSet) -> Markup:
    """Return the comparison of every other line with the first recipe, except the ceiling."""
    first = one.recipes[0]
    rows = [
        [_name(line), *_compared(compare(one.values(first), one.values(line)))]
        for line in one.lines
        if line not in (first, CEILING)
    ]
    head = ["", "difference", "queries better", "worse", "same", "p"]
    return table(head, rows, caption=f"{MAIN} against {first}, query by query")


def kinds_part(one: KeptSet) -> Markup | None:
    """Return the first recipe by kind of query, beside every other line; None if there is one kind."""
    groups: dict[str, list[KeptQuery]] = {}
    for query in one.queries:
        groups.setdefault(query.kind, []).append(query)
    if len(groups) < 2:
        return None
    recipe = one.recipes[0]
    others = [line for line in one.lines if line != recipe]
    rows: list[list[Markup | str]] = []
    shown = []
    for kind, queries in sorted(groups.items()):
        values = [query.main(recipe) for query in queries]
        rest = [_mean([query.main(line) for query in queries]) for line in others]
        rows.append([_name(kind), f"{len(queries):,}", _mean(values), _interval(values), *rest])
        shown.append(_mean_bar(kind or "no kind", values))
    head = ["kind", "queries", recipe, "95 %", *others]
    return joined(
        element("h3", "By kind of query"),
        table(head, rows, caption=MAIN),
        _mean_bars(shown, f"{MAIN} of {recipe}"),
    )


def _name(said: str) -> Markup:
    return foreign(said or "no kind")


_RISK_OF_CHANCE = 0.5  # if half of all queries are answerable: gives the curves of several pages one scale
_SHARES = (0.25, 0.5, 0.75, 1.0)  # of the questions, shown as figures


def risk_part(one: KeptSet) -> Markup:
    """Return the risk–coverage curve of a set's first recipe: the share of wrong first hits."""
    recipe = one.recipes[0]
    answered = [Answered(query.evidence, query.figures[recipe][FIRST] > 0) for query in one.queries]
    curve, best = risk_by_coverage(answered), best_possible(answered)
    flat = curve[-1].risk
    series = [
        Series(recipe, _thin(curve), is_strong=True),
        Series("if evidence were useless", [(0.0, flat), (1.0, flat)]),
        Series("if evidence were perfect", _thin(best)),
    ]
    high = max(point.risk for point in curve)
    caption = "risk–coverage: the questions with the most evidence are answered first"
    x, y = Axis("answered, of all", 0, 1, is_share=True), Axis("first hit is wrong", 0, high or 1.0, is_share=True)
    figures = ", ".join(f"{share:.0%} answered: {_at(curve, share):.1%} wrong" for share in _SHARES)
    said = f"Area under the curve {area(curve):.3f}; at best {area(best):.3f}, without evidence {flat:.3f}. {figures}."
    return joined(element("h3", "How much the evidence knows"), lines(series, x, y, caption=caption), paragraph(said))


def _at(curve: Sequence[Risk], share: float) -> float:
    return next(point.risk for point in curve if point.coverage >= share - 1e-9)


def _thin(curve: Sequence[Risk]) -> list[tuple[float, float]]:
    step = max(1, len(curve) // POINTS_DRAWN)
    return [(point.coverage, point.risk) for point in (*curve[:-1:step], curve[-1])]


def abstention_part(one: KeptAbstention) -> Markup:
    """Return the curves of an abstention, with the points of the verdict."""
    share = Axis("answerable kept", 0, 1, is_share=True)
    answered = Axis("answered, of all", 0, 1, is_share=True)
    rejected = Axis("unanswerable rejected", 0, 1, is_share=True)
    kept = [Series(side.name, [(p.rejected, p.kept) for p in side.points]) for side in one.sides]
    risks = [Series(side.name, [(p.coverage, p.risk) for p in side.points]) for side in one.sides]
    high = max((_RISK_OF_CHANCE, *(point.risk for side in one.sides for point in side.points)))
    spots = [Spot(side.rejected, side.kept, at, f"{side.name}: the verdict") for at, side in enumerate(one.sides)]
    head = ["unanswerable", "asked", "answerable", "AUC", "rejected at 95 % kept", "verdict keeps", "verdict rejects"]
    few = f"Too few memories to calibrate by: {', '.join(one.uncalibrated)}." if one.uncalibrated else ""
    return joined(
        paragraph("Crosses are the verdict, whose thresholds were calibrated without looking at a question."),
        lines(kept, rejected, share, caption="kept and rejected", spots=spots),
        lines(
            risks,
            answered,
            Axis("of those without an answer", 0, high, is_share=True),
            caption="risk–coverage, if half of all questions can be answered",
        ),
        table(head, [_side(side) for side in one.sides]),
        paragraph(few, kind="dim small") if few else None,
    )


def _side(side: KeptSide) -> list[Markup | str]:
    figures = [f"{value:.1%}" for value in (side.rejected_at_95_kept, side.kept, side.rejected)]
    return [foreign(side.name), f"{side.unanswerable:,}", f"{side.answerable:,}", f"{side.auc:.3f}", *figures]


_OPEN = 1  # stories that are expanded: one shows what the others hold
_EXPECTED_SHOWN = 5


def stories_part(one: KeptSet) -> Markup | None:
    """Return the worst queries of a set with their trails."""
    if not one.worst:
        return None
    told = [_story(one, story, is_open=place < _OPEN) for place, story in enumerate(one.worst)]
    said = (
        f"The queries on which {one.recipes[0]} does worst; among equals, first those that a better ranking "
        f"would have answered."
    )
    return joined(element("h3", "The worst queries"), paragraph(said, kind="dim small"), *told)


def _story(one: KeptSet, story: Story, *, is_open: bool) -> Markup:
    query = one.query(story.id)
    recipe = one.recipes[0]
    rank = query.ranks[recipe]
    ranks = ", ".join(f"{line} {query.ranks[line] or '–'}" for line in one.lines)
    landed = f"expected at {rank}" if rank else "expected not among the results"
    summary = joined(
        foreign(query.text), element("span", f" — {MAIN} {query.main(recipe):.3f}, {landed}", class_="dim")
    )
    parts = [
        paragraph("query ", foreign(query.id), _about(query), kind="dim small"),
        paragraph("Expected: ", _expected(query)),
        paragraph(f"First expected document: {ranks}", kind="dim small"),
        _told("What came first", story.first) if story.first else paragraph("Nothing was found."),
        _told("The best expected document", story.expected),
        joined(element("h4", "What would swap the two"), preformatted(story.flip)) if story.flip else None,
    ]
    return folded(summary, *parts, is_open=is_open)


def _about(query: KeptQuery) -> Markup:
    said = [f"kind {query.kind}" if query.kind else "", f"scope {query.scope}", f"verdict {query.verdict}"]
    return foreign("".join(f" · {one}" for one in said if one))


def _expected(query: KeptQuery) -> Markup:
    ordered = sorted(query.expected.items(), key=lambda item: -item[1])
    shown = [joined(foreign(document), f" (gain {gain})" if gain > 1 else "") for document, gain in ordered]
    more = f", and {len(shown) - _EXPECTED_SHOWN} more" if len(shown) > _EXPECTED_SHOWN else ""
    listed = [joined(", " if place else "", one) for place, one in enumerate(shown[:_EXPECTED_SHOWN])]
    return joined(*listed, more)


def _told(title: str, told: FailureDocument) -> Markup:
    place = f"rank {told.rank}" if told.rank else "not among the results"
    worth = "relevant" if told.gain > 0 else "not relevant"
    return joined(
        element("h4", title, ": ", foreign(told.document), element("span", f" ({place}, {worth})", class_="dim")),
        element("blockquote", foreign(told.title or ""), ": " if told.title and told.text else "", foreign(told.text))
        if told.title or told.text
        else None,
        preformatted(told.trail),
    )


_HOW = (
    f"{MAIN} is between 0 and 1: 1 means that everything relevant comes first. Intervals hold the mean in 95 of 100 "
    "resamplings of the queries. The ceiling is the best order anybody could make of all that any of the lines "
    "brought; keyword and vector are the two halves of the search, each alone. p is how often chance, which flips "
    "wins and losses, does as well."
)


def page_of(kept: Kept, compared: Against | None = None) -> str:
    """Return the page of stored results, compared with others if given."""
    sections = [_overview(kept.sets, compared)] if kept.sets else []
    duels = {duel.set_name: duel for duel in compared.duels} if compared else {}
    sections += [_section(name, one, duels.get(name)) for name, one in by_name(kept.sets).items()]
    sections += [Section(f"{one.name}: when nothing relevant exists", abstention_part(one)) for one in kept.abstentions]
    title = "How well it finds" if kept.sets else "Does it say so when nothing is there?"
    foot = "Made by whyrank eval. This page is one file: it fetches nothing and runs nothing."
    return page(title, _lead(kept, compared), sections, foot)


def _lead(kept: Kept, compared: Against | None) -> Markup:
    about = {"whyrank": kept.whyrank, "measured": kept.made, **kept.settings}
    if compared:
        other = compared.other
        about["against"] = f"whyrank {other.whyrank}, measured {other.made}"
    trails, broken = sum(one.trails for one in kept.sets), sum(one.broken for one in kept.sets)
    return joined(facts({name: foreign(value) for name, value in about.items()}), _trails(trails, broken))


def _trails(trails: int, broken: int) -> Markup | None:
    if not trails:
        return None
    if broken:
        return notice(
            f"{broken:,} of {counted(trails, 'trail')} do not replay to their key: their explanations are wrong."
        )
    return paragraph(
        f"{counted(trails, 'trail')} {which(trails, 'was', 'were')} replayed, every one to its exact key.",
        kind="dim small",
    )


def _overview(sets: Sequence[KeptSet], compared: Against | None) -> Section:
    recipe = sets[0].recipes[0]
    head = ["set", "queries", MAIN, "95 %", *SINGLE_RUNS, CEILING]
    shown = [_mean_bar(one.name, one.values(recipe)) for one in sets]
    parts = [
        paragraph(_HOW, kind="small dim"),
        table(head, [_row(one) for one in sets], caption=f"recipe {recipe}, and beside it"),
        _mean_bars(shown, f"{MAIN} of {recipe}") if len(sets) > 1 else None,
        _compared_at_a_glance(compared) if compared else None,
    ]
    return Section("At a glance", joined(*parts))


def _row(one: KeptSet) -> list[Markup | str]:
    lines = (one.recipes[0], *SINGLE_RUNS, CEILING)
    first, *others = (_mean(one.values(line)) if line in one.lines else "–" for line in lines)
    return [foreign(one.name), f"{len(one.queries):,}", first, _interval(one.values(one.recipes[0])), *others]


def _compared_at_a_glance(compared: Against) -> Markup:
    rows = [_duel_row(duel.set_name, duel) for duel in compared.duels]
    shown = table(["set", *_DUEL_HEAD], rows, caption=MAIN) if rows else paragraph("Nothing can be compared.")
    return joined(element("h3", "Against the other results"), shown, _not_compared(compared.left_out))


def _not_compared(left_out: Sequence[str]) -> Markup | None:
    return notice("Not compared:", listing(map(foreign, left_out))) if left_out else None


def _section(name: str, one: KeptSet, duel: Duel | None) -> Section:
    duels = [*([duel] if duel else []), *within(one)]
    parts = [stores_part(one), figures_part(one), kinds_part(one)]
    parts += [duel_part(each, is_against=each is duel) for each in duels]
    # A query of several small stores has no single answer that was right or wrong.
    parts += [risk_part(one) if one.stores is None else None, stories_part(one), _notices(one)]
    return Section(name, joined(*parts))


def _notices(one: KeptSet) -> Markup | None:
    if not one.notices:
        return None
    said = ", ".join(f"{code} × {count:,}" for code, count in sorted(one.notices.items()))
    return paragraph(f"Notices of the answers: {said}.", kind="dim small")
