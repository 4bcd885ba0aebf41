"""What `whyrank eval` leaves behind: kept results, a page, and a comparison with what was kept before."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ... import __version__
from ...errors import ConfigError
from ...evaluation import kept
from ...evaluation.against import Against, Duel, against
from ...evaluation.against import as_data as compared_as_data
from ...evaluation.report.whole import page_of
from ...wording import counted
from ..failures import OK, TRAIL_BROKEN
from . import output
from .evaluations import say_kept
from .files import check_data, check_page, tell_written
from .grammar.measuring import BESIDE_THE_STORE
from .verbs import settings_of

# Settings that change what is found; none of them is a secret or a place.
_TOLD = {"embedding", "keyword", "language"} | {f"embedder.{of}" for of in ("model", "dimension", "prompt", "weight")}
_TOLD_ROOMS = ("chunk.", "ranking.")


class Report:
    """Checks what it can before anything is measured, so that no work is lost on a wrong name."""

    def __init__(self, asked: argparse.Namespace) -> None:
        _check(asked)
        self._asked = asked
        self._before = kept.read(Path(asked.against)) if asked.against else None
        self._kept_in = _place_of(asked)
        if asked.html:
            check_page(Path(asked.html))
        if self._kept_in:
            check_data(self._kept_in, "an evaluation that was kept", kept.is_kept)

    def shown_again(self) -> int:
        """Show results that were kept, without measuring."""
        data = kept.read_data(Path(self._asked.kept))
        found = self._show(data)
        return TRAIL_BROKEN.exit_status if any(one.broken for one in found.sets) else OK

    def finish(
        self,
        sets: Sequence[dict[str, Any]] | None = None,
        abstention: Sequence[dict[str, Any]] | None = None,
        written: Sequence[str] = (),
    ) -> None:
        """Keep, draw, compare and print what was measured; some files may be written already."""
        made = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
        data = kept.as_data(__version__, made, self._settings(), sets, abstention)
        if self._kept_in is not None:
            kept.write(data, self._kept_in)
        self._show(data, [*written, *([str(self._kept_in)] if self._kept_in else [])])

    def _show(self, data: dict[str, Any], written: Sequence[str] = ()) -> kept.Kept:
        """Draw, compare and print results, whether they were measured just now or kept; name what was written."""
        found = kept.kept_from(data)
        compared = against(found, self._before) if self._before else None
        if self._asked.html:
            Path(self._asked.html).write_text(page_of(found, compared), encoding="utf-8")
            written = [*written, self._asked.html]
        if self._asked.json:
            more = {"against": compared_as_data(compared)} if compared else {}
            output.say_json({**data, **more, "written": list(written)})
        elif self._asked.kept:
            say_kept(found, self._asked.kept)
        if compared and not self._asked.json:
            _say(compared, self._asked.against)
        tell_written(written)
        return found

    def _settings(self) -> dict[str, str]:
        """Return the settings that change what is found: the embedding, and of the others those that are set."""
        values = settings_of(self._asked).values
        return {
            key: str(value.value)
            for key, value in values.items()
            if (key in _TOLD or key.startswith(_TOLD_ROOMS)) and (key == "embedding" or value.origin != "default")
        }


def is_story_wanted(asked: argparse.Namespace) -> bool:
    """Tell whether the worst queries are to be told: a terminal alone shows none."""
    return bool(asked.html or asked.keep is not None or asked.json)


def _place_of(asked: argparse.Namespace) -> Path | None:
    """Return where results are to be kept: in the file named, else beside the store."""
    if asked.keep != BESIDE_THE_STORE:
        return None if asked.keep is None else Path(asked.keep)
    config = settings_of(asked)
    if not config.store.is_file():
        raise ConfigError(f"there is no store at {config.store} to keep it beside", "name a file, or a --store")
    return config.evaluation


def _check(asked: argparse.Namespace) -> None:
    if asked.kept and asked.sets:
        raise ConfigError("--from shows results that were kept, and measures no SET", "leave one of them out")
    refused = [name for name in ("recipe", "run_out", "keep", "plot") if getattr(asked, name) is not None]
    if asked.kept and (refused or asked.abstention is not None):
        option = "--" + (refused[0] if refused else "abstention").replace("_", "-")
        raise ConfigError(f"{option} needs a measurement, and --from makes none", "leave one of them out")
    if not asked.kept and not asked.sets:
        raise ConfigError("no set is named", "give folders of sets, or --from FILE with results that were kept")
    if asked.abstention is not None and asked.against:
        raise ConfigError("--against compares query by query, which --abstention does not keep", "leave one out")


def _say(compared: Against, file: str) -> None:
    other = compared.other
    output.say(output.bold(f"against {file} (whyrank {other.whyrank}, {other.made})"))
    for duel in compared.duels:
        _say_duel(duel)
    for said in compared.left_out:
        output.say(f"  not compared: {said}")
    if not any(duel.pairs for duel in compared.duels):
        output.say("  nothing can be compared: no set with the same queries is in both")


def _say_duel(duel: Duel) -> None:
    if duel.pairs:
        (before, after), found, (low, high) = duel.means, duel.comparison(), duel.interval()
        counts = f"better {found.better}, worse {found.worse}, same {found.same}, p {found.p:.4f}"
        change = f"{before:.4f} → {after:.4f}, {found.difference:+.4f} ({low:+.4f} to {high:+.4f})"
        output.say(f"{duel.set_name}: {counted(len(duel.pairs), 'query', 'queries')}, {duel.after}: {change}; {counts}")
    for said in duel.left_out:
        output.say(f"  {duel.set_name}, not compared: {said}")
    for said in duel.remarks:
        output.say(f"  {duel.set_name}, mind: {said}")
