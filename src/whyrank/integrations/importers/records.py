"""Records that importers make: facts and turns with checked fields, vectors, and a report on the rest."""

from __future__ import annotations

import hashlib
import json
import time
from collections import Counter
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple, ParamSpec

import numpy as np

from ...analysis.dates import parse_date
from ...analysis.document import content_hash, id_for
from ...analysis.normalize import clean, same_text
from ...config.legacy import RETIRED, renewed
from ...config.settings import read as read_setting
from ...engine.arguments import fact_text, scope_of
from ...engine.export import Item, Record
from ...engine.facts import read_fields, said, with_fields
from ...errors import ConfigError
from ...types.memory import CATEGORIES, GLOBAL, Memory, MemoryId, Scope, Source

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from pathlib import Path

    from ...protocols import Vector

P = ParamSpec("P")
_KEPT_VECTORS = 4_096  # of records that are about to be written
_CATEGORIES = {"edict": "rule"}  # of other systems, with one of ours
_MOST_NAMED = 50  # fields of other systems that are named in a report
_USUAL_TRUST = "ingested"


class MappedSetting(NamedTuple):
    """A setting of another system: what it becomes here (nothing if it has no effect), and why."""

    name: str
    value: Any
    becomes: Mapping[str, Any]
    reason: str


class Remark(NamedTuple):
    """Something a user should know about a place."""

    place: str
    text: str


class KnownVectors:
    """Vectors of another system: taken over where model, dimension, prompt and text are those of our space."""

    def __init__(self, space: str = "", dimension: int | None = None) -> None:
        self._space = space
        self._dimension = dimension
        self._known: dict[str, Vector] = {}
        self._lookups: list[Callable[[str], Vector | None]] = []
        self.offered = 0
        self.taken = 0
        self.refused: Counter[str] = Counter()  # by the reason

    def refusal_of_all(self) -> str:
        """Return why no vectors at all can be used; nothing if some may."""
        return "" if self._space else "this store has no embedder"

    def refusal(self, model: str, dimension: int) -> str:
        """Return why vectors of a model cannot be used in our space; nothing if they can."""
        if reason := self.refusal_of_all():
            return reason
        name, _, rest = self._space.partition("@")
        _, size, prompt = f"{rest}//".split("/")[:3]
        if not model:
            return "their model is not known"
        if model.casefold().rpartition("/")[2] != name.casefold().rpartition("/")[2]:
            return f"they are of {model}, and this store embeds with {name}"
        if prompt != "no-prompt":
            return f"this store embeds with a prompt ({prompt})"
        ours = int(size) if size.isdecimal() else self._dimension
        if ours not in (None, dimension):
            return f"they have {dimension} dimensions, and this store {ours}"
        return ""

    def offer(self, model: str, text: str, row: object) -> None:
        """Keep a vector of a text that is about to be stored, if it fits our space."""
        self.offered += 1
        vector = vector_of(row)
        reason = "they are not valid" if vector is None else self.refusal(model, len(vector))
        if reason or vector is None:
            self.refused[reason] += 1
            return
        self._known[text] = vector
        while len(self._known) > _KEPT_VECTORS:
            del self._known[next(iter(self._known))]

    def look_up(self, lookup: Callable[[str], Vector | None]) -> None:
        """Ask `lookup` for the vectors of texts too."""
        self._lookups.append(lookup)

    def find(self, texts: Sequence[str]) -> dict[str, Vector]:
        """Return the known vectors of texts."""
        found: dict[str, Vector] = {}
        for text in dict.fromkeys(texts):
            vector = self._known.get(text)
            for lookup in self._lookups if vector is None else ():
                vector = lookup(text) if vector is None else vector
            if vector is not None:
                found[text] = vector
        self.taken += len(found)
        return found


def vector_of(row: object) -> Vector | None:
    """Read a vector of another system: a list, its JSON, or float32 in bytes; None if it is not one."""
    try:
        if isinstance(row, bytes):
            row = json.loads(row) if row[:1] == b"[" else np.frombuffer(row, "<f4")
        elif isinstance(row, str):
            row = json.loads(row)
        vector = np.asarray(row, np.float32)
    except (ValueError, TypeError, OverflowError):
        return None
    is_sound = vector.ndim == 1 and vector.size > 0 and bool(np.isfinite(vector).all()) and bool(vector.any())
    return vector if is_sound else None


