"""What the evidence is worth: the risk of answering, by how much is answered."""

from __future__ import annotations

from collections.abc import Sequence

from ...pages.charts import Series, Spot, lines
from ...pages.document import paragraph, table
from ...pages.markup import Markup, element, foreign, joined
from ...pages.scales import Axis
from ..abstention import POINTS_DRAWN
from ..kept import KeptAbstention, KeptSet, KeptSide
from ..selective import Answered, Risk, area, best_possible, risk_by_coverage

_FIRST = "hit@1"
_RISK_OF_CHANCE = 0.5  # where half of all questions can be answered: curves of several pages stand on one scale
_SHARES = (0.25, 0.5, 0.75, 1.0)  # of the questions, shown as figures


def risk_part(one: KeptSet) -> Markup:
    """Return the risk–coverage curve of a set's first recipe: wrong first hits among the surest answers."""
    recipe = one.recipes[0]
    answered = [Answered(query.evidence, query.figures[recipe][_FIRST] > 0) for query in one.queries]
    curve, best = risk_by_coverage(answered), best_possible(answered)
    flat = curve[-1].risk
    series = [
        Series(recipe, _thin(curve), is_strong=True),
        Series("if evidence told nothing", [(0.0, flat), (1.0, flat)]),
        Series("if evidence knew", _thin(best)),
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
    """Return the curves of an abstention, and where the verdict stands on them."""
    share = Axis("answerable kept", 0, 1, is_share=True)
    kept = [Series(side.name, [(p.rejected, p.kept) for p in side.points]) for side in one.sides]
    risks = [Series(side.name, [(p.coverage, p.risk) for p in side.points]) for side in one.sides]
    high = max((_RISK_OF_CHANCE, *(point.risk for side in one.sides for point in side.points)))
    spots = [Spot(side.rejected, side.kept, at, f"{side.name}: the verdict") for at, side in enumerate(one.sides)]
    head = ["unanswerable", "asked", "answerable", "AUC", "rejected at 95 % kept", "verdict keeps", "verdict rejects"]
    few = f"Too few memories to calibrate by: {', '.join(one.uncalibrated)}." if one.uncalibrated else ""
    return joined(
        paragraph("Crosses are the verdict, whose thresholds were calibrated without looking at a question."),
        lines(
            kept, Axis("unanswerable rejected", 0, 1, is_share=True), share, caption="kept and rejected", spots=spots
        ),
        lines(
            risks,
            Axis("answered, of all", 0, 1, is_share=True),
            Axis("of those without an answer", 0, high, is_share=True),
            caption="risk–coverage, if half of all questions can be answered",
        ),
        table(head, [_side(side) for side in one.sides]),
        paragraph(few, kind="dim small") if few else None,
    )


def _side(side: KeptSide) -> list[Markup | str]:
    figures = [f"{value:.1%}" for value in (side.rejected_at_95_kept, side.kept, side.rejected)]
    return [foreign(side.name), f"{side.unanswerable:,}", f"{side.answerable:,}", f"{side.auc:.3f}", *figures]
