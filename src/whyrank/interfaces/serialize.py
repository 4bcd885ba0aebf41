"""The one JSON form of results, facts, spaces and extraction reports, for every interface."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from ..analysis.snippets import snippet
from ..types.query import is_several, label_of, meant
from .errors import FORMAT

if TYPE_CHECKING:  # only objects that exist are serialized: their modules need not be loaded
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from ..config.load import Config
    from ..engine.recall import RecallTrail, Reminder
    from ..engine.recall_log import Citation, RecallEntry
    from ..engine.records import Added, Backlog, Changed, Forgotten, SpaceState
    from ..evaluation.compare import Agreement
    from ..evaluation.pins import Pin, PinCheck
    from ..evaluation.tuning import Fit, HeldOut, Tuning
    from ..ingest.extraction.extractor import Extraction
    from ..ingest.extraction.ledger import PartRecord
    from ..ingest.pipeline import Report
    from ..protocols import StoreStatus
    from ..providers.registry import Model
    from ..ranking.counterfactuals import Change, DroppedTerm
    from ..search.confidence import Calibration
    from ..search.explain import Contrast, Why
    from ..types.memory import Former, Memory, Notice
    from ..types.results import Hit, Results
    from ..types.trail import Part, Step

MARK = "**"
UNREMARKABLE = frozenset({"few-memories"})  # needs no action, and would appear under every answer


def fields(one: object, names: str) -> dict[str, Any]:
    """Return the named fields of a value; tuples as lists."""
    values = ((name, getattr(one, name)) for name in names.split())
    return {name: list(value) if type(value) is tuple else value for name, value in values}


def results(answer: Results, *, explain: bool = False) -> dict[str, Any]:
    """Return the answer to a search; with `explain`, every trail and every dropped candidate."""
    analysis = answer.analysis
    data: dict[str, Any] = {
        **fields(answer, "query verdict recipe"),
        "notices": notices(answer.notices),
        "hits": [hit(found, analysis.terms, explain=explain) for found in answer.hits],
        "timings": {stage: round(spent, 3) for stage, spent in answer.timings.items()},
        "format": FORMAT,
    }
    if explain:
        data["analysis"] = {
            **fields(analysis, "language kind"),
            "terms": [label_of(term) for term in analysis.terms],
            "beginnings": {label_of(term): meant(term) for term in analysis.terms if is_several(term)},
            "entities": list(analysis.entities),
            "repeats": dict(analysis.repeats),
        }
        data["dropped"] = [hit(found, analysis.terms, explain=True) for found in answer.dropped]
    return data


def hit(found: Hit, terms: tuple[str, ...], *, explain: bool) -> dict[str, Any]:
    """Return one hit."""
    data = {
        **fields(found, "id score tier confidence"),
        **_place_and_text(found.memory),
        "trust": found.memory.trust,
        "snippet": snippet(found.memory.text, terms).marked(MARK, MARK),
        "also": [str(memory.source) for memory in found.also],
    }
    return {**data, "trail": [step(taken) for taken in found.trail]} if explain else data


def reminder(given: Reminder) -> dict[str, Any]:
    """Return what an agent is to be reminded of."""
    return {
        **fields(given, "id text verdict reason tokens"),
        "memories": [_citation(one) for one in given.memories],
        "left_out": [one._asdict() for one in given.left_out],
        "notices": notices(given.notices),
        "format": FORMAT,
    }


def _citation(one: Citation) -> dict[str, Any]:
    return fields(one, "id citation confidence score")


def recall_entry(entry: RecallEntry) -> dict[str, Any]:
    """Return one line of the log of recalls."""
    return {
        **fields(entry, "id session scopes host query verdict reason budget tokens milliseconds"),
        "time": moment(entry.time),
        "given": [_citation(one) for one in entry.given],
        "left_out": [one._asdict() for one in entry.left_out],
    }


def recall_trail(told: RecallTrail) -> dict[str, Any]:
    """Return a recall with the trails of what it gave, as a search of today computes them."""
    memories = [
        {
            **_citation(one.given),
            "score_now": None if one.hit is None else one.hit.score,
            "trail": [] if one.hit is None else [step(taken) for taken in one.hit.trail],
        }
        for one in told.memories
    ]
    return {"recall": recall_entry(told.entry), "memories": memories, "format": FORMAT}


def step(taken: Step) -> dict[str, Any]:
    """Return one step of a trail."""
    return {**fields(taken, "stage op value why"), "parts": [_part(part) for part in taken.parts]}


def _part(part: Part) -> dict[str, Any]:
    return {
        **fields(part, "signal value weight normalised raw rank best floor reference coverage"),
        "terms": [term._asdict() for term in part.terms],
    }


def memory(found: Memory) -> dict[str, Any]:
    """Return one memory whole."""
    return {
        "id": found.id,
        **_place_and_text(found),
        **fields(found, "name slug aliases summary category entities importance created decay"),
        "decay": found.decay or None,
        **fields(found, "valid_from valid_until expires supersedes superseded_by superseded_at recalls recalled"),
        **{name: moment(getattr(found, name)) for name in _MOMENTS},
        **fields(found, "trust session speaker subject attribute"),
        "format": FORMAT,
    }


_MOMENTS = ("created", "valid_from", "valid_until", "expires", "superseded_at", "recalled")


def _place_and_text(found: Memory) -> dict[str, Any]:
    return {
        "text": found.text,
        "title": found.title,
        "headings": list(found.headings),
        **location(found),
        **fields(found, "kind scope tags date"),
        "metadata": dict(found.metadata),
        "scope": str(found.scope),
        "date": moment(found.date),
    }


def location(found: Memory) -> dict[str, Any]:
    """Return the path and the lines a memory comes from; None where it has none."""
    source = found.source
    if source is None or not source.path:
        return {"path": None, "start_line": None, "end_line": None}
    return {"path": source.path, "start_line": source.start_line or None, "end_line": source.end_line or None}


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
        **fields(answer, "outcome summary details rank"),
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
        **fields(answer, "outcome summary first"),
        "changes": [_change(change) for change in answer.changes],
        "details": list(answer.details),
        "notices": notices(answer.notices),
        "format": FORMAT,
    }


def pin(held: Pin) -> dict[str, Any]:
    """Return one pin."""
    absent = {name: getattr(held, name) or None for name in ("id", "path", "line")}
    return {**fields(held, "query scopes within"), **absent, "headings": list(held.headings)}


def checkup(done: PinCheck) -> dict[str, Any]:
    """Return the outcome of a pin check."""
    checked = [
        {**pin(one.pin), **fields(one, "status rank"), "now": one.memory.id if one.memory else None, "why": one.why}
        for one in done.checked
    ]
    counts = {status: done.count(status) for status in ("kept", "moved", "lost")}
    return {"pins": len(done.checked), **counts, "checked": checked, "format": FORMAT}


def _change(change: Change | DroppedTerm) -> dict[str, Any]:
    from ..ranking.counterfactuals import DroppedTerm

    if isinstance(change, DroppedTerm):
        return {"kind": "term", **fields(change, "term words"), "text": str(change)}
    return {"kind": "setting", **fields(change, "setting key before after"), "text": str(change)}


def tuning(found: Tuning) -> dict[str, Any]:
    """Return the result of a tuning run."""
    return {
        **fields(found, "decision reason"),
        "present": found.present._asdict(),
        "changes": found.changes,
        "fits": [_fit(fit) for fit in found.fits],
        "choices": [
            {**choice._asdict(), "ndcg@10": mean, "interval": {"low": low, "high": high}}
            for choice, (mean, low, high) in found.means().items()
        ],
        "queries": len(found.trials),
        "seed": found.seed,
        "format": FORMAT,
    }


def _fit(fit: Fit) -> dict[str, Any]:
    return {
        "setting": f"ranking.{fit.setting}",
        **fields(fit, "decision reason"),
        "best": getattr(fit.best, fit.setting),
        "folds": [getattr(choice, fit.setting) for choice in fit.folds],
        "witnesses": _judgement(fit.witnesses) if fit.witnesses else None,
        "kinds": {judged.kind: _judgement(judged) for judged in fit.kinds},
    }


def _judgement(judged: HeldOut) -> dict[str, Any]:
    told = {**fields(judged, "queries present chosen"), **judged.compared._asdict()}
    return {**told, "interval": judged.interval._asdict()}


def report(done: Report) -> dict[str, Any]:
    """Return the report of an ingest."""
    return {
        "dry_run": done.dry_run,
        "files": {"unchanged": done.unchanged, **done.files},
        **fields(done, "chunks removed embedded without_vector"),
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
        **fields(store, "schema engine keyword_index memories files"),
        "scopes": dict(store.scopes),
        "space": space or None,
        "spaces": dict(store.spaces),
        **fields(store, "without_vector bytes free_bytes ballast_bytes"),
        "caches": dict(store.caches),
        "server": dict(store.server),
        "calibrations": [calibration(made) for made in calibrations],
        "format": FORMAT,
    }


def config(values: Config) -> dict[str, Any]:
    """Return every setting with its origin."""
    return {
        "settings": {key: {"value": one.shown, "origin": one.origin} for key, one in values.values.items()},
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
            **fields(model, "name about"),
            "in_use": model.name in in_use,
            "installed": model.installed,
            "needs": model.needs or None,
            "dimension": model.dimension or None,
            **fields(model, "languages kind"),
            "licence": model.licence or None,
            **fields(model, "floor bytes fetched_bytes"),
            "space": model.space or None,
            "vectors": vectors.get(model.space, 0),
        }
        for model in known
    ]
    return {"models": listed, "folder": folder, "format": FORMAT}


def added(done: Added) -> dict[str, Any]:
    """Return the outcome of an added fact, and the fact."""
    near = [{"id": one.memory.id, "cosine": round(one.cosine, 6), "text": one.memory.text} for one in done.near]
    return {**memory(done.memory), "outcome": done.outcome, "near": near, "notices": notices(done.notices)}


def shown(
    found: Memory, history: Sequence[Former], replaced: Sequence[Memory], told: Sequence[Notice] = ()
) -> dict[str, Any]:
    """Return one memory with its history, the facts it replaced, latest first, and its notices."""
    from ..engine.records import as_change, lost_past

    return {
        **memory(found),
        "history": [as_change(one) for one in history],
        "replaced": [{"id": one.id, "text": one.text} for one in replaced],
        "notices": notices((*told, *lost_past(history))),
    }


def changed(done: Changed, history: Sequence[Former], replaced: Sequence[Memory]) -> dict[str, Any]:
    """Return a changed fact with its history and notices."""
    from ..engine.records import lost_past

    told = notices((*done.notices, *lost_past(history)))
    return {**shown(done.memory, history, replaced), "notices": told}


def forgotten(ids: Sequence[str], scope: str | None, done: Forgotten) -> dict[str, Any]:
    """Return the ids or the scope that were forgotten."""
    return {"forgotten": list(ids), "scope": scope, **fields(done, "memories remains"), "format": FORMAT}


def spaces(states: Iterable[SpaceState]) -> list[dict[str, Any]]:
    """Return the spaces of a store."""
    return [
        {"space": one.name, "model": one.provider or None, **fields(one, "role vectors waiting"),
         "error": one.error or None}
        for one in states
    ]  # fmt: skip


def backlog(behind: Backlog) -> dict[str, Any]:
    """Return the embedding backlog, with its last error."""
    return {**behind._asdict(), "error": behind.error or None, "next_try": moment(behind.next_try)}


def agreement(found: Agreement | None) -> dict[str, Any] | None:
    """Return the agreement of two models on the same queries."""
    if found is None:
        return None
    return {
        "questions": found.questions,
        "overlap": round(found.overlap, 4),
        "pins": len(found.after.checked) if found.after is not None else 0,
        "lost": [{**pin(one.pin), **fields(one, "rank why")} for one in found.lost],
    }


def extraction(done: Extraction) -> dict[str, Any]:
    """Return the report of an extraction or of its dry run."""
    tokens = done.tokens
    counts = {"stored": len(done.stored), "known": len(done.known), "refused": done.refused_lines}
    return {
        **fields(done, "dry_run plan"),
        "model": done.model or None,
        "files": done.files,
        "chunks": {
            "total": done.chunks, **fields(done, "done_before waiting asked"), "failed": len(done.failed),
            "left": done.left,
        },
        "calls": done.calls,
        "tokens": {"prompt": tokens.prompt, "completion": tokens.completion, "estimated": tokens.is_estimate},
        "estimated_tokens": done.estimated_tokens,
        "lines": {"total": done.lines, **counts},
        "facts": [{**memory(fact.memory), "evidence": fact.evidence} for fact in done.stored],
        **{name: [one._asdict() for one in getattr(done, name)] for name in ("known", "refused", "failed")},
        "renewed": done.renewed,
        "fading": [memory(fact) for fact in done.fading],
        "skipped": [skipped._asdict() for skipped in done.skipped],
        "remarks": [{"path": path, "remark": remark} for path, remark in done.remarks],
        "stopped": done.stopped or None,
        "format": FORMAT,
    }  # fmt: skip


def left_out(records: Sequence[PartRecord]) -> dict[str, Any]:
    """Return the records of lines and chunks that earlier extractions did not store."""
    return {"chunks": [_record(record) for record in records], "format": FORMAT}


def _record(record: PartRecord) -> dict[str, Any]:
    return {
        **fields(record, "path start_line end_line model outcome reason"),
        "at": moment(record.at),
        "lines": [line._asdict() for line in record.left_out],
        "more_lines": record.more_left_out,
    }
