"""Recall: what an agent should be reminded of in this turn, or nothing."""

from __future__ import annotations

import hashlib
import os
import time
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, NamedTuple

from ..analysis.normalize import clean, estimated_tokens
from ..analysis.sanitize import Quoted, fenced
from ..errors import ConfigError, NotFound
from ..formatting import counted
from ..search.confidence import CONFIDENCE_AT_FOUND, CONFIDENCE_AT_WEAK
from ..search.expansion import FLOOR_MS
from ..storage.bm25 import CHUNKS_PER_SOURCE
from ..types.memory import Notice, Scope
from .arguments import check_counts
from .recall_log import MOST_SESSION, Citation, OmittedMemory, RecallEntry, RecallLog, log_file

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ..config.load import Config
    from ..types.memory import Memory
    from ..types.query import Verdict
    from ..types.results import Hit, Results
    from .arguments import Scopes

# Hits read at first, and again where none of them may be given: untrusted ones must not hide all others.
_CONSIDERED = (16, 128, 1_000)
MOST_TURN = 2_000  # characters of a turn that are searched: a pasted log says at its ends what is wanted
_MOST_LEFT_OUT = 10  # in an answer and its entry in the log
_LEAST_EXCERPT = 40  # characters: a shorter piece of a memory reminds of nothing
_HEADING = "Reminder from memory, found for this turn. Cite the source of what you use."


@dataclass(frozen=True, slots=True)
class Reminder:
    """Text to inject in a turn, with its memories: `text` is ready for a prompt, and empty if nothing is to be said.

    `reason` says why nothing was given; `memories` are those in the text, `left_out` those that also matched.
    """

    text: str
    memories: tuple[Citation, ...]
    tokens: int
    verdict: Verdict
    reason: str
    left_out: tuple[OmittedMemory, ...]
    notices: tuple[Notice, ...]
    id: str  # of the entry in the log, for `recall.why`

    def __bool__(self) -> bool:
        return bool(self.text)


class Explained(NamedTuple):
    """A memory that was given, as a search finds it today: no hit if it is no longer found."""

    given: Citation
    hit: Hit | None


@dataclass(frozen=True, slots=True)
class RecallTrail:
    """An entry of the log, and the trails of its memories by a search of today."""

    entry: RecallEntry
    memories: tuple[Explained, ...]

    def __str__(self) -> str:
        entry = self.entry
        lines = [f"recall {entry.id}: {entry.reason or counted(len(entry.given), 'memory', 'memories') + ' given'}"]
        lines += [f"question: {entry.query}", f"verdict: {entry.verdict or '–'}"]
        for given, hit in self.memories:
            lines += ["", f"{given.citation}  {given.confidence:.0%} confident, score {given.score:.4f}"]
            if hit is None:
                lines.append("  is not found any more: it was forgotten, replaced, or lost its place")
                continue
            if hit.score != given.score:
                lines.append(f"  its score is {hit.score:.4f} today: the store or a setting has changed since")
            lines += [f"  {line}" for line in hit.explain().splitlines()]
        if entry.left_out:
            lines += ["", "left out:", *(f"  {one.citation}  {one.reason}" for one in entry.left_out)]
        return "\n".join(lines)


