"""What text may do to whoever it is shown to: nothing."""

from __future__ import annotations

from typing import Any

_REPLACED = {code: "\ufffd" for code in (*range(0x20), 0x7F, *range(0x80, 0xA0)) if code not in (0x09, 0x0A)}
_REPLACED |= dict.fromkeys((*range(0x202A, 0x202F), *range(0x2066, 0x206A)))  # text that reorders what is shown

# Letters nobody sees and a model reads: the whole block of tags, made for languages, used for smuggling.
_UNSEEN = dict.fromkeys(range(0xE0000, 0xE0080))


def printable(text: str) -> str:
    """Replace control characters, so that a memory cannot drive the terminal it is shown on."""
    return text.translate(_REPLACED)


def visible(text: str) -> str:
    """Do the same, and take out what only machines would read."""
    return printable(text).translate(_UNSEEN)


def whole_characters(value: Any) -> Any:
    """Return a JSON value whose texts can be encoded: pairs of surrogates joined, a lone one as U+FFFD."""
    if isinstance(value, str):
        try:
            value.isascii() or value.encode()
        except UnicodeEncodeError:
            return value.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
        return value
    if isinstance(value, list):
        return [whole_characters(one) for one in value]
    if isinstance(value, dict):
        return {whole_characters(key): whole_characters(one) for key, one in value.items()}
    return value
