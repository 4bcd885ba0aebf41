"""The folder of a contest: its data, and the pages and plots made of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from .kept import KeptContest, kept_from
from .page import page_of
from .plots import draw
from .report import as_markdown

DATA, PAGE = "results.json", "page.html"


def write_folder(data: dict[str, Any], folder: Path, earlier: KeptContest | None = None) -> None:
    """Write the data, the pages made of it and the plots into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    contest = kept_from(data)
    written = json.dumps(data, ensure_ascii=False, indent=2)
    (folder / DATA).write_text(written + "\n", encoding="utf-8")
    (folder / "index.md").write_text(as_markdown(contest, draw(contest, folder)), encoding="utf-8")
    (folder / PAGE).write_text(page_of(contest, earlier), encoding="utf-8")