class Recaller:
    """`memory.recall(turn)`: what an agent should be reminded of now; with the log of what it was given."""

    def __init__(self, search: Callable[..., Results], config: Config, clock: Callable[[], float]) -> None:
        self._search = search
        self._config = config
        self._clock = clock
        self._log = RecallLog(log_file(config), keeps=config["recall.log"])
        self._trusts = {"owner", "agent", "ingested"} if config["recall.ingested"] else {"owner", "agent"}

    def __call__(
        self,
        turn: str,
        *,
        budget: int | None = None,
        scope: Scopes = None,
        session: str = "",
        timeout_ms: int | None = None,
        host: str = "",
    ) -> Reminder:
        """Return the memories to remind an agent of in this turn, as text within a budget of tokens, or nothing.

        Nothing is given if the verdict of the search is `nothing`, and nothing twice in a `session`, unless it has
        changed. Memories of trust `untrusted` are never given; `recall.ingested` decides on those of files.
        """
        start = time.monotonic()
        if not isinstance(turn, str) or not isinstance(session, str):
            raise ConfigError(f"the turn is {turn!r:.60}, the session {session!r:.60}", "give texts")
        if len(session) > MOST_SESSION:
            raise ConfigError(f"the session has {len(session):,} characters", f"give at most {MOST_SESSION}")
        room = self._config["recall.max_tokens"] if budget is None else budget
        check_counts(1, budget=room)
        said = clean(turn).text.strip()
        asked = _Asked(condensed(said), room, scope, session, timeout_ms)
        reminder = self._answer(asked)
        if len(said) > MOST_TURN:
            cut = Notice("turn-cut", f"of {len(said):,} characters the first and last {MOST_TURN // 2:,} were searched")
            reminder = replace(reminder, notices=(cut, *reminder.notices))
        entry = RecallEntry(
            reminder.id, self._clock(), asked.session, asked.scopes, host, asked.turn, reminder.verdict,
            reminder.reason, room, reminder.tokens, round(1_000 * (time.monotonic() - start), 1),
            reminder.memories, reminder.left_out,
        )  # fmt: skip
        self._log.add(entry)
        return reminder

    def log(self, *, limit: int = 20, session: str | None = None) -> list[RecallEntry]:
        """Return the latest recalls, the latest first: what was given and when, or why nothing."""
        check_counts(1, limit=limit)
        entries = [one for one in self._log.entries() if not one.is_reset and session in (None, one.session)]
        return entries[: -limit - 1 : -1]

    def why(self, identity: str) -> RecallTrail:
        """Explain one recall by its id: the trails of what it gave, from the same search today."""
        entry = next((one for one in self._log.entries(identity) if one.id == identity), None)
        if entry is None:
            raise NotFound(f"there is no recall {identity!r}", "`whyrank recall --log` shows the ids that are kept")
        found = self._found(entry.query, entry.scopes, None, _CONSIDERED[-1]) if entry.given else None
        hits = {} if found is None else {hit.id: hit for hit in found.hits}
        return RecallTrail(entry, tuple(Explained(given, hits.get(given.id)) for given in entry.given))

    def restart(self, session: str) -> None:
        """Begin a session anew: its host has dropped what was injected, so it may be given again."""
        if session:
            self._log.add(RecallEntry("", self._clock(), session[:MOST_SESSION], is_reset=True))

    def _found(self, turn: str, scope: Scopes, timeout_ms: int | None, size: int) -> Results:
        """Search with several chunks of a file as hits of their own; without time for it, without expansion."""
        recipe = self._config.recipe(None, max_per_file=CHUNKS_PER_SOURCE)
        expand = False if timeout_ms is not None and timeout_ms < FLOOR_MS else None
        return self._search(turn, limit=size, scope=scope, recipe=recipe, timeout_ms=timeout_ms, expand=expand)

    def _answer(self, asked: _Asked) -> Reminder:
        if not asked.turn:
            return _nothing("nothing", "the turn is empty")
        shown = self._log.shown(asked.session, asked.scopes)
        for size in _CONSIDERED:
            found = self._found(asked.turn, asked.scope, asked.timeout_ms, size)
            allowed, left_out = self._sift(found.hits, shown)
            # More hits are read only where trust alone kept these from being given.
            if allowed or len(found.hits) < size or not all(one.reason.startswith("its trust") for one in left_out):
                break
        notices = tuple(notice for notice in found.notices if notice.code != "setting-unused")
        if not found.hits:
            late = next((notice.message for notice in notices if notice.code == "timeout"), "")
            return _nothing(found.verdict, late or "no memory matches the turn", notices)
        if found.verdict == "nothing":
            best = max(hit.confidence or 0.0 for hit in found.hits)
            told = f"the best of {counted(len(found.hits), 'match', 'matches')} is {best:.0%} confident"
            return _nothing("nothing", f"nothing relevant is stored: {told}", notices)
        # The verdict is that of the trusted memories: an untrusted one does not speak for others.
        trusted = (hit for hit in found.hits if hit.memory.trust in self._trusts)
        verdict = _verdict(max((hit.confidence or 0.0 for hit in trusted), default=0.0))
        if not allowed:
            return _nothing(verdict, f"the best match was left out: {left_out[0].reason}", notices, left_out)
        given, text = packed(allowed, asked.budget, self._config["recall.limit"])
        left_out += [_left_out(hit.memory, "no room is left") for hit in allowed if hit not in given]
        if not given:
            told = f"the budget of {counted(asked.budget, 'token')} has no room for the best match"
            return _nothing(verdict, told, notices, left_out)
        memories = tuple(_cited(hit) for hit in given)
        withheld = tuple(left_out[:_MOST_LEFT_OUT])
        return Reminder(text, memories, estimated_tokens(text), verdict, "", withheld, notices, _new_id())

    def _sift(self, hits: Sequence[Hit], shown: set[tuple[str, str]]) -> tuple[list[Hit], list[OmittedMemory]]:
        """Split hits into those that may be given and those that may not, with the reason."""
        least, share = self._config["recall.min_confidence"], self._config["recall.min_share"]
        # Of all that are trusted: what was given before keeps weaker ones out when the same is asked again.
        best = max((hit.score for hit in hits if hit.memory.trust in self._trusts), default=0.0)
        allowed: list[Hit] = []
        left_out: list[OmittedMemory] = []
        for hit in hits:
            memory, sure = hit.memory, hit.confidence or 0.0
            if memory.trust not in self._trusts:
                left_out.append(_left_out(memory, f"its trust is {memory.trust}"))
            elif sure < least:
                left_out.append(_left_out(memory, f"it is {sure:.0%} confident, below {least:.0%}"))
            elif hit.score < share * best and not hit.tier:
                left_out.append(
                    _left_out(memory, f"its score is {hit.score / best:.0%} of the best, below {share:.0%}")
                )
            elif (memory.id, _digest(memory.text)) in shown:
                left_out.append(_left_out(memory, "it was given in this session"))
            else:
                allowed.append(hit)
        return allowed, left_out


