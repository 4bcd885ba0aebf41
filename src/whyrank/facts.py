"""Facts: what may be said of one, how what was said changes it, and what became of it when it was added."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple, TypedDict

from .analysis.sameness import may_be_one
from .arguments import check_category, check_decay, check_importance, moment, name_of, storable, tags_of
from .columns import MemoryId
from .errors import ConfigError, Conflict
from .ingest.entries import content_hash
from .lifetimes import expiry
from .making import Draft, finished
from .ports import Written
from .types import TRUSTS, USUAL_IMPORTANCE, Former, Memory, Notice, Scope, Source

MAX_KEY_CHARACTERS = 1_000
Outcome = Literal["stored", "known", "replacing", "revived", "merged"]
Keys = Mapping[tuple[Scope, str], Written]  # of writes, with what each came to


class Fields(TypedDict, total=False):
    """What may be said of a fact beside its text; None, "" or () says nothing, or takes back what was said."""

    name: str
    category: str
    tags: str | Sequence[str]
    entities: str | Sequence[str]
    importance: int | None
    decay: str
    date: object
    valid_from: object
    valid_until: object
    expires: object
    trust: str


class Near(NamedTuple):
    """A fact that says almost the same, and how much: the cosine of the two."""

    memory: Memory
    cosine: float


@dataclass(frozen=True, slots=True)
class Added:
    """What became of a fact that was added.

    `stored`: it is new. `known`: it was there, and nothing was written. `replacing`: it was there, and replaces another
    now. `revived`: it was there, replaced, expired or out of its time, and lives again. `merged`: a near-duplicate was
    there, which took in what was said of this one.
    """

    memory: Memory
    outcome: Outcome
    near: tuple[Near, ...] = ()
    notices: tuple[Notice, ...] = ()


@dataclass(frozen=True, slots=True)
class Changed:
    """A fact as it stands after a change, and what is to be said of that."""

    memory: Memory
    notices: tuple[Notice, ...] = ()


NOTHING_CHANGED = Notice("nothing-changed", "it says all that already, so nothing was written")


def unseen(memory: Memory, now: float) -> tuple[Notice, ...]:
    """Say why no search finds a fact that was just written, where none does."""
    notices = []
    if memory.superseded_by is not None:
        shown = f"it was replaced by {memory.superseded_by}, which searches show in its place"
        notices.append(
            Notice("replaced-already", f"{shown}; change that one, or bring this one back by adding its text")
        )
    if memory.expires is not None and memory.expires <= now:
        told = "it has expired already, so no search finds it"
        notices.append(Notice("expired-already", f"{told}; give a later expiry, or `prune` takes it out"))
    if memory.valid_until is not None and memory.valid_until <= now:
        told = "it holds no more, so only searches as of a time before its valid_until find it"
        notices.append(Notice("over-already", f"{told}; `whyrank list --expired` lists it"))
    if memory.valid_from is not None and memory.valid_from > now:
        told = "it does not hold yet, so no search finds it before its valid_from"
        notices.append(Notice("not-valid-yet", f"{told}; `whyrank list --as-of` with a later time lists it"))
    return tuple(notices)


def unapplied(known: Memory, fields: Mapping[str, Any]) -> tuple[Notice, ...]:
    """Name what was said anew of a fact that is there and stays as it is."""
    names = [name for name, value in said(fields).items() if _says_more(known, name, value)]
    if not names:
        return ()
    told = f"it stays as it was stored; not applied: {', '.join(names)}"
    return (Notice("known-as-it-is", f"{told} (`whyrank update {known.id}` does that)"),)


def _says_more(known: Memory, name: str, value: Any) -> bool:
    held = getattr(known, name)
    if name == "trust":  # whoever is trusted less and says it again takes nothing from it
        return TRUSTS.index(value) < TRUSTS.index(held)
    return set(value) != set(held) if isinstance(value, tuple) else bool(value != held)


def alive_again(memory: Memory, now: float) -> Memory:
    """Return a fact as it is when it is said again: not replaced, not expired, and in its time."""
    begins, ends = memory.valid_from, memory.valid_until
    return replace(
        memory,
        superseded_by=None,
        superseded_at=None,
        expires=None,
        expires_given=False,
        valid_from=None if begins is not None and begins > now else begins,
        valid_until=None if ends is not None and ends <= now else ends,
    )


def read_fields(given: Mapping[str, Any]) -> dict[str, Any]:
    """Check and read what was said of a fact; a key nobody knows is an error, as everything that makes no sense."""
    if not given:
        return {}
    unknown = sorted(given.keys() - _READERS.keys())
    if unknown:
        raise ConfigError(f"a fact has no {unknown[0]!r}", f"it has {', '.join(_READERS)}")
    return {key: _READERS[key](value) for key, value in given.items()}


def _name(value: str | None) -> str:
    return name_of("name", value or "")


def _category(value: str | None) -> str:
    check_category(value or "other")
    return value or "other"


def _importance(value: int | None) -> int | None:
    check_importance(value)
    return value


def _decay(value: str | None) -> str:
    check_decay(value)
    return value or ""


def _trust(value: str | None) -> str:
    if value and value not in TRUSTS:
        raise ConfigError(f"there is no trust {value!r}", f"it is one of {', '.join(TRUSTS)}")
    return value or "owner"


def _moment(name: str) -> Callable[[object], float | None]:
    return lambda value: moment(name, value)


_READERS: dict[str, Callable[[Any], Any]] = {
    "name": _name,
    "category": _category,
    "tags": lambda value: tags_of(value or ()),
    "entities": lambda value: tags_of(value or (), "entity"),
    "importance": _importance,
    "decay": _decay,
    **{name: _moment(name) for name in ("date", "valid_from", "valid_until", "expires")},
    "trust": _trust,
}
_SAYS_NOTHING: tuple[object, ...] = (None, "", ())


def said(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return what says something: in a fact that is added, nothing given is nothing said."""
    return {key: value for key, value in fields.items() if value not in _SAYS_NOTHING}


