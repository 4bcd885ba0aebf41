"""The one JSON form of results, facts, spaces and extraction reports, for every interface."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from ..analysis.snippets import snippet
from ..types.expressions import is_several, label_of, meant

if TYPE_CHECKING:  # only objects that exist are serialized: their modules need not be loaded
    from ..config.load import Config
    from ..engine.facts import Added, Changed, Near
    from ..engine.memories import Forgotten
    from ..engine.spaces import Backlog, SpaceState
    from ..evaluation.compare import Agreement
    from ..evaluation.pins import Pin, PinCheck
    from ..evaluation.tuning import HeldOut, Tuning
    from ..ingest.extraction.extractor import Extraction, Learned
    from ..ingest.extraction.ledger import PartRecord
    from ..ingest.pipeline import Report
    from ..protocols import StoreStatus
    from ..providers.registry import Model
    from ..ranking.counterfactuals import Change, DroppedTerm
    from ..search.calibration import Calibration
    from ..search.contrast import Contrast
    from ..search.explain import Why
    from ..types.memory import Former, Memory, Notice
    from ..types.results import Hit, Results
    from ..types.trail import Step

FORMAT = 1
MARK = "**"
UNREMARKABLE = frozenset({"few-memories"})  # needs no action, and would appear under every answer


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
                "floor": part.floor,
                "reference": part.reference,
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
    """Format a timestamp in ISO 8601, UTC; None if it is outside the calendar."""
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
    """Return the explanation of a rank or an absence."""
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
    """Return the comparison of two memories for a query."""
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


def checkup(done: PinCheck) -> dict[str, Any]:
    """Return the outcome of a pin check."""
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
    """Return the result of a tuning run."""
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


def _judgement(judged: HeldOut) -> dict[str, Any]:
    return {
        "queries": judged.queries,
        "present": judged.present,
        "chosen": judged.chosen,
        **judged.compared._asdict(),
        "interval": judged.interval._asdict(),
    }


def report(done: Report) -> dict[str, Any]:
    """Return the report of an ingest."""
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
    """Return the status of a store."""
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
    """Return every setting with its origin."""
    return {
        "settings": {key: {"value": value, "origin": origin} for key, (value, origin) in values.values.items()},
        "workspace": str(values.workspace),
        "notices": notices(values.notices),
        "format": FORMAT,
    }


def models(
    known: Iterable[Model], in_use: Collection[str | None], vectors: Mapping[str, int], folder: str
) -> dict[str, Any]:
    """Return the available models."""
    listed = [
        {
            "name": model.name,
            "about": model.about,
            "in_use": model.name in in_use,
            "installed": model.installed,
            "needs": model.needs or None,
            "dimension": model.dimension or None,
            "languages": list(model.languages),
            "kind": model.kind,
            "licence": model.licence or None,
            "floor": model.floor,
            "bytes": model.bytes,
            "fetched_bytes": model.fetched_bytes,
            "space": model.space or None,
            "vectors": vectors.get(model.space, 0),
        }
        for model in known
    ]
    return {"models": listed, "folder": folder, "format": FORMAT}


def added(done: Added) -> dict[str, Any]:
    """Return the outcome of an added fact, and the fact."""
    return {
        **memory(done.memory),
        "outcome": done.outcome,
        "near": [near(one) for one in done.near],
        "notices": notices(done.notices),
    }


def near(one: Near) -> dict[str, Any]:
    """Return a near-duplicate fact."""
    return {"id": one.memory.id, "cosine": round(one.cosine, 6), "text": one.memory.text}


def shown(
    found: Memory, history: Sequence[Former], replaced: Sequence[Memory], told: Sequence[Notice] = ()
) -> dict[str, Any]:
    """Return one memory with its history, the facts it replaced, latest first, and its notices."""
    from ..engine.export import as_change
    from ..engine.memories import lost_past

    return {
        **memory(found),
        "history": [as_change(one) for one in history],
        "replaced": [{"id": one.id, "text": one.text} for one in replaced],
        "notices": notices((*told, *lost_past(history))),
    }


def changed(done: Changed, history: Sequence[Former], replaced: Sequence[Memory]) -> dict[str, Any]:
    """Return a changed fact with its history and notices."""
    from ..engine.memories import lost_past

    told = notices((*done.notices, *lost_past(history)))
    return {**shown(done.memory, history, replaced), "notices": told}


def forgotten(ids: Sequence[str], scope: str | None, done: Forgotten) -> dict[str, Any]:
    """Return the ids or the scope that were forgotten."""
    return {
        "forgotten": list(ids),
        "scope": scope,
        "memories": done.memories,
        "remains": list(done.remains),
        "format": FORMAT,
    }


def spaces(states: Iterable[SpaceState]) -> list[dict[str, Any]]:
    """Return the spaces of a store."""
    return [
        {
            "space": state.name,
            "model": state.provider or None,
            "role": state.role,
            "vectors": state.vectors,
            "waiting": state.waiting,
            "error": state.error or None,
        }
        for state in states
    ]


def backlog(behind: Backlog) -> dict[str, Any]:
    """Return the embedding backlog, with its last error."""
    return {
        "waiting": behind.waiting,
        "refused": behind.refused,
        "attempts": behind.attempts,
        "error": behind.error or None,
        "next_try": moment(behind.next_try),
        "nowhere": behind.nowhere,
    }


def agreement(found: Agreement | None) -> dict[str, Any] | None:
    """Return the agreement of two models on the same queries."""
    if found is None:
        return None
    return {
        "questions": found.questions,
        "overlap": round(found.overlap, 4),
        "pins": len(found.after.checked) if found.after is not None else 0,
        "lost": [{**pin(one.pin), "rank": one.rank, "why": one.why} for one in found.lost],
    }


def extraction(done: Extraction) -> dict[str, Any]:
    """Return the report of an extraction or of its dry run."""
    tokens = done.tokens
    return {
        "dry_run": done.dry_run,
        "plan": done.plan,
        "model": done.model or None,
        "files": done.files,
        "chunks": {
            "total": done.chunks,
            "done_before": done.done_before,
            "waiting": done.waiting,
            "asked": done.asked,
            "failed": len(done.failed),
            "left": done.left,
        },
        "calls": done.calls,
        "tokens": {"prompt": tokens.prompt, "completion": tokens.completion, "estimated": tokens.is_estimate},
        "estimated_tokens": done.estimated_tokens,
        "lines": {
            "total": done.lines,
            "stored": len(done.stored),
            "known": len(done.known),
            "refused": done.refused_lines,
        },
        "facts": [_learned(fact) for fact in done.stored],
        "known": [line._asdict() for line in done.known],
        "refused": [line._asdict() for line in done.refused],
        "failed": [part._asdict() for part in done.failed],
        "renewed": done.renewed,
        "fading": [memory(fact) for fact in done.fading],
        "skipped": [skipped._asdict() for skipped in done.skipped],
        "remarks": [{"path": path, "remark": remark} for path, remark in done.remarks],
        "stopped": done.stopped or None,
        "format": FORMAT,
    }


def left_out(records: Sequence[PartRecord]) -> dict[str, Any]:
    """Return the records of lines and chunks that earlier extractions did not store."""
    return {"chunks": [_record(record) for record in records], "format": FORMAT}


def _learned(fact: Learned) -> dict[str, Any]:
    return {**memory(fact.memory), "evidence": fact.evidence}


def _record(record: PartRecord) -> dict[str, Any]:
    return {
        "path": record.path,
        "start_line": record.start_line,
        "end_line": record.end_line,
        "model": record.model,
        "outcome": record.outcome,
        "reason": record.reason,
        "at": moment(record.at),
        "lines": [line._asdict() for line in record.left_out],
        "more_lines": record.more_left_out,
    }