class _Asked(NamedTuple):
    """Checked arguments of a recall."""

    turn: str
    budget: int
    scope: Scopes
    session: str
    timeout_ms: int | None

    @property
    def scopes(self) -> tuple[str, ...]:
        """Return the scopes as texts, in order: patterns as they were given."""
        given = (self.scope,) if isinstance(self.scope, str | Scope) else self.scope or ()
        return tuple(sorted({str(one) for one in given}))


def condensed(turn: str) -> str:
    """Return a turn; of a long one the two ends."""
    half = MOST_TURN // 2
    return turn if len(turn) <= MOST_TURN else f"{turn[:half]} {turn[-half:]}"


def packed(hits: Sequence[Hit], budget: int, limit: int) -> tuple[list[Hit], str]:
    """Choose the hits that fit, best first, and render them; others of a source only where room is left.

    Where not even one fits, the beginning of the best is taken.
    """
    chosen: list[Hit] = []
    for has_all_sources in (False, True):
        for hit in hits:
            if len(chosen) == limit or hit in chosen:
                continue
            if not has_all_sources and hit.memory.group in {one.memory.group for one in chosen}:
                continue
            trial = [one for one in hits if one in chosen or one is hit]
            if estimated_tokens(_rendered(trial)) <= budget:
                chosen = trial
    if chosen:
        return chosen, _rendered(chosen)
    begin = _excerpt(hits[0], budget)
    return ([hits[0]], begin) if begin else ([], "")


def _rendered(hits: Sequence[Hit], excerpt: str | None = None) -> str:
    quotes = [Quoted(hit.memory.text if excerpt is None else excerpt, _about(hit.memory)) for hit in hits]
    return f"{_HEADING}\n{fenced(quotes)}"


def _excerpt(hit: Hit, budget: int) -> str:
    """Render the longest beginning of a memory that fits; nothing if that is too short to remind of it."""
    text = hit.memory.text
    low, high = 0, len(text)
    while low < high:
        middle = (low + high + 1) // 2
        fits = estimated_tokens(_rendered([hit], f"{text[:middle]} …")) <= budget
        low, high = (middle, high) if fits else (low, middle - 1)
    words = text[:low].rpartition(" ")[0] or text[:low]
    return _rendered([hit], f"{words} …") if low >= _LEAST_EXCERPT else ""


def _about(memory: Memory) -> dict[str, str]:
    last = memory.headings[-1] if memory.headings else ""
    title = " › ".join(dict.fromkeys(part for part in (memory.title or memory.name, last) if part))
    facts = {"source": citation(memory), "title": title, "date": _day(memory.date), "trust": memory.trust}
    return {key: value for key, value in facts.items() if value}


def citation(memory: Memory) -> str:
    """Return where a memory can be read: path#L5-L7 of a file, else its id."""
    place = memory.source
    if place is None or not place.path:
        return memory.id
    return f"{place.path}#L{place.start_line}-L{place.end_line}" if place.start_line else place.path


def _day(moment: float | None) -> str:
    try:
        return "" if moment is None else datetime.fromtimestamp(moment, UTC).date().isoformat()
    except (OverflowError, ValueError, OSError):  # outside the calendar
        return ""


def _cited(hit: Hit) -> Citation:
    memory = hit.memory
    return Citation(memory.id, citation(memory), round(hit.confidence or 0.0, 4), hit.score, _digest(memory.text))


def _left_out(memory: Memory, reason: str) -> OmittedMemory:
    return OmittedMemory(memory.id, citation(memory), reason)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:16]


def _verdict(confidence: float) -> Verdict:
    if confidence >= CONFIDENCE_AT_FOUND:
        return "found"
    return "weak" if confidence >= CONFIDENCE_AT_WEAK else "nothing"


def _nothing(
    verdict: Verdict, reason: str, notices: tuple[Notice, ...] = (), left_out: Sequence[OmittedMemory] = ()
) -> Reminder:
    return Reminder("", (), 0, verdict, reason, tuple(left_out[:_MOST_LEFT_OUT]), notices, _new_id())


def _new_id() -> str:
    return f"r_{os.urandom(6).hex()}"