def with_fields(memory: Memory, fields: Mapping[str, Any], now: float) -> Memory:
    """Return a memory with what was said of it; its expiry follows its decay class unless it was given."""
    told = dict(fields)
    if "name" in fields:
        told["title"] = fields["name"]
    if fields.get("expires") is not None:
        told["expires_given"] = True
    elif "expires" in fields or ("decay" in fields and not fields.get("expires_given", memory.expires_given)):
        told |= {"expires": expiry(fields.get("decay", memory.decay), now), "expires_given": False}
    changed = replace(memory, **told)
    begin, end = changed.valid_from, changed.valid_until
    if begin is not None and end is not None and begin >= end:
        raise Conflict("valid_from is not before valid_until", "give an earlier or a later date")
    return changed


def new_fact(identity: MemoryId, exact: str, text: str, owner: Scope, fields: Mapping[str, Any], now: float) -> Memory:
    """Return a fact as it is first said; `exact` is the hash of its text."""
    source = Source("", content_hash=exact)
    blank = finished(Draft(identity, text, scope=owner, source=source, created=now, date=now))
    told = said(fields) if fields else {}
    return with_fields(blank, told, now) if told else blank


def with_text(memory: Memory, text: str) -> Memory:
    """Return a memory with another text."""
    return replace(memory, text=text, source=Source("", content_hash=content_hash(text)))


def enriched(memory: Memory, other: Memory, now: float) -> Memory:
    """Return a memory with what was said of one that says the same; it was said again, so its time begins anew."""
    renewed = replace(memory, expires=expiry(memory.decay, now)) if not memory.expires_given else memory
    says_how_long = bool(other.decay) or other.expires_given
    lives = (renewed, other) if says_how_long else (renewed,)
    longest = max(lives, key=lambda one: math.inf if one.expires is None else one.expires)
    heaviest = max((memory, other), key=lambda one: one.importance or USUAL_IMPORTANCE)
    return replace(
        memory,
        name=memory.name or other.name,
        title=memory.title or other.title,
        category=other.category if memory.category == "other" else memory.category,
        tags=tuple(dict.fromkeys((*memory.tags, *other.tags))),
        entities=tuple(dict.fromkeys((*memory.entities, *other.entities))),
        importance=heaviest.importance if memory.importance and other.importance else _either(memory, other),
        decay=longest.decay,
        expires=longest.expires,
        expires_given=longest.expires_given,
        trust=min(memory.trust, other.trust, key=TRUSTS.index),
    )


def may_merge(said: Memory, into: Memory) -> bool:
    """Tell whether a fact may become part of one that says almost the same.

    The less trusted may not change the more trusted, and what may be a correction is a fact of its own.
    """
    is_trusted = TRUSTS.index(said.trust) <= TRUSTS.index(into.trust)
    return is_trusted and may_be_one(said.text, into.text)


def _either(memory: Memory, other: Memory) -> int | None:
    return memory.importance or other.importance


# What a history tells of: all that `update` and `add` may change.
_TOLD = (
    "text", "name", "category", "tags", "entities", "importance", "decay", "date", "valid_from", "valid_until",
    "expires", "supersedes", "superseded_by", "superseded_at", "trust",
)  # fmt: skip


def former(before: Memory, after: Memory, now: float) -> Former | None:
    """Return what a change took away, if it changed anything that is told."""
    pairs = ((name, getattr(before, name), getattr(after, name)) for name in _TOLD)
    was = {name: list(old) if isinstance(old, tuple) else old for name, old, new in pairs if old != new}
    return Former(before.id, now, was) if was else None


def check_key(key: str) -> str:
    """Read the key of a write."""
    if not isinstance(key, str) or not storable("key", key).strip() or len(key) > MAX_KEY_CHARACTERS:
        raise ConfigError("the key is no key", f"give a text of 1 to {MAX_KEY_CHARACTERS} characters")
    return key


def content_of(text: str, supersedes: MemoryId | None, fields: Mapping[str, Any]) -> str:
    """Return the fingerprint of what a write asks for."""
    asked = repr((text, supersedes, sorted(said(fields).items())))
    return hashlib.blake2b(asked.encode("utf-8", errors="replace"), digest_size=16).hexdigest()
