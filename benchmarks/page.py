"""How soon a person sees the first result of a server that was just started, and what the page weighs.

`python -m benchmarks.page`: the example memories, a server started afresh for every visit, a browser that has never
seen the page. Told are the time from the start of the process to its listening, and from opening the address to the
first hit on the screen.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import whyrank
from tests.browser import launched
from tests.e2e.browser.page.site import serving
from tests.e2e.conftest import STORE

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Response

EXAMPLES = Path(__file__).parent.parent / "examples"
VISITS = 7
QUESTION = "/?q=how+do+I+calibrate+a+microphone"
LIMIT_MS = 1_000.0
LIMIT_BYTES = 200_000

# Notes when the first hit is laid out; it runs before any script of the page.
_WATCH = """() => {
  const look = () => {
    const hit = document.querySelector("#hits > li");
    if (hit && hit.getBoundingClientRect().height) window.firstHit = performance.now();
    else requestAnimationFrame(look);
  };
  requestAnimationFrame(look);
}"""


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="whyrank-bench-") as place, launched() as browser:
        folder = Path(place)
        with whyrank.open(folder / STORE, workspace=folder, embedding="wordllama") as memory:
            memory.ingest(EXAMPLES / "memory", base=EXAMPLES)
        visits = [visit(browser, folder) for _ in range(VISITS)]
    listening, shown, weights = zip(*visits, strict=True)
    print(f"{'start to listening':24}{statistics.median(listening):8.0f} ms   slowest {max(listening):.0f}")
    print(f"{'address to first hit':24}{statistics.median(shown):8.0f} ms   slowest {max(shown):.0f}")
    print(f"{'with everything loaded':24}{statistics.median(weights) / 1000:8.1f} kB")
    kept = statistics.median(shown) <= LIMIT_MS and max(weights) <= LIMIT_BYTES
    print(f"first hit within {LIMIT_MS:.0f} ms and {LIMIT_BYTES / 1000:.0f} kB: {'yes' if kept else 'NO'}")


def visit(browser: Browser, folder: Path) -> tuple[float, float, int]:
    """Start a server, open its page with a question, and tell both times in milliseconds and the bytes that came."""
    start = time.perf_counter()
    with serving(folder) as site:
        listening = (time.perf_counter() - start) * 1000
        context = browser.new_context()
        context.add_init_script(f"({_WATCH})()")
        page = context.new_page()
        answers: list[Response] = []
        page.on("response", lambda answer: answers.append(answer))
        page.goto(site.at(QUESTION), wait_until="networkidle")
        shown: Any = page.evaluate("() => window.firstHit")
        sizes = [answer.request.sizes() for answer in answers]
        context.close()
    return listening, float(shown), sum(size["responseBodySize"] + size["responseHeadersSize"] for size in sizes)


if __name__ == "__main__":
    main()
