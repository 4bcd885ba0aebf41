"""The whole page: what was measured, every set, and what the verdict is worth."""

from __future__ import annotations

from collections.abc import Sequence

from ...pages.charts import Bar, bars
from ...pages.document import Section, facts, listing, notice, page, paragraph, table
from ...pages.markup import Markup, element, foreign, joined
from ...pages.scales import Axis
from ...wording import counted, which
from ..against import Against, Duel, by_name, within
from ..harness import CEILING, SINGLE_RUNS
from ..kept import Kept, KeptSet
from ..measures import MAIN
from ..significance import bootstrap
from .duels import duel_part
from .figures import figures_part, kinds_part, mean_of
from .risk import abstention_part, risk_part
from .stories import stories_part

_HOW = (
    f"{MAIN} is between 0 and 1: 1 means that everything relevant comes first. Intervals hold the mean in 95 of 100 "
    "resamplings of the queries. The ceiling is the best order anybody could make of all that any of the lines "
    "brought; keyword and vector are the two halves of the search, each alone. p is how often chance, which flips "
    "wins and losses, does as well."
)


def page_of(kept: Kept, compared: Against | None = None) -> str:
    """Return the page of kept results, beside others if there are some."""
    sections = [_overview(kept.sets, compared)] if kept.sets else []
    duels = {duel.set_name: duel for duel in compared.duels} if compared else {}
    sections += [_section(name, one, duels.get(name)) for name, one in by_name(kept.sets).items()]
    sections += [
        Section(f"{one.name}: when nothing relevant is there", abstention_part(one)) for one in kept.abstentions
    ]
    title = "How well it finds" if kept.sets else "Does it say so when nothing is there?"
    foot = "Made by whyrank eval. This page is one file: it fetches nothing and runs nothing."
    return page(title, _lead(kept, compared), sections, foot)


def _lead(kept: Kept, compared: Against | None) -> Markup:
    about = {"whyrank": kept.whyrank, "measured": kept.made}
    about |= kept.settings
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
    shown = [_bar(one) for one in sets]
    parts = [
        paragraph(_HOW, kind="small dim"),
        table(head, [_row(one) for one in sets], caption=f"recipe {recipe}, and beside it"),
        bars(shown, Axis(MAIN, 0, 1), caption=f"{MAIN} of {recipe}, with its 95 % interval") if len(sets) > 1 else None,
        _compared_at_a_glance(compared) if compared else None,
    ]
    return Section("At a glance", joined(*parts))


def _row(one: KeptSet) -> list[Markup | str]:
    low, high = bootstrap(one.values(one.recipes[0]))
    lines = (one.recipes[0], *SINGLE_RUNS, CEILING)
    first, *others = (f"{mean_of(one, line):.3f}" if line in one.lines else "–" for line in lines)
    return [foreign(one.name), f"{len(one.queries):,}", first, f"{low:.3f}–{high:.3f}", *others]


def _bar(one: KeptSet) -> Bar:
    recipe = one.recipes[0]
    low, high = bootstrap(one.values(recipe))
    return Bar(foreign(one.name), mean_of(one, recipe), low, high, written=f"{mean_of(one, recipe):.3f}")


def _compared_at_a_glance(compared: Against) -> Markup:
    rows: list[list[Markup | str]] = []
    for duel in compared.duels:
        (before, after), found = duel.means, duel.comparison()
        counts = [f"{number:,}" for number in (len(duel.pairs), found.better, found.worse, found.same)]
        means = f"{before:.3f}", f"{after:.3f}"
        name = foreign(duel.set_name)
        rows.append([name, counts[0], *means, f"{found.difference:+.4f}", *counts[1:], f"{found.p:.4f}"])
    head = ["set", "queries", "before", "now", "difference", "better", "worse", "same", "p"]
    missing = (
        notice("Not compared:", listing(foreign(said) for said in compared.left_out)) if compared.left_out else None
    )
    if not rows:
        return joined(element("h3", "Against the other results"), paragraph("Nothing can be compared."), missing)
    return joined(element("h3", "Against the other results"), table(head, rows, caption=MAIN), missing)


def _section(name: str, one: KeptSet, duel: Duel | None) -> Section:
    duels = [*([duel] if duel else []), *within(one)]
    parts = [figures_part(one), kinds_part(one)]
    parts += [duel_part(each, is_against=each is duel) for each in duels]
    parts += [risk_part(one), stories_part(one), _notices(one)]
    return Section(name, joined(*parts))


def _notices(one: KeptSet) -> Markup | None:
    if not one.notices:
        return None
    said = ", ".join(f"{code} × {count:,}" for code, count in sorted(one.notices.items()))
    return paragraph(f"Notices of the answers: {said}.", kind="dim small")
