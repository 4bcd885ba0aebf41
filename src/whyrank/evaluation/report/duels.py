"""Win or loss, query by query."""

from __future__ import annotations

from collections.abc import Sequence

from ...pages.charts import falls_and_rises
from ...pages.document import folded, listing, notice, paragraph, table
from ...pages.markup import Markup, element, foreign, joined
from ...wording import counted
from ..against import Duel, Pair
from ..measures import MAIN

_MOVED_SHOWN = 15  # queries of each side
_CHANCE = 0.05  # below it a difference is called one


def duel_part(duel: Duel, *, is_against: bool) -> Markup:
    """Return one duel: the sum, the picture of all queries, and those that moved most."""
    before = f"{duel.before} of the other results" if is_against else duel.before
    title = element("h3", foreign(duel.after), " against ", foreign(before))
    remarks = notice("Mind:", listing(foreign(said) for said in duel.remarks)) if duel.remarks else None
    missing = notice("Not compared:", listing(foreign(said) for said in duel.left_out)) if duel.left_out else None
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
    verdict = (
        "That is more than chance does." if found.p < _CHANCE else "Chance alone does as well: no difference is shown."
    )
    if not (found.better or found.worse):
        verdict = "No query moved."
    return (
        f"{MAIN} {before:.4f} → {after:.4f}: {found.difference:+.4f} (95 %: {low:+.4f} to {high:+.4f}). "
        f"{found.better:,} better + {found.worse:,} worse + {found.same:,} same = "
        f"{counted(len(duel.pairs), 'query', 'queries')}; "
        f"p = {found.p:.4f}. {verdict}"
    )


def _kinds(duel: Duel) -> Markup | None:
    rows: list[list[Markup | str]] = []
    for kind, one in duel.kinds().items():
        means, found = [f"{mean:.3f}" for mean in one.means], one.comparison()
        counts = [f"{number:,}" for number in (len(one.pairs), found.better, found.worse, found.same)]
        name = foreign(kind or "no kind")
        rows.append([name, counts[0], *means, f"{found.difference:+.4f}", *counts[1:], f"{found.p:.4f}"])
    head = ["kind", "queries", "before", "now", "difference", "better", "worse", "same", "p"]
    return table(head, rows, caption=f"{MAIN} by kind") if rows else None


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
