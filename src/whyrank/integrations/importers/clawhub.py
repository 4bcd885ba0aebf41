"""ClawHub: folders of skills, each with a SKILL.md, which are ingested."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...errors import ConfigError
from ...formatting import counted
from ...ingest.documents import SKILL_FILE

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from .records import Findings


def files(path: Path, findings: Findings) -> Sequence[Path]:
    """Return the SKILL.md of a skill, or those of all skills in a folder; links are not followed."""
    if path.is_symlink() or not path.is_dir():
        raise ConfigError(f"{path} is no folder", "name a skill, or a folder of skills such as skills/")
    if _is_skill(path):
        return [path / SKILL_FILE]
    folders = sorted(one for one in path.iterdir() if not one.name.startswith("."))
    skills = [one for one in folders if not one.is_symlink() and one.is_dir() and _is_skill(one)]
    for one in folders:
        if one.is_symlink():
            findings.left_out.append((one.name, "it is a link, and links are not followed"))
        elif one.is_dir() and one not in skills:
            findings.left_out.append((one.name, f"it has no {SKILL_FILE}"))
    if not skills:
        raise ConfigError(f"no skill is in {path}", f"name a folder with a {SKILL_FILE}, or one of such folders")
    findings.remark(path.name, f"{counted(len(skills), 'skill')} found")
    return [one / SKILL_FILE for one in skills]


def _is_skill(folder: Path) -> bool:
    file = folder / SKILL_FILE
    return file.is_file() and not file.is_symlink()
