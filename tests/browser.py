"""A real Chromium for the tests: the one that is installed, else the operating system's, else the test tool's own.

`python -m tests.browser` brings one where there is none, and prints where it is; `make test` does that.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from playwright.sync_api import Browser, sync_playwright

if TYPE_CHECKING:
    from collections.abc import Iterator

CHOSEN = "CHROMIUM"  # the variable that names one
NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome", "msedge")
APPLICATIONS = (
    Path("/Applications/Google Chrome.app/Contents/MacOS/Google Chrome"),
    Path("/Applications/Chromium.app/Contents/MacOS/Chromium"),
)


def main() -> None:
    """Find a browser or bring one, and say where it is."""
    place = found() or brought()
    print(place)


def found() -> Path | None:
    """Return where a browser is, if there is one."""
    named = os.environ.get(CHOSEN)
    if named:
        return Path(named)
    installed = (Path(place) for place in map(shutil.which, NAMES) if place)
    with sync_playwright() as playwright:
        own = Path(playwright.chromium.executable_path)
    return next((place for place in (*installed, *APPLICATIONS, own) if place.is_file()), None)


def brought() -> Path:
    """Install a browser: with the operating system's packages where we may, else with the test tool's download."""
    if shutil.which("apt-get") and os.geteuid() == 0:
        quiet = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        install = ["apt-get", "install", "-y", "-qq", "--no-install-recommends", "chromium"]
        if subprocess.run(install, env=quiet, stdout=subprocess.DEVNULL).returncode:
            subprocess.run(["apt-get", "update", "-qq"], env=quiet, stdout=subprocess.DEVNULL)
            subprocess.run(install, env=quiet, stdout=subprocess.DEVNULL)
    place = found()
    if place is None:
        subprocess.run([sys.executable, "-m", "playwright", "install", "chromium"], check=True)
        place = found()
    if place is None:
        raise SystemExit(f"no Chromium was found or could be installed; name one with {CHOSEN}=path")
    return place


@contextmanager
def launched(*options: str) -> Iterator[Browser]:
    """Start the browser, without a window; options are its own."""
    place = found()
    if place is None:
        raise RuntimeError("there is no browser; `make test` brings one, or `python -m tests.browser`")
    # Root, as in a container, may not have Chromium's sandbox.
    arguments = [*(["--no-sandbox"] if hasattr(os, "geteuid") and os.geteuid() == 0 else []), *options]
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=place, args=arguments)
        try:
            yield browser
        finally:
            browser.close()


if __name__ == "__main__":
    main()
