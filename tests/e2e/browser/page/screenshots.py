"""The pictures of the page in the documentation: `make screenshots`."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from PIL import Image

import whyrank
from tests.browser import launched
from tests.e2e.conftest import STORE

from .conftest import EXAMPLES
from .site import Site, ask, ids, opened, panel, serving, turn

if TYPE_CHECKING:
    from collections.abc import Callable

    from playwright.sync_api import Browser, Page, ViewportSize

IMAGES = Path(__file__).parents[4] / "docs" / "images"
MOST_BYTES = 150_000
COLOURS = 256  # enough for flat colours and soft letters
DESK: ViewportSize = {"width": 1120, "height": 800}
PHONE: ViewportSize = {"width": 360, "height": 720}
QUESTION = "how do I calibrate a microphone"


class Scene(NamedTuple):
    """One picture: what it is called, what is done for it, and on which screen."""

    name: str
    play: Callable[[Page, Site], None]
    screen: ViewportSize = DESK
    colours: str = "light"


def main() -> None:
    """Make every picture again."""
    IMAGES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="whyrank-") as place, launched() as browser:
        folder = Path(place)
        with whyrank.open(folder / STORE, workspace=folder, embedding="wordllama") as memory:
            memory.ingest(EXAMPLES, base=EXAMPLES.parent)
            memory.add("Robin prefers tea", tags=["drinks"])
        with serving(folder) as site:
            for scene in SCENES:
                taken(browser, site, scene)


def taken(browser: Browser, site: Site, scene: Scene) -> None:
    """Play a scene and take its picture."""
    look: dict[str, Any] = {"viewport": scene.screen, "color_scheme": scene.colours}
    with opened(browser, site, **look) as page:
        scene.play(page, site)
        page.evaluate("() => document.activeElement.blur()")
        file = IMAGES / f"{scene.name}.png"
        page.screenshot(path=file)
    with Image.open(file) as picture:
        picture.convert("RGB").quantize(COLOURS, Image.Quantize.MAXCOVERAGE).save(file, optimize=True)
    size = file.stat().st_size
    print(f"{file.name}: {size / 1000:.0f} kB")
    assert size <= MOST_BYTES, f"{file.name} has {size} bytes"


def search(page: Page, site: Site) -> None:
    """Show the answer to a question, one of its bars opened."""
    ask(page, QUESTION)
    page.locator("[data-part=bar]").first.click()


def tune(page: Page, site: Site) -> None:
    """Show a turned slider and what moved."""
    ask(page, "headphone time")
    turn(page, "ranking.vector_weight", 0.1)
    turn(page, "ranking.recency_weight", 0.4)


def store(page: Page, site: Site) -> None:
    """Show what the store tells about itself, and where the hits stand on its curve."""
    ask(page, QUESTION)
    panel(page, "Store")
    page.locator("#store dd").first.evaluate("file => { file.textContent = '.whyrank/memory.db' }")


def compare(page: Page, site: Site) -> None:
    """Show two hits side by side, and what would flip them."""
    ask(page, "headphone time")
    for place in (2, 3):
        page.locator("#hits > li").nth(place).get_by_role("checkbox").check()
    page.locator("[data-flips] ul, [data-flips] [data-hint]").first.wait_for()


def missing(page: Page, site: Site) -> None:
    """Show where a memory was lost."""
    ask(page, QUESTION)
    panel(page, "Missing?")
    page.get_by_label("The memory you expected").fill("mietvertrag-studio")
    page.get_by_role("button", name="Where is it?").click()
    page.locator("[data-outcome]").wait_for()


def phone(page: Page, site: Site) -> None:
    """Show the page on a phone at night."""
    ask(page, "Remind Me")
    assert ids(page)


SCENES = (
    Scene("page", search),
    Scene("page-tune", tune),
    Scene("page-compare", compare),
    Scene("page-missing", missing),
    Scene("page-store", store),
    Scene("page-phone", phone, PHONE, "dark"),
)

if __name__ == "__main__":
    main()
