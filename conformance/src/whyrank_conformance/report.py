"""What came of the checks, as text for a terminal and as the page of the documentation."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .adapters import OURS, UNASKED
from .suite import CHECKS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from .outcome import Conformance, Outcome, Report, State

SIGNS: Mapping[State, str] = {"passed": "✓", "failed": "✗", "not applicable": "–"}
HEADING = "# Conformance: who makes which mistake"
HOW = "✓ passed, ✗ failed, – the engine does not promise it. `--json` has the evidence of every check."


def as_text(found: Conformance) -> str:
    """Return a table, then every failure with its evidence; of one engine alone every check has its line."""
    lines = list(_table(found.reports)) if len(found.reports) > 1 else []
    for report in found.reports:
        lines += ["", *_told(report, every=len(found.reports) == 1)]
    lines += [f"skipped: {one.engine}: {one.reason}" for one in found.skipped]
    return "\n".join(lines).strip("\n")


def _table(reports: Sequence[Report]) -> Iterator[str]:
    wide = max(len(report.engine) for report in reports)
    yield " " * wide + "  " + " ".join(f"{check.number:>2}" for check in CHECKS) + "   passed"
    for report in reports:
        signs = {outcome.check: SIGNS[outcome.state] for outcome in report.outcomes}
        cells = " ".join(f"{signs.get(check.number, '?'):>2}" for check in CHECKS)
        yield f"{report.engine:<{wide}}  {cells}   {passed(report)}"


def passed(report: Report) -> str:
    """Say how many checks were passed, of those the engine was asked."""
    if report.broken:
        return "could not be judged"
    return f"{report.count('passed')} of {report.count('passed') + report.count('failed')}"


def _told(report: Report, *, every: bool) -> Iterator[str]:
    versions = f" ({versions_of(report)})" if report.versions else ""
    yield f"{report.engine}{versions}: {passed(report)} passed, {report.count('not applicable')} not applicable"
    if report.broken:
        yield f"  {report.broken}"
    for outcome in report.outcomes:
        if every or outcome.state == "failed":
            yield f"  {SIGNS[outcome.state]} {outcome.check:>2} {headline(outcome)}"
        if outcome.state != "passed" and (every or outcome.state == "failed"):
            yield f"       {outcome.evidence}"
        if outcome.choice:
            yield f"       Why: {outcome.choice}."


def headline(outcome: Outcome) -> str:
    """Name a check as it came out: by the mistake where it was made, else by what is owed."""
    return outcome.title if outcome.state == "failed" else CHECKS[outcome.check - 1].owed


def versions_of(report: Report) -> str:
    """Name what was run, in its versions."""
    return ", ".join(f"{name} {version}" for name, version in report.versions.items()) or "not declared"


# -- the page of the documentation -----------------------------------------------------------------------------


def as_markdown(reports: Sequence[Report], results: str) -> str:
    """Return the page of the documentation; `results` is the folder of the reports, as seen from the page."""
    days = sorted({report.taken for report in reports})
    taken = days[0] if len(days) == 1 else f"{days[0]} to {days[-1]}"
    lines = [
        HEADING,
        "",
        _INTRODUCTION.format(taken=taken, results=results),
        "",
        *_markdown_table(reports),
        "",
        *_markdown_checks(),
        "",
        *_markdown_own(reports),
        "",
        _NOT_SAID,
        "",
        *(line for report in reports for line in _markdown_engine(report)),
        "## Not asked",
        "",
        *(f"- {name}: {reason}." for name, reason in UNASKED.items()),
    ]
    return "\n".join(lines) + "\n"


_INTRODUCTION = """\
Made by `python -m whyrank_conformance --out` from the reports in [{results}]({results}), taken {taken}.

Eighteen mistakes that hybrid search is known for, as checks over planted notes that any engine can be put to. Each
engine runs with its documented defaults, embedded, offline, and with the same planted embedder, in which the cosine of
every note to every question is written down. It is asked only what its documentation promises: ✓ passed, ✗ failed,
– not applicable, because it does not promise it (never counted as passed). Where a failure is a design choice, or its
cause is known, that stands beside it. [How to put your own engine to it](how-to/conformance.md)."""

_NOT_SAID = """## What this table does not say

