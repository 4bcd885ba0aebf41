"""Law 1 over JSON alone: what does not add up in an explained answer, whatever interface it came through."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

TERM_FIELDS = ("term", "field", "context", "value")


def folded(values: Iterable[float]) -> float:
    """Add from left to right; the sum of Python 3.12 compensates rounding errors, and a trail does not."""
    total = 0.0
    for value in values:
        total += value
    return total


def replayed(trail: Iterable[dict[str, Any]]) -> tuple[int, float]:
    """Return the tier and the score that the steps of a trail lead to."""
    tier, score = 0, 0.0
    for step in trail:
        match step["op"]:
            case "set":
                score = step["value"]
            case "add":
                score += step["value"]
            case "scale":
                score *= step["value"]
            case "lift":
                tier += int(step["value"])
            case other:
                assert other in ("note", "drop")
    return tier, score


def faults(trail: list[dict[str, Any]]) -> Iterator[str]:
    """Yield every step that its parts do not add up to, and every raw score that its terms do not."""
    for step in trail:
        if step["parts"] and folded(part["value"] for part in step["parts"]) != step["value"]:
            yield f"the parts of {step['stage']} come to another number than {step['value']!r}"
        for part in step["parts"]:
            if part["value"] != part["weight"] * part["normalised"]:
                yield f"{part['signal']} is not {part['weight']!r} × {part['normalised']!r}"
            yield from _term_faults(part)


def _term_faults(part: dict[str, Any]) -> Iterator[str]:
    if part["signal"].partition(":")[0] != "keyword":
        if part["terms"]:
            yield f"{part['signal']} has terms"
        return
    if any(tuple(term) != TERM_FIELDS for term in part["terms"]):
        yield f"terms are no records: {part['terms']}"
        return
    total = folded(term["value"] for term in part["terms"])
    if total != (part["raw"] or 0.0):
        yield f"terms come to {total!r}, the raw score is {part['raw']!r}: {part['terms']}"


def faults_of_hits(answer: dict[str, Any]) -> list[str]:
    """Return all that does not add up in the hits and the dropped candidates of an explained search."""
    found = []
    for hit in (*answer["hits"], *answer["dropped"]):
        if replayed(hit["trail"]) != (hit["tier"], hit["score"]):
            found.append(f"{hit['id']}: {replayed(hit['trail'])} is not {hit['tier'], hit['score']}")
        found += [f"{hit['id']}: {fault}" for fault in faults(hit["trail"])]
    return found


def shared_names(answer: dict[str, Any]) -> int:
    """Count the keyword parts in which two terms have one name and differ by field or context."""
    hits = (*answer["hits"], *answer["dropped"])
    parts = [part for hit in hits for step in hit["trail"] for part in step["parts"]]
    return sum(len({term["term"] for term in part["terms"]}) < len(part["terms"]) for part in parts)