@dataclass
class Findings:
    """Where an importer reports what it found beside records."""

    vectors: KnownVectors = field(default_factory=KnownVectors)
    now: float = field(default_factory=time.time)
    settings: list[MappedSetting] = field(default_factory=list)
    remarks: list[Remark] = field(default_factory=list)
    unknown: Counter[str] = field(default_factory=Counter)  # fields that are not read, by name
    left_out: list[tuple[str, str]] = field(default_factory=list)  # places that are readable and not imported
    unread: list[tuple[str, str]] = field(default_factory=list)  # places that cannot be read
    stack: ExitStack = field(default_factory=ExitStack)  # closed when the import has ended

    def remark(self, place: str, text: str) -> None:
        """Report something about a place, once."""
        if (one := Remark(place, text)) not in self.remarks:
            self.remarks.append(one)

    def name_unknown(self, kind: str, given: Iterable[str], known: frozenset[str]) -> None:
        """Count the fields of a record that are not read."""
        for name in set(given) - known:
            if len(self.unknown) < _MOST_NAMED or f"{kind}.{name}" in self.unknown:
                self.unknown[f"{kind}.{name}"] += 1


class Numbering:
    """Ids of facts from their texts: of several with one text, those that live are the same fact."""

    def __init__(self) -> None:
        self._dead: Counter[bytes] = Counter()
        self._living: dict[bytes, int] = {}

    def identity(self, scope: Scope, text: str, is_living: bool = True) -> MemoryId:
        """Return the id of the next fact with a text."""
        told = f"{scope}\n{same_text(text)}".encode("utf-8", errors="replace")
        key = hashlib.blake2b(told, digest_size=16).digest()
        if is_living and key in self._living:
            number = self._living[key]
        else:
            number = self._dead[key]
            self._dead[key] += 1
            if is_living:
                self._living[key] = number
        return id_for(scope, "", same_text(text), number)


def fact(
    text: object,
    scope: Scope,
    created: float,
    fields: Mapping[str, Any],
    numbering: Numbering,
    *,
    is_living: bool = True,
    **more: Any,
) -> Memory:
    """Return a fact with checked fields; raise ConfigError for what no fact can have."""
    if not isinstance(text, str):
        raise ConfigError(f"its text is {text!r:.60}, which is not a text")
    said_text = fact_text(clean(text).text)
    identity = numbering.identity(scope, said_text, is_living)
    source = Source("", content_hash=content_hash(said_text))
    given = said(read_fields(fields))
    blank = Memory(identity, said_text, scope=scope, source=source, created=created, date=created)
    return replace(with_fields(blank, {"trust": _USUAL_TRUST, **given}, created), **more)


class Turns:
    """Turns of one conversation, in their order."""

    def __init__(self, path: str, scope: Scope, title: str, created: float) -> None:
        self._path = clean(path).text
        self._scope = scope
        self._title = clean(title).text.strip()[:500]
        self._created = created
        self._occurrences: Counter[str] = Counter()
        self._position = 0

    def turn(self, speaker: str, text: str, moment: object = None) -> Record:
        """Return the next turn; its text names the speaker, as turns of ingested logs do."""
        date = moment_of("date", moment)
        said_text = clean(f"{speaker}: {text}" if speaker else text).text
        occurrence, position = self._occurrences[said_text], self._position
        self._occurrences[said_text] += 1
        self._position += 1
        memory = Memory(
            id=id_for(self._scope, self._path, said_text, occurrence),
            text=said_text,
            kind="chunk",
            title=self._title,
            source=Source(self._path, position + 1, position + 1, content_hash(said_text)),
            scope=self._scope,
            created=self._created,
            date=self._created if date is None else date,
            trust="ingested",
            session=self._path,
            speaker=clean(speaker).text,
            position=position,
        )
        return Record(memory)


