"""What came of the checks, as one HTML file that fetches nothing and runs nothing."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from .adapters import OURS
from .report import SIGNS, headline, passed, versions_of
from .suite import CHECKS
from .trial import printable

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from .outcome import Outcome, Report

_POLICY = escape("default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'")
_GUARD = f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
_LEAD = (
    "Eighteen mistakes that hybrid search is known for, as checks over planted notes. An engine is asked only what its "
    "documentation promises: ✓ passed, ✗ failed, – not applicable."
)
_KINDS = {"passed": "good", "failed": "bad", "not applicable": "dim"}
_STYLE = """
:root{color-scheme:light dark;--dim:light-dark(#5d6168,#a0a5ad);--rule:light-dark(#dcdee2,#363a41);
--good:light-dark(#0b7a4b,#4cc38a);--bad:light-dark(#b3331f,#ff8a70)}
body{margin:0 auto;max-width:64rem;padding:1.5rem 1rem 4rem;font:16px/1.5 system-ui,sans-serif;overflow-wrap:anywhere}
nav ul{list-style:none;padding:0;display:flex;flex-wrap:wrap;gap:.2rem 1rem}
.wide{overflow-x:auto}table{border-collapse:collapse;font-size:.9rem;overflow-wrap:normal}
th,td{padding:.28rem .7rem;border-bottom:1px solid var(--rule);text-align:left;vertical-align:top}
.ours{font-weight:650}.good{color:var(--good)}.bad{color:var(--bad)}.dim{color:var(--dim)}
details{border:1px solid var(--rule);border-radius:.4rem;margin:.5rem 0;padding:0 .8rem}
summary{cursor:pointer;padding:.5rem 0}meter{width:6rem}
"""


def page_of(reports: Sequence[Report]) -> str:
    """Return a page with the table of all engines and the evidence of every check."""
    sections = [
        ("Engines", "".join(_matrix(reports))),
        ("Checks", "".join(_checks())),
        *((report.engine, "".join(_engine(report))) for report in reports),
    ]
    contents = "".join(f'<li><a href="#{at}">{_text(title)}</a></li>' for at, (title, _) in enumerate(sections))
    body = "".join(f'<h2 id="{at}">{_text(title)}</h2>{part}' for at, (title, part) in enumerate(sections))
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8">{_GUARD}'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<title>Conformance</title><link rel="icon" href="data:,"><style>{_STYLE}</style></head>'
        f"<body><main><h1>Conformance</h1><p>{_LEAD}</p><nav><ul>{contents}</ul></nav>{body}</main></body></html>\n"
    )


def is_page(beginning: str) -> bool:
    """Tell by its beginning whether a text is a page of this suite, or of a whyrank that had it on board."""
    return beginning.startswith("<!doctype html>") and _GUARD in beginning


def _matrix(reports: Sequence[Report]) -> Iterator[str]:
    """Yield a row for every engine: the outcome of each check, and the share that was passed of what was asked."""
    head = "".join(f'<th scope="col">{check.number}</th>' for check in CHECKS)
    yield '<div class="wide" tabindex="0" role="region" aria-label="engines by check"><table><thead><tr>'
    yield f'<th scope="col"></th>{head}<th scope="col">passed, of what each could be asked</th></tr></thead><tbody>'
    for report in reports:
        outcomes = {outcome.check: outcome for outcome in report.outcomes}
        marks = "".join(f"<td>{_mark(outcomes.get(check.number))}</td>" for check in CHECKS)
        ours = ' class="ours"' if report.engine == OURS else ""
        yield f'<tr{ours}><th scope="row">{_text(report.engine)}</th>{marks}<td>{_share(report)}</td></tr>'
    yield "</tbody></table></div>"


def _mark(outcome: Outcome | None) -> str:
    if outcome is None:
        return '<span class="dim">?</span>'
    said = _text(f"{headline(outcome)}: {outcome.state}")
    return f'<span class="{_KINDS[outcome.state]}" title="{said}">{SIGNS[outcome.state]}</span>'


def _share(report: Report) -> str:
    asked = report.count("passed") + report.count("failed")
    bar = f'<meter value="{report.count("passed")}" max="{asked}"></meter> ' if asked else ""
    return f"{bar}{passed(report)}"


def _checks() -> Iterator[str]:
    head = "".join(f'<th scope="col">{title}</th>' for title in ("check", "the mistake", "what is owed"))
    yield '<div class="wide" tabindex="0" role="region" aria-label="checks">'
    yield f"<table><thead><tr>{head}</tr></thead><tbody>"
    for check in CHECKS:
        yield f'<tr><th scope="row">{check.number}</th><td>{_text(check.title)}</td><td>{_text(check.owed)}</td></tr>'
    yield "</tbody></table></div>"


def _engine(report: Report) -> Iterator[str]:
    how = f"Versions: {versions_of(report)}; Python {report.python}; {report.seconds:g} s on {report.taken}."
    yield f"<p>{_text(f'{report.about}. {how}')}</p><p>Call: <code>{_text(report.call)}</code></p>"
    if report.broken:
        yield f'<p class="bad">{_text(report.broken)}</p>'
    for outcome in report.outcomes:
        opened = " open" if outcome.state == "failed" else ""
        summary = f"{_mark(outcome)} {outcome.check}, {_text(headline(outcome))}"
        yield f"<details{opened}><summary>{summary}</summary><p><bdi>{_text(outcome.evidence)}</bdi></p>"
        yield f"<p>Why: {_text(outcome.choice)}.</p></details>" if outcome.choice else "</details>"


def _text(text: str) -> str:
    return escape(printable(text))
