"""Facts extracted from files by a language model."""

from __future__ import annotations

import argparse

from .parts import Family, Once, verb


def add_verbs(family: Family) -> None:
    """Add the verbs of this family."""
    _ingest_files(verb(family, "ingest-files", "extract facts from files by a language model", _INGEST_FILES))


_INGEST_FILES = """Let a language model extract facts from the files of the workspace (skills, TOOLS.md, AGENTS.md) and
store them, each with the file and lines it comes from and the tag `ingest`. A fact is stored only if the words it rests
on stand in the file, and if nothing stored says the same. A file is asked about once: a run that was stopped goes on
where it was, and unchanged files cost nothing. Needs the settings llm.url and llm.model.

  whyrank ingest-files --plan                  count files, chunks and tokens; the model is not asked
  whyrank ingest-files --dry-run               ask, show what would be stored, store nothing (a run asks again)
  whyrank ingest-files                         ask and store
  whyrank ingest-files --paths "docs/**/*.md,TOOLS.md" --scope agent:helper
  whyrank ingest-files --left-out              print lines of earlier runs that were not stored, and why"""


def _ingest_files(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--paths", metavar="GLOBS", help="patterns of files below the workspace, with commas (setting ingest.paths)"
    )
    parser.add_argument("--scope", action=Once, default="global", metavar="S", help="whose facts they are (global)")
    one = parser.add_mutually_exclusive_group()
    one.add_argument("--dry-run", action="store_true", help="ask the model, store nothing, show what would be stored")
    one.add_argument("--plan", action="store_true", help="ask nothing, store nothing, say how much would be asked")
    one.add_argument("--left-out", action="store_true", help="print what earlier runs did not store, and why")
