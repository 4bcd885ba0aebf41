"""How long a slider takes to rank about 200 candidates again in Chromium, from the value to the new order.

`python -m benchmarks.sliders`: the example memories in small chunks, every slider of four recipes from end to end, each
also with diversity, which compares everything with everything. Of three tries at a position the quickest counts: the
others tell what else the machine is doing.
"""

from __future__ import annotations

import json
import statistics
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import whyrank
from tests.browser import launched
from tests.e2e.browser.agreement import opened
from whyrank.interfaces import serialize_candidates

if TYPE_CHECKING:
    from playwright.sync_api import Page

EXAMPLES = Path(__file__).parent.parent / "examples"
QUESTION = "What is Suzy's standard day rate in 2026?"
SMALL_CHUNKS: dict[str, Any] = {"chunk.tokens": 110, "chunk.overlap": 0}
POSITIONS = 100  # of a slider
TRIES = 3
RECIPES = ("default", "rrf", "openvault", "hybrid-mem")  # the last groups no files: all 200 are compared
LIMIT_MS = 16.0  # a frame

_SLIDE = """async ([pool, likeness, knob, others, positions, tries]) => {
  const { rank } = await import("/page/rank.js");
  const [candidates, alike] = [JSON.parse(pool), JSON.parse(likeness)];
  const spent = Array(positions).fill(Infinity);
  for (let turn = 0; turn < tries; turn++) {
    for (let at = 0; at < positions; at++) {
      const value = knob.low + (at / (positions - 1)) * (knob.high - knob.low);
      const start = performance.now();
      rank(candidates, { ...others, [knob.setting]: value }, alike);
      spent[at] = Math.min(spent[at], performance.now() - start);
    }
  }
  return spent;
}"""


def main() -> None:
    print(
        f"{'recipe':12}{'candidates':>11}  {'slider':24}{'p50 ms':>8}{'p95 ms':>8}   "
        f"{'with diversity: p50':>20}{'p95':>7}"
    )
    worst = 0.0
    with tempfile.TemporaryDirectory(prefix="whyrank-bench-") as place, launched() as browser:
        page = opened(browser)
        with whyrank.open(Path(place) / "memory.db", workspace=place, embedding="wordllama", **SMALL_CHUNKS) as memory:
            memory.ingest(EXAMPLES / "memory", base=EXAMPLES)
            for recipe in RECIPES:
                pooled = memory.pool(QUESTION, recipe=recipe, likeness=True)
                pool, likeness = serialize_candidates.pool(pooled), serialize_candidates.likeness(pooled)
                for knob in pool["knobs"]:
                    alone, diverse = (slid(page, pool, likeness, knob, lambda_) for lambda_ in (None, 0.5))
                    worst = max(worst, alone[1], diverse[1])
                    told = f"{recipe:12}{len(pool['candidates']):>11}  {knob['setting']:24}"
                    print(f"{told}{alone[0]:>8.2f}{alone[1]:>8.2f}   {diverse[0]:>20.2f}{diverse[1]:>7.2f}")
    print(f"the slowest p95 is {worst:.2f} ms; a frame has {LIMIT_MS:g}")


def slid(page: Page, pool: Any, likeness: Any, knob: Any, lambda_: float | None) -> tuple[float, float]:
    """Return median and 95th percentile over the whole way of a slider."""
    others = {"mmr_lambda": lambda_}
    spent = page.evaluate(_SLIDE, [json.dumps(pool), json.dumps(likeness), knob, others, POSITIONS, TRIES])
    return statistics.median(spent), statistics.quantiles(spent, n=20)[-1]


if __name__ == "__main__":
    main()
