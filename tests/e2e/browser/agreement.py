"""One pool ranked twice, in Python and in a browser, and everything in which the two rankings differ."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tests.sums import faults
from whyrank.interfaces import serialize, serialize_candidates
from whyrank.interfaces.http.app import PAGE

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page, Route

    from whyrank.search.explain import Pooled
    from whyrank.types.results import Hit, Ranking

ORIGIN = "http://page.test"
NEARLY = 1e-12
Wish = Mapping[str, Any]
Edit = Callable[[str, str], str]

_RANK_ALL = """async ([pool, likeness, wishes]) => {
  const { addends, rank, replay } = await import("/page/rank.js");
  const [candidates, alike] = [JSON.parse(pool), JSON.parse(likeness)];
  const told = (hit) => ({ ...hit, key: replay(hit.trail),
    sum: addends(hit.trail).reduce((sum, piece) => sum + piece.value, 0) });
  return JSON.stringify(wishes.map((wish) => {
    const ranking = rank(candidates, wish, alike);
    return { hits: ranking.hits.map(told), dropped: ranking.dropped.map(told) };
  }));
}"""


def opened(browser: Browser, edit: Edit = lambda _, source: source) -> Page:
    """Return a page that finds the modules of the page as they are in the source, or as they are edited."""
    page = browser.new_page()

    def answer(route: Route) -> None:
        path = route.request.url.removeprefix(f"{ORIGIN}/page/")
        if not path.endswith(".js"):
            route.fulfill(body="<!doctype html><title>ranking</title>", content_type="text/html")
            return
        source = (PAGE / path).read_text(encoding="utf-8")
        route.fulfill(body=edit(path, source), content_type="text/javascript")

    page.route(f"{ORIGIN}/**", answer)
    page.goto(f"{ORIGIN}/")
    return page


def ranked_in(page: Page, pooled: Pooled, wishes: Sequence[Wish]) -> list[Any]:
    """Rank a pool in the browser by each of these settings; what is sent is what a server sends."""
    pool, likeness = (
        json.dumps(shape(pooled), allow_nan=False)
        for shape in (serialize_candidates.pool, serialize_candidates.likeness)
    )
    found: list[Any] = json.loads(page.evaluate(_RANK_ALL, [pool, likeness, [dict(wish) for wish in wishes]]))
    return found


def differences(page: Page, pooled: Pooled, wishes: Sequence[Wish]) -> Iterator[str]:
    """Yield everything in which the browser's rankings differ from Python's."""
    for wish, found in zip(wishes, ranked_in(page, pooled, wishes), strict=True):
        for difference in _differences(pooled.ranked(**wish), found):
            yield f"{pooled.base.name} with {dict(wish)}: {difference}"


def _differences(ranking: Ranking, found: Any) -> Iterator[str]:
    for which, hits in (("hits", ranking.hits), ("dropped", ranking.dropped)):
        ids, theirs = [hit.id for hit in hits], [hit["id"] for hit in found[which]]
        if ids != theirs:
            yield f"{which} are {ids}, in the browser {theirs}"
            return
        for ours, other in zip(hits, found[which], strict=True):
            yield from (f"{ours.id}: {difference}" for difference in _between(ours, other))


def _between(ours: Hit, other: Any) -> Iterator[str]:
    if ours.tier != other["tier"] or [memory.id for memory in ours.also] != other["also"]:
        yield f"tier {ours.tier} and {ours.also}, in the browser {other['tier']} and {other['also']}"
    if not _near(ours.score, other["score"]):
        yield f"score {ours.score!r}, in the browser {other['score']!r}"
    if other["key"] != [other["tier"], other["score"]]:
        yield f"its trail folds into {other['key']}, and not into {other['score']!r}"
    if not _near(other["sum"], other["score"]):
        yield f"its pieces add up to {other['sum']!r}, and not to {other['score']!r}"
    yield from faults(other["trail"])
    trail = [serialize.step(step) for step in ours.trail]
    if [_told(step) for step in trail] != [_told(step) for step in other["trail"]]:
        yield f"steps {[_told(step) for step in trail]}, in the browser {[_told(step) for step in other['trail']]}"
        return
    for step, theirs in zip(trail, other["trail"], strict=True):
        if not _near(step["value"], theirs["value"]) or not _are_near(step["parts"], theirs["parts"]):
            yield f"step {step}, in the browser {theirs}"


def _told(step: Any) -> tuple[str, str, list[str], bool]:
    return step["stage"], step["op"], [part["signal"] for part in step["parts"]], bool(step["why"])


def _are_near(parts: Any, theirs: Any) -> bool:
    pairs = [(one, other) for one, other in zip(parts, theirs, strict=True)]
    numbers = ("value", "weight", "normalised", "raw", "rank", "best", "floor", "reference", "coverage")
    return all(_near(one[name], other[name]) for one, other in pairs for name in numbers) and all(
        one["terms"] == other["terms"] for one, other in pairs
    )


def _near(one: float | None, other: float | None) -> bool:
    if one is None or other is None:
        return one is other
    return math.isclose(one, other, rel_tol=NEARLY, abs_tol=NEARLY)
