"""What came of the checks, as a page to look at."""

from __future__ import annotations

from collections.abc import Sequence

from ...pages.charts import Bar, bars
from ...pages.document import Section, folded, page, paragraph, table
from ...pages.markup import Markup, element, foreign, joined
from ...pages.scales import Axis
from .adapters import OURS
from .outcome import Outcome, Report
from .report import SIGNS, headline, versions_of
from .suite import CHECKS

_LEAD = (
    "Eighteen mistakes that hybrid search is known for, as checks over planted notes. An engine is asked only what its "
    "documentation promises: ✓ passed, ✗ failed, – not applicable."
)
_KINDS = {"passed": "good", "failed": "bad", "not applicable": "dim"}


def page_of(reports: Sequence[Report], foot: str = "") -> str:
    """Return a page with the table of all engines and the evidence of every check."""
    sections = [
        Section("Engines", joined(_matrix(reports), _shares(reports))),
        Section("Checks", _checks()),
        *(Section(report.engine, _engine(report)) for report in reports),
    ]
    return page("Conformance", paragraph(_LEAD), sections, foot)


def _matrix(reports: Sequence[Report]) -> Markup:
    head = ["", *(str(check.number) for check in CHECKS)]
    rows = [[report.engine, *_marks(report)] for report in reports]
    ours = [place for place, report in enumerate(reports) if report.engine == OURS]
    return table(head, rows, strong=ours, caption="engines by check")


def _marks(report: Report) -> list[Markup]:
    outcomes = {outcome.check: outcome for outcome in report.outcomes}
    return [_mark(outcomes.get(check.number)) for check in CHECKS]


def _mark(outcome: Outcome | None) -> Markup:
    if outcome is None:
        return element("span", "?", class_="dim")
    return element(
        "span", SIGNS[outcome.state], class_=_KINDS[outcome.state], title=f"{headline(outcome)}: {outcome.state}"
    )


def _shares(reports: Sequence[Report]) -> Markup:
    shown = []
    for report in reports:
        passed, asked = report.count("passed"), report.count("passed") + report.count("failed")
        written = f"{passed} of {asked}" if asked else "could not be judged"
        shown.append(Bar(report.engine, passed / asked if asked else 0.0, written=written))
    return bars(shown, Axis("passed", 0.0, 1.0), caption="Passed, of what each could be asked")


def _checks() -> Markup:
    rows = [[str(check.number), check.title, check.owed] for check in CHECKS]
    return table(["check", "the mistake", "what is owed"], rows, words=3)


def _engine(report: Report) -> Markup:
    how = f"Versions: {versions_of(report)}"
    said = f"{report.about}. {how}; Python {report.python}; {report.seconds:g} s on {report.taken}."
    broken = paragraph(report.broken, kind="bad") if report.broken else None
    return joined(
        paragraph(said), paragraph("Call: ", element("code", report.call)), broken, *map(_evidence, report.outcomes)
    )


def _evidence(outcome: Outcome) -> Markup:
    summary = joined(_mark(outcome), f" {outcome.check}, {headline(outcome)}")
    choice = paragraph(f"Why: {outcome.choice}.") if outcome.choice else None
    return folded(summary, paragraph(foreign(outcome.evidence)), choice, is_open=outcome.state == "failed")
