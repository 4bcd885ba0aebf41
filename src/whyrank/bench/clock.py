"""Time: what one call costs, taking turns, and what many calls say together."""

from __future__ import annotations

import random
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, TypeVar

Item = TypeVar("Item")
SLOW_MILLISECONDS = 1_000.0
TURNS_OF_THE_SLOW = 8
# What a thread on another core takes is known to the clock when its next tick comes, every 4 ms or so.
LOOK_SECONDS, STILL_SHARE = 0.01, 0.05  # threads are still that work for less than this share between two looks
PATIENCE_SECONDS = 0.25  # some never are


class Span(NamedTuple):
    """Milliseconds one call took: of the processor, all threads of the process together, and on the wall."""

    cpu: float
    wall: float


Spans = Mapping[int, Span]  # by the number of the turn


def timed(call: Callable[[], Item]) -> tuple[Span, Item]:
    """Run a call and return what it cost with what it returned."""
    wall, cpu = time.perf_counter(), time.process_time()
    answer = call()
    return Span((time.process_time() - cpu) * 1000, (time.perf_counter() - wall) * 1000), answer


def shuffled(items: Sequence[Item], turn: int) -> list[Item]:
    """Return the order of a turn, the same in every contest: everybody follows everybody at some time.

    Whoever always came after one that does the same work would find its code and pages in the processor's caches.
    """
    return random.Random(turn).sample(items, len(items))


def seconds_of_others() -> float:
    """Return the seconds of the processor that other threads of the process have taken."""
    return time.process_time() - time.thread_time()


def be_still(taken: Callable[[], float] = seconds_of_others) -> None:
    """Wait until no other thread works, as some do long after they stored something: it would count for the next."""
    before, last_look = taken(), time.perf_counter() + PATIENCE_SECONDS
    while time.perf_counter() < last_look:
        time.sleep(LOOK_SECONDS)
        now = taken()
        if now - before < STILL_SHARE * LOOK_SECONDS:
            return
        before = now


def take_turns(
    calls: Mapping[str, Callable[[int], Item]],
    turns: int,
    heard: Callable[[str, int, Item], None] = lambda name, turn, answer: None,
    before: Callable[[], None] = lambda: None,
) -> dict[str, dict[int, Span]]:
    """Let everybody answer every question once, in another order each time; whoever is slow gets fewer turns.

    Before each of them something may be done that does not count.
    """
    spans: dict[str, dict[int, Span]] = {name: {} for name in calls}
    for turn in range(turns):
        for name in shuffled(list(calls), turn):
            if is_spent(spans[name]):
                continue
            call = calls[name]
            before()
            spans[name][turn], answer = timed(lambda call=call, turn=turn: call(turn))  # type: ignore[misc]
            heard(name, turn, answer)
    return spans


def is_spent(spans: Spans) -> bool:
    """Tell whether a slow contestant has had its turns."""
    slow = any(span.wall > SLOW_MILLISECONDS for span in spans.values())
    return slow and len(spans) >= TURNS_OF_THE_SLOW


def quantile(values: Sequence[float], share: float) -> float:
    """Return the value below which a share of the values lies, between two of them where it falls between."""
    ordered = sorted(values)
    place = share * (len(ordered) - 1)
    below = int(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (place - below) * (ordered[above] - ordered[below])


class Ratio(NamedTuple):
    """How many times what the other took: above 1 the other is faster."""

    cpu: float
    wall: float


def ratio(spans: Spans, other: Spans) -> Ratio | None:
    """Divide the medians of the turns both had; None if they never met."""
    met = spans.keys() & other.keys()
    if not met:
        return None
    mine, theirs = ([spans[turn] for turn in met], [other[turn] for turn in met])
    return Ratio(
        statistics.median(span.cpu for span in mine) / statistics.median(span.cpu for span in theirs),
        statistics.median(span.wall for span in mine) / statistics.median(span.wall for span in theirs),
    )
