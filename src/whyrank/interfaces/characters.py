"""What text may do to whoever it is shown to: nothing."""

from __future__ import annotations

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
