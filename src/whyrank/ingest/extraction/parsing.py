"""Parse and check the answers of a language model, line by line."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from ...analysis.normalize import clean, same_text
from ...types.memory import CATEGORIES

MIN_TEXT = 10  # characters; a shorter text has no meaning of its own
MAX_TEXT = 1_000  # characters: a fact longer than its source is none
MIN_EVIDENCE = 10  # characters; a shorter quotation occurs in any text
MAX_TAGS, MAX_TAG = 10, 60  # tags, and characters of one
MAX_FACTS = 20  # of one window; 800 characters hold about ten sentences
MAX_ANSWER = 200_000  # characters that are read of one answer
OTHER_CATEGORY = "technical"  # replaces an unknown category
NOTHING = "NONE"  # the answer of a model when a text holds no fact

FIELDS = ("text", "category", "tags", "importance", "evidence")

_THOUGHTS = re.compile(r"\A\s*<think>.*?</think>", re.DOTALL)
_FENCE = re.compile(r"`{3,}\w*")
_BETWEEN = re.compile(r"[\s,\[\]]*")  # some models write a list, whatever the prompt
_JSON = json.JSONDecoder(parse_constant=lambda name: _no_number(name))


class Fact(NamedTuple):
    """One fact of a model's answer, validated."""

    text: str
    category: str
    tags: tuple[str, ...]
    importance: int | None
    evidence: str


class RefusedLine(NamedTuple):
    """A line that is no fact, and why; `was_tried` if it was meant as one."""

    line: str
    reason: str
    was_tried: bool = False


@dataclass(frozen=True)
class ParsedAnswer:
    """Parsed answer: every line is a fact or refused; `is_nothing` if it states that there is none."""

    facts: tuple[Fact, ...] = ()
    refused: tuple[RefusedLine, ...] = ()
    is_nothing: bool = False

    @property
    def lines(self) -> int:
        """Count the lines."""
        return len(self.facts) + len(self.refused)

    @property
    def needs_repair(self) -> bool:
        """Return whether to repeat the request: neither facts nor NONE, or a fact was refused."""
        return (not self.facts and not self.is_nothing) or any(line.was_tried for line in self.refused)


def read_answer(answer: str, window: str, room: int = MAX_FACTS) -> ParsedAnswer:
    """Parse an answer and check each line against its source text; at most `room` facts are taken."""
    facts: list[Fact] = []
    refused: list[RefusedLine] = []
    is_nothing = False
    quoted = same_text(window)
    told = _THOUGHTS.sub("", answer)
    for line, value in _lines(told):
        if value is None and line.strip(" .\"'`").upper() == NOTHING:
            is_nothing = True
            continue
        try:
            fact = _fact(value, quoted)
        except ValueError as error:
            refused.append(RefusedLine(line, str(error), line.startswith("{")))
            continue
        if len(facts) < room:
            facts.append(fact)
        else:
            refused.append(RefusedLine(line, f"more than the {MAX_FACTS} facts one part of a file may give"))
    return ParsedAnswer(tuple(facts), tuple(refused), is_nothing or _is_empty_list(told))


def _is_empty_list(answer: str) -> bool:
    return "".join(answer.split()) in ("[]", '{"facts":[]}')


def _lines(answer: str) -> Iterator[tuple[str, object]]:
    """Yield each line of an answer with its value, None if it is no JSON; one object may span lines."""
    place, end = 0, min(len(answer), MAX_ANSWER)
    while (begun := _BETWEEN.match(answer, place, end)) and begun.end() < end:
        place = begun.end()
        stop = answer.find("\n", place, end)
        line = answer[place : stop if stop >= 0 else end]
        value, after = _decoded(answer, place, end) if line.startswith("{") else (None, 0)
        if isinstance(value, dict) and isinstance(value.get("facts"), list) and len(value) == 1:
            yield from ((json.dumps(item), item) for item in value["facts"])
        elif after:
            yield answer[place:after], value
        elif not _FENCE.fullmatch(line.strip()):
            yield line.strip(), None
        place = after or place + len(line)
    if len(answer) > MAX_ANSWER:
        yield f"… {len(answer) - MAX_ANSWER:,} characters more", None


def _decoded(text: str, place: int, end: int) -> tuple[Any, int]:
    """Return the JSON value that begins at a place, and its end; an end of 0 if there is none."""
    try:
        value, after = _JSON.raw_decode(text, place)
    except (ValueError, RecursionError):
        return None, 0
    return (value, after) if after <= end else (None, 0)


def _no_number(name: str) -> None:
    raise ValueError(f"{name} is no number")


def _fact(value: object, quoted: str) -> Fact:
    """Validate one line; raise ValueError with the error that the model should correct."""
    if value is None:
        raise ValueError("it is no JSON object")
    if not isinstance(value, dict):
        raise ValueError("it is JSON, but no object")
    foreign = [key for key in value if key not in FIELDS]
    if foreign:
        raise ValueError(f"there is no field {foreign[0][:40]!r}; the fields are {', '.join(FIELDS)}")
    return Fact(
        text=_text(value.get("text")),
        category=_category(value.get("category")),
        tags=_tags(value.get("tags")),
        importance=_importance(value.get("importance")),
        evidence=_evidence(value.get("evidence"), quoted),
    )


def _text(value: object) -> str:
    text = _storable("text", value)
    if len(text) < MIN_TEXT:
        raise ValueError(f"text has fewer than {MIN_TEXT} characters")
    if len(text) > MAX_TEXT:
        raise ValueError(f"text has more than {MAX_TEXT} characters")
    return text


def _storable(name: str, value: object) -> str:
    if not isinstance(value, str):
        raise ValueError(f"{name} must be a text")
    if clean(value).replaced:
        raise ValueError(f"{name} holds a NUL or a lone surrogate")
    return " ".join(value.split())


def _category(value: object) -> str:
    known = value.strip().casefold() if isinstance(value, str) else ""
    return known if known in CATEGORIES else OTHER_CATEGORY


def _tags(value: object) -> tuple[str, ...]:
    if value is None:
        return ()
    if not isinstance(value, list) or len(value) > MAX_TAGS:
        raise ValueError(f"tags must be a list of at most {MAX_TAGS} texts")
    tags = tuple(dict.fromkeys(tag for item in value if (tag := _storable("a tag", item))))
    if any(len(tag) > MAX_TAG for tag in tags):
        raise ValueError(f"a tag has more than {MAX_TAG} characters")
    return tags


def _importance(value: object) -> int | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= 5:
        raise ValueError("importance must be a whole number from 1 to 5, or be left out")
    return value


def _evidence(value: object, quoted: str) -> str:
    evidence = _storable("evidence", value)
    wanted = same_text(evidence)
    if len(wanted) < min(MIN_EVIDENCE, len(quoted)):
        raise ValueError(f"evidence has fewer than {MIN_EVIDENCE} characters")
    if wanted not in quoted:
        raise ValueError("evidence does not stand in the text; copy it word for word")
    return evidence
