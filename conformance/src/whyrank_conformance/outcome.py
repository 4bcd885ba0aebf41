"""What came of the checks, as values that are kept: outcomes, reports, and their JSON."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

State = Literal["passed", "failed", "not applicable"]
FORMAT = 1


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of one check, with the evidence: of a failure the first trial that failed, else the last one."""

    check: int
    title: str
    state: State
    asked: str = ""
    expected: str = ""
    got: str = ""
    reason: str = ""  # why it is not applicable
    choice: str = ""  # which design choice or known cause is behind a failure
    trials: int = 0
    failed: int = 0

    @property
    def evidence(self) -> str:
        """Say what was seen, in a sentence."""
        if self.state == "not applicable":
            return self.reason
        said = f"Asked {self.asked}; expected {self.expected}; came back: {self.got}"
        return f"{said} ({self.failed} of {self.trials} trials failed)" if self.failed and self.trials > 1 else said


@dataclass(frozen=True, slots=True)
class Report:
    """One engine's outcomes, with what was run and how."""

    engine: str
    about: str
    call: str
    versions: Mapping[str, str]
    outcomes: tuple[Outcome, ...]
    seconds: float = 0.0
    taken: str = ""  # the day, as YYYY-MM-DD
    python: str = ""
    broken: str = ""  # why it could not be judged at all

    def count(self, state: State) -> int:
        """Count the outcomes in a state."""
        return sum(outcome.state == state for outcome in self.outcomes)

    @property
    def conforms(self) -> bool:
        """Tell whether it could be judged and failed nothing."""
        return not self.broken and self.count("failed") == 0

    def as_data(self) -> dict[str, Any]:
        """Return plain data."""
        return {**asdict(self), "outcomes": [asdict(outcome) for outcome in self.outcomes], "format": FORMAT}


@dataclass(frozen=True, slots=True)
class Skipped:
    """An engine that was not run, and why."""

    engine: str
    reason: str


@dataclass(frozen=True, slots=True)
class Conformance:
    """All that one run came to."""

    reports: tuple[Report, ...] = ()
    skipped: tuple[Skipped, ...] = field(default_factory=tuple)

    @property
    def conforms(self) -> bool:
        """Tell whether every engine that ran conforms."""
        return all(report.conforms for report in self.reports)

    def as_data(self) -> dict[str, Any]:
        """Return plain data."""
        return {
            "engines": [report.as_data() for report in self.reports],
            "skipped": [asdict(one) for one in self.skipped],
            "conforms": self.conforms,
            "format": FORMAT,
        }


def report_from(data: Mapping[str, Any]) -> Report:
    """Read a report that was kept."""
    kept = {key: value for key, value in data.items() if key not in ("outcomes", "format")}
    return Report(**kept, outcomes=_outcomes(data["outcomes"]))


def _outcomes(data: Sequence[Mapping[str, Any]]) -> tuple[Outcome, ...]:
    return tuple(Outcome(**one) for one in data)
