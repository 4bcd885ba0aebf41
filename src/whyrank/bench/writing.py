"""The folder of a contest: its data, and the pages and plots made of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from .kept import KeptContest, kept_from
from .page import page_of
from .plots import PICTURES, draw
from .report import as_markdown

DATA, PAGE, INDEX = "results.json", "page.html", "index.md"


def write_folder(data: dict[str, Any], folder: Path, earlier: KeptContest | None = None) -> list[Path]:
    """Write the data, the pages made of it and the plots into a folder; return the files."""
    folder.mkdir(parents=True, exist_ok=True)
    contest = kept_from(data)
    plots = draw(contest, folder)
    texts = {
        DATA: json.dumps(data, ensure_ascii=False, indent=2) + "\n",
        INDEX: as_markdown(contest, plots),
        PAGE: page_of(contest, earlier),
    }
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8")
    return [folder / name for name in (*texts, *(f"{plot}.{ending}" for plot in plots for ending in PICTURES))]
