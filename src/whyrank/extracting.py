"""What the facade does with files and a language model: facts extracted, and what was left out of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from .arguments import scope_of
from .calibrations import Calibrating
from .errors import ConfigError, ProviderError
from .places import settled
from .ports import Llm
from .types import GLOBAL, Scope

if TYPE_CHECKING:
    from .ingest.asked import Record
    from .ingest.extraction import Extraction
    from .ingest.extractor import ExtractionSettings
    from .ingest.filling import Progress


class Extracting(Calibrating):
    """Facts from the files of a workspace."""

    _llm: Callable[[str | None], Llm] | None

    def ingest_files(
        self,
        paths: str | Sequence[str] | None = None,
        *,
        workspace: str | Path | None = None,
        scope: str | Scope = GLOBAL,
        dry_run: bool = False,
        plan: bool = False,
        base: str | Path | None = None,
        progress: Progress | None = None,
    ) -> Extraction:
        """Let the language model extract facts from files that match patterns; what was done is not asked again.

        A dry run asks and stores nothing; a plan does not even ask, it counts what would be asked.
        """
        from .ingest.extractor import Extractor  # of no use to a search, which should not wait for it

        owner, model = scope_of(scope), self._language_model(is_needed=not plan)
        chosen = self._extraction_settings(paths, workspace, base)
        if not (dry_run or plan):
            self._serving.adopt()
        extractor = Extractor(self._store, self._embedder, model, chosen, owner, self._clock)
        report = extractor.extract(dry_run=dry_run, plan=plan, progress=progress or (lambda *_: None))
        if report.stored and not dry_run:
            report.remarks += [("calibration", remark) for remark in self._recalibrate([owner])]
        return report

    def _language_model(self, *, is_needed: bool) -> Llm | None:
        """Return the language model of the settings; where none is needed, None will do for one."""
        try:
            return self._llm(None) if self._llm is not None else None
        except ProviderError:
            if is_needed:
                raise
            return None

    def left_out(self, *, scope: str | Scope = GLOBAL) -> list[Record]:
        """Return what was asked about a scope's files and did not end in facts: failed parts, and lines left out."""
        from .ingest.asked import records_of

        records = records_of(self._store, scope_of(scope)).values()
        wanted = (record for record in records if record.left_out or record.outcome == "failed")
        return sorted(wanted, key=lambda record: (record.path, record.start_line, record.at))

    def _extraction_settings(
        self, paths: str | Sequence[str] | None, workspace: str | Path | None, base: str | Path | None
    ) -> ExtractionSettings:
        from .ingest.extractor import ExtractionSettings
        from .ingest.globs import parsed
        from .ingest.windows import WindowSize

        config = self._config
        folder = config.workspace if workspace is None else settled(workspace)
        check_workspace(folder)
        return ExtractionSettings(
            workspace=folder,
            base=config.notes if base is None else settled(base),
            patterns=parsed(config["ingest.paths"] if paths is None else paths),
            named=paths is not None,
            size=WindowSize(config["ingest.characters"], config["ingest.overlap"]),
            language=config["language"],
            max_bytes=config["ingest.max_bytes"],
            same_cosine=config["ingest.same_cosine"],
        )


def check_workspace(folder: Path) -> None:
    """Refuse a workspace that is not there."""
    if not folder.is_dir():
        raise ConfigError(f"there is no folder {folder}", "name the workspace with --workspace")