- We wrote the checks and knew the mistakes before we wrote whyrank. That it passes is the least one can ask of it;
  it is no measure of how well it finds. For that, [measure on your own data](how-to/measure.md).
- Whoever promises less is asked less. A dash is no fault: Chroma and LanceDB are databases, and names, verdicts and
  replaced facts are left to whoever builds on them.
- Where one word of a question stands in one note, and another has its meaning (cosine 0.6),
  whyrank, txtai, LanceDB and memweave put the meaning first (the others were asked on 2026-11-15); Qdrant Edge, Milvus
  Lite, LlamaIndex and Haystack the word. No check asks for it.
- Where others do better: Qdrant Edge answers hybrid questions in less CPU time ([benchmarks](benchmarks/index.md)).
  txtai takes one threshold between 0 and 1 for words and vectors together; whyrank's reads cosine and coverage
  apart, and a full match by words alone has a coverage just below 0.5, so that 0.5 loses it.
- The checks look from outside. An engine with a mistake in a part that no answer shows passes."""


def _markdown_table(reports: Sequence[Report]) -> Iterator[str]:
    yield f"| | {' | '.join(str(check.number) for check in CHECKS)} | passed |"
    yield f"|---|{':-:|' * len(CHECKS)}---|"
    for report in reports:
        signs = {outcome.check: SIGNS[outcome.state] for outcome in report.outcomes}
        cells = " | ".join(signs.get(check.number, "?") for check in CHECKS)
        name = f"**{report.engine}**" if report.engine == OURS else report.engine
        yield f"| {name} | {cells} | {passed(report)} |"


def _markdown_checks() -> Iterator[str]:
    yield "| check | the mistake | what is owed |"
    yield "|---:|---|---|"
    yield from (f"| {check.number} | {check.title} | {check.owed} |" for check in CHECKS)


def _markdown_own(reports: Sequence[Report]) -> Iterator[str]:
    """Begin with ourselves."""
    yield "## Our own gaps first"
    yield ""
    yield "- The verdict rests on thresholds; those of the planted embedder (0.3 and 0.6) are declared in our adapter."
    for report in reports:
        if report.engine.startswith(OURS):
            for why, failures in _by_choice(report).items():
                told = "; ".join(f"{one.check}, {one.title}" for one in failures)
                yield f"- [{report.engine}](#{report.engine}) fails {told}." + (f" Why: {why}." if why else "")


def _by_choice(report: Report) -> dict[str, list[Outcome]]:
    found: dict[str, list[Outcome]] = {}
    for outcome in report.outcomes:
        if outcome.state == "failed":
            found.setdefault(outcome.choice, []).append(outcome)
    return found


def _markdown_engine(report: Report) -> Iterator[str]:
    yield f"## {report.engine}"
    yield ""
    yield f"{report.about[:1].upper()}{report.about[1:]}."
    yield ""
    yield f"- Versions: {versions_of(report)}; Python {report.python}; {report.seconds:g} s on {report.taken}"
    yield f"- Call: `{report.call}`"
    if report.broken:
        yield f"- Could not be judged: {report.broken}"
    for outcome in report.outcomes:
        if outcome.state == "failed":
            yield f"- ✗ {outcome.check}, {outcome.title}: {_sentence(outcome)}"
    for reason, numbers in _reasons(report).items():
        yield f"- – {', '.join(map(str, numbers))}: {reason}"
    yield ""


def _sentence(outcome: Outcome) -> str:
    said = outcome.evidence.replace("|", "\\|")
    return f"{said}. *Why: {outcome.choice}.*" if outcome.choice else f"{said}."


def _reasons(report: Report) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for outcome in report.outcomes:
        if outcome.state == "not applicable":
            found.setdefault(outcome.reason, []).append(outcome.check)
    return found
