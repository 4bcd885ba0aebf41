"""The names of embedding models, as users type them."""

from __future__ import annotations

import re
from difflib import get_close_matches
from pathlib import Path

from ..errors import ConfigError

FETCHED = ("minilm", "minilm-int8", "granite", "bge-small")  # fetched once, known by pinned hashes
MULTILINGUAL = "multilingual"  # fetched once too, and read by numpy alone
SERVED = "openai"  # a model behind an OpenAI-compatible server, made from settings
DEFAULT = "wordllama"  # part of the installation
NAMES = (DEFAULT, *FETCHED, MULTILINGUAL, SERVED, "none")
# Any other model in ONNX: of Hugging Face, perhaps of one revision, or copied from a folder.
HUB_NAME = re.compile(r"hf:(\w[\w.-]*/\w[\w.-]*)(?:@(\w[\w.-]*))?", re.ASCII)
FOLDER_NAME = re.compile(r"folder:(\w[\w.-]*)", re.ASCII)
_NO_LETTER = re.compile(r"[^\w.-]+", re.ASCII)


def check_name(name: str) -> None:
    """Refuse a name that no embedder can have, with a suggestion."""
    if name in NAMES or is_recorded_name(name):
        return
    if name.startswith(("hf:", "folder:")):
        raise ConfigError(
            f"{name!r} names no model", "it is hf:ORG/MODEL or hf:ORG/MODEL@REVISION, or the path of a folder"
        )
    if is_path(name):
        raise ConfigError(f"{name!r} is a path", f"`whyrank model use {name}` installs the model of a folder")
    close = get_close_matches(name, NAMES, n=1)
    meant = f"did you mean {close[0]!r}?" if close else f"the embedders are {', '.join(NAMES)}, hf:ORG/MODEL, ./FOLDER"
    raise ConfigError(f"there is no embedder {name!r}", meant)


def is_recorded_name(name: str) -> bool:
    """Check for the name of a model from the hub or from a folder, which a record describes."""
    return bool(HUB_NAME.fullmatch(name) or FOLDER_NAME.fullmatch(name))


def is_path(name: str) -> bool:
    """Distinguish a folder path from a name: it has a separator, or is the current folder."""
    return not is_recorded_name(name) and not name.startswith("hf:") and ("/" in name or "\\" in name or name == ".")


def folder_name(folder: Path) -> str:
    """Return the name of a model from a folder."""
    return f"folder:{_NO_LETTER.sub('-', folder.resolve().name).strip('.-') or 'model'}"
