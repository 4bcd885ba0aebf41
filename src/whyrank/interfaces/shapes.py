"""The one JSON shape of every answer; versioned by `format`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from ..analysis.snippets import snippet
from ..expressions import is_several, label_of, meant

if TYPE_CHECKING:  # a shape is made of what there is: who has none of it need not load it
    from ..config import Config
    from ..embedding.models import Model
    from ..evaluation.pinboard import Checkup
    from ..evaluation.pins import Pin
    from ..evaluation.tuning import Judgement, Tuning
    from ..hits import Hit, Results
    from ..ingest.ingestor import Report
    from ..ports import StoreStatus
    from ..ranking.counterfactuals import Change, DroppedTerm
    from ..search.calibration import Calibration
    from ..search.contrast import Contrast
    from ..search.why import Why
    from ..trail import Step
    from ..types import Memory, Notice

FORMAT = 1
MARK = "**"
UNREMARKABLE = frozenset({"few-memories"})  # nothing is to be done about it, and it would stand under every answer


def results(answer: Results, *, explain: bool = False) -> dict[str, Any]:
    """Return the answer to a search; with `explain`, every trail and every dropped candidate."""
    data: dict[str, Any] = {
        "query": answer.query,
        "verdict": answer.verdict,
        "recipe": answer.recipe,
        "notices": notices(answer.notices),
        "hits": [hit(found, answer.analysis.terms, explain=explain) for found in answer.hits],
        "timings": {stage: round(spent, 3) for stage, spent in answer.timings.items()},
        "format": FORMAT,
    }
    if explain:
        data["analysis"] = {
            "language": answer.analysis.language,
            "kind": answer.analysis.kind,
            "terms": [label_of(term) for term in answer.analysis.terms],
            "beginnings": {label_of(term): meant(term) for term in answer.analysis.terms if is_several(term)},
            "entities": list(answer.analysis.entities),
            "repeats": dict(answer.analysis.repeats),
        }
        data["dropped"] = [hit(found, answer.analysis.terms, explain=True) for found in answer.dropped]
    return data


def hit(found: Hit, terms: tuple[str, ...], *, explain: bool) -> dict[str, Any]:
    """Return one hit."""
    data = {
        "id": found.id,
        "score": found.score,
        "tier": found.tier,
        "confidence": found.confidence,
        **_place_and_text(found.memory),
        "trust": found.memory.trust,
        "snippet": snippet(found.memory.text, terms).marked(MARK, MARK),
        "also": [str(memory.source) for memory in found.also],
    }
    if explain:
        data["trail"] = [step(taken) for taken in found.trail]
    return data


def step(taken: Step) -> dict[str, Any]:
    """Return one step of a trail."""
    return {
        "stage": taken.stage,
        "op": taken.op,
        "value": taken.value,
        "why": taken.why,
        "parts": [
            {
                "signal": part.signal,
                "value": part.value,
                "weight": part.weight,
                "normalised": part.normalised,
                "raw": part.raw,
                "rank": part.rank,
                "best": part.best,
                "coverage": part.coverage,
                "terms": [term._asdict() for term in part.terms],
            }
            for part in taken.parts
        ],
    }


def memory(found: Memory) -> dict[str, Any]:
    """Return one memory whole."""
    return {
        "id": found.id,
        **_place_and_text(found),
        "name": found.name,
        "slug": found.slug,
        "aliases": list(found.aliases),
        "summary": found.summary,
        "category": found.category,
        "entities": list(found.entities),
        "importance": found.importance,
        "created": moment(found.created),
        "decay": found.decay or None,
        "valid_from": moment(found.valid_from),
        "valid_until": moment(found.valid_until),
        "expires": moment(found.expires),
        "supersedes": found.supersedes,
        "superseded_by": found.superseded_by,
        "superseded_at": moment(found.superseded_at),
        "recalls": found.recalls,
        "recalled": moment(found.recalled),
        "trust": found.trust,
        "session": found.session,
        "speaker": found.speaker,
        "format": FORMAT,
    }


def _place_and_text(found: Memory) -> dict[str, Any]:
    source = found.source
    has_place = source is not None and bool(source.path)
    return {
        "text": found.text,
        "title": found.title,
        "headings": list(found.headings),
        "path": source.path if source and has_place else None,
        "start_line": (source.start_line or None) if source and has_place else None,
        "end_line": (source.end_line or None) if source and has_place else None,
        "kind": found.kind,
        "scope": str(found.scope),
        "tags": list(found.tags),
        "date": moment(found.date),
    }


def moment(seconds: float | None) -> str | None:
    """Return a moment in ISO 8601, UTC; one that no calendar holds as nothing."""
    if seconds is None:
        return None
    try:
        return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
    except (OverflowError, ValueError, OSError):
        return None


def notices(said: Iterable[Notice]) -> list[dict[str, str]]:
    """Return notices."""
    return [{"code": notice.code, "message": notice.message} for notice in said]


def why(answer: Why) -> dict[str, Any]:
    """Return the answer to "why"."""
    return {
        "query": answer.query,
        "id": answer.memory.id,
        "outcome": answer.outcome,
        "summary": answer.summary,
        "details": list(answer.details),
        "rank": answer.rank,
        "score": answer.hit.score if answer.hit else None,
        "trail": [step(taken) for taken in answer.hit.trail] if answer.hit else [],
        "format": FORMAT,
    }


def contrast(answer: Contrast) -> dict[str, Any]:
    """Return the answer to "why this one and not that one"."""
    return {
        "query": answer.query,
        "id": answer.memory.id,
        "over": answer.over.id,
        "outcome": answer.outcome,
        "summary": answer.summary,
        "first": answer.first,
        "changes": [_change(change) for change in answer.changes],
        "details": list(answer.details),
        "notices": notices(answer.notices),
        "format": FORMAT,
    }


def pin(held: Pin) -> dict[str, Any]:
    """Return one pin."""
    return {
        "query": held.query,
        "scopes": list(held.scopes),
        "within": held.within,
        "id": held.id or None,
        "path": held.path or None,
        "line": held.line or None,
        "headings": list(held.headings),
    }


def checkup(done: Checkup) -> dict[str, Any]:
    """Return what became of the pins."""
    return {
        "pins": len(done.checked),
        "kept": done.count("kept"),
        "moved": done.count("moved"),
        "lost": done.count("lost"),
        "checked": [
            {
                **pin(one.pin),
                "status": one.status,
                "rank": one.rank,
                "now": one.memory.id if one.memory else None,
                "why": one.why,
            }
            for one in done.checked
        ],
        "format": FORMAT,
    }


def _change(change: Change | DroppedTerm) -> dict[str, Any]:
    from ..ranking.counterfactuals import DroppedTerm

    if isinstance(change, DroppedTerm):
        return {"kind": "term", "term": change.term, "words": list(change.words), "text": str(change)}
    return {
        "kind": "setting",
        "setting": change.setting,
        "key": change.key,
        "before": change.before,
        "after": change.after,
        "text": str(change),
    }


def tuning(found: Tuning) -> dict[str, Any]:
    """Return what a tuning run found."""
    return {
        "decision": found.decision,
        "reason": found.reason,
        "present": found.present._asdict(),
        "changes": found.changes,
        "fits": [
            {
                "setting": f"ranking.{fit.setting}",
                "decision": fit.decision,
                "reason": fit.reason,
                "best": getattr(fit.best, fit.setting),
                "folds": [getattr(choice, fit.setting) for choice in fit.folds],
                "witnesses": _judgement(fit.witnesses) if fit.witnesses else None,
                "kinds": {judged.kind: _judgement(judged) for judged in fit.kinds},
            }
            for fit in found.fits
        ],
        "choices": [
            {**choice._asdict(), "ndcg@10": mean, "interval": {"low": low, "high": high}}
            for choice, (mean, low, high) in found.means().items()
        ],
        "queries": len(found.trials),
        "seed": found.seed,
        "format": FORMAT,
    }


def _judgement(judged: Judgement) -> dict[str, Any]:
    return {
        "queries": judged.queries,
        "present": judged.present,
        "chosen": judged.chosen,
        **judged.compared._asdict(),
        "interval": judged.interval._asdict(),
    }


def report(done: Report) -> dict[str, Any]:
    """Return what an ingest did."""
    return {
        "dry_run": done.dry_run,
        "files": {"unchanged": done.unchanged, **done.files},
        "chunks": done.chunks,
        "removed": done.removed,
        "embedded": done.embedded,
        "without_vector": done.without_vector,
        "plans": [
            {"path": path, "action": action, "renamed_from": done.renamed.get(path)} for path, action in done.plans
        ],
        "skipped": [{"path": path, "reason": reason, "failed": failed} for path, reason, failed in done.skipped],
        "remarks": [{"path": path, "remark": remark} for path, remark in done.remarks],
        "format": FORMAT,
    }


def calibration(made: Calibration) -> dict[str, Any]:
    """Return one calibration."""
    bars = {"evidence": made.both, "words": made.words, "cosine": made.cosine, "coverage": made.coverage}
    return {
        "scopes": list(made.scopes),
        "space": made.space or None,
        "memories": made.memories,
        "made": moment(made.made),
        "questions": {"own": made.own, "foreign": made.foreign},
        "languages": list(made.languages),
        "thresholds": {
            name: {key: round(value, 4) for key, value in bar._asdict().items()} if bar else None
            for name, bar in bars.items()
        },
    }


def status(store: StoreStatus, space: str, calibrations: Iterable[Calibration] = ()) -> dict[str, Any]:
    """Return what a store holds."""
    return {
        "store": store.location,
        "schema": store.schema,
        "engine": store.engine,
        "keyword_index": store.keyword_index,
        "memories": store.memories,
        "files": store.files,
        "scopes": dict(store.scopes),
        "space": space or None,
        "spaces": dict(store.spaces),
        "without_vector": store.without_vector,
        "bytes": store.bytes,
        "free_bytes": store.free_bytes,
        "ballast_bytes": store.ballast_bytes,
        "caches": dict(store.caches),
        "calibrations": [calibration(made) for made in calibrations],
        "format": FORMAT,
    }


def config(values: Config) -> dict[str, Any]:
    """Return every setting with where it came from."""
    return {
        "settings": {key: {"value": value, "origin": origin} for key, (value, origin) in values.values.items()},
        "workspace": str(values.workspace),
        "notices": notices(values.notices),
        "format": FORMAT,
    }


def models(known: Iterable[Model], in_use: str, vectors: Mapping[str, int], folder: str) -> dict[str, Any]:
    """Return what models there are."""
    listed = [
        {
            "name": model.name,
            "about": model.about,
            "in_use": model.name == in_use,
            "installed": model.installed,
            "needs": model.needs or None,
            "dimension": model.dimension or None,
            "languages": list(model.languages),
            "bytes": model.bytes,
            "space": model.space or None,
            "vectors": vectors.get(model.space, 0),
        }
        for model in known
    ]
    return {"models": listed, "folder": folder, "format": FORMAT}