def importance_of(value: object, most: float) -> int | None:
    """Map an importance from 0 to 1, or from 1 to 10 or 5, onto 1 to 5; None if none was given."""
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= most:
        raise ConfigError(f"its importance is {value!r:.60}, which is not between 0 and {most:g}")
    if most == 1:
        return 1 + round(4 * value)
    return min(5, max(1, -int(-value * 5 // most)))


def category_of(name: object) -> tuple[str, str]:
    """Return our category for one of another system, and its name if it is not ours."""
    if not isinstance(name, str) or not name:
        return "", ""
    ours = _CATEGORIES.get(name.lower(), name.lower())
    return (ours, "") if ours in CATEGORIES else ("other", name)


def moment_of(name: str, value: object) -> float | None:
    """Read a moment in ISO 8601, or in seconds or milliseconds since 1970; None if none was given."""
    if value in (None, "", 0):
        return None
    try:
        seconds = parse_date(float(value) if isinstance(value, str) and value.isdecimal() else value)
        if seconds is None and isinstance(value, int | float) and not isinstance(value, bool):
            raise ValueError
    except (ValueError, OverflowError):
        seconds = None
    if seconds is None:
        raise ConfigError(f"its {name} is {value!r:.60}, which is not a time")
    return seconds


def owner_of(kind: str, name: object) -> Scope:
    """Return the scope of an owner, whatever characters its name has."""
    if kind == "global":
        return GLOBAL
    if isinstance(name, bool) or not isinstance(name, str | int) or not str(name).strip():
        raise ConfigError(f"it belongs to a {kind} that is not named")
    try:
        return scope_of(Scope.of((kind, clean(str(name).strip()).text)))
    except ValueError as error:
        raise ConfigError(f"its owner {kind}:{name!s:.60} cannot be a scope") from error


def file_moment(file: Path) -> float:
    """Return when a file was written, for records without a date."""
    return file.stat().st_mtime


def names_in(value: object) -> list[str]:
    """Return the names in a list, in its JSON, or in a text with commas between them."""
    if isinstance(value, str):
        try:
            value = json.loads(value) if value.lstrip()[:1] == "[" else value.split(",")
        except ValueError:
            value = value.split(",") if isinstance(value, str) else []
    if not isinstance(value, list):
        return []
    return [text for one in value if isinstance(one, str) and (text := clean(one).text.strip())]


def filled(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return what is not empty."""
    return {name: value for name, value in values.items() if value not in (None, "", [], {})}


def read_item(place: str, read: Callable[P, Memory | Record], *given: P.args, **named: P.kwargs) -> Item:
    """Read one record; one that cannot be read gets the reason."""
    try:
        made = read(*given, **named)
        return Item(place, made if isinstance(made, Record) else Record(made))
    except ConfigError as error:
        return Item(place, None, error.message)


_REASONS = {
    "memorySearch.query.maxResults": "how many results, and how many candidates each run brings",
    "memorySearch.query.hybrid.candidateMultiplier": "how many candidates each run brings",
    "memorySearch.query.hybrid.vectorWeight": "the weight of the cosine, as a share of both weights",
    "memorySearch.query.hybrid.textWeight": "the weight of the cosine, as a share of both weights",
    "memorySearch.query.hybrid.mmr.enabled": "diversity of the results",
    "memorySearch.query.hybrid.mmr.lambda": "diversity of the results",
    "memorySearch.query.hybrid.temporalDecay.enabled": "older notes count less; here the minimum is not applied to it",
    "memorySearch.query.hybrid.temporalDecay.halfLifeDays": "older notes count less",
    "memorySearch.query.hybrid.enabled": "whether words and vectors are combined",
    "memorySearch.query.minScore": "the minimum; a row whose cosine reaches it, or whose words match, stays",
    "memorySearch.provider": "the embedder; you set the address of a server yourself",
    "memorySearch.model": "the model of a server, whose address you set yourself",
    "vectorSimilarityWeight": "the boost weight is the vector weight, alpha = vector / (vector + keyword)",
    "keywordMatchWeight": "the boost weight is the vector weight, alpha = vector / (vector + keyword)",
    "alpha": "the share of vectors in the boost",
    "combinedBoostWeight": "the most that vectors and words can add",
    "entityBoostWeight": "how often a name in a question counts",
    "vectorSimilarityThreshold": "the cosine that counts as nothing",
}
NO_COUNTERPART = "it has no counterpart here, and no effect"


def map_settings(given: Mapping[str, Any], origin: str, findings: Findings) -> None:
    """Map settings of another system to ours, each group with what it becomes; values that are not valid are named."""
    for row in RETIRED:
        old = {key: given[key] for key in row.keys if key in given}
        if not old:
            continue
        name = " and ".join(old)
        try:
            new = renewed(old, origin).values
            becomes = {key: read_setting(key, value, origin) for key, value in new.items()}
        except ConfigError as error:
            findings.unread.append((origin, f"{name}: {error.message}"))
            continue
        value = next(iter(old.values())) if len(old) == 1 else old
        reason = _REASONS.get(next(iter(old)), "the same under another name")
        findings.settings.append(MappedSetting(name, value, becomes, reason if becomes else NO_COUNTERPART))
