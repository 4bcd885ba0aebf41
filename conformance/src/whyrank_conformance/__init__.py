"""The conformance suite: the eighteen failures of hybrid search as checks that any engine can be put to."""

from .adapter import ABILITIES, Ability, Adapter, Answer, Found, Note, Question, Setup
from .outcome import Conformance, Outcome, Report, Skipped
from .suite import CHECKS, Check, examine

__all__ = [
    "ABILITIES",
    "CHECKS",
    "Ability",
    "Adapter",
    "Answer",
    "Check",
    "Conformance",
    "Found",
    "Note",
    "Outcome",
    "Question",
    "Report",
    "Setup",
    "Skipped",
    "examine",
]
