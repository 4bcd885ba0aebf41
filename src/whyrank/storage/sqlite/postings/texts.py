"""The tokens of memories as the index keeps them: sealed, and made anew where they cannot be read."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator

from ....analysis.documents import searchable_text
from ....analysis.words import tokens_of
from ..connection import Connection, rows_of
from ..rows import SELECT, as_far_as_legible
from ..sealed import BrokenSeal
from .inversion import Text

# Of zlib's levels. Made small they take half of the room, a twentieth of a note's, and eight times as long to write.
_AS_THEY_ARE = 0
_HEADER = b"\x78\x01\x01"  # of zlib, of no level, and of its last block
_LONGEST_BLOCK = 0xFFFF


def pack(tokens: Iterable[str], row: int) -> bytes:
    """Write the tokens of a row down, with a checksum that is broken in any other row, as zlib stores what it leaves.

    It zeroes its tables for each text, which takes longer than all else of it: what fits one block is written here.
    """
    said = " ".join(tokens).encode("utf-8", errors="replace")
    if len(said) > _LONGEST_BLOCK:
        return _masked(zlib.compress(said, _AS_THEY_ARE), row)
    lengths = len(said).to_bytes(2, "little"), (len(said) ^ _LONGEST_BLOCK).to_bytes(2, "little")
    return b"".join((_HEADER, *lengths, said, (zlib.adler32(said) ^ _mask(row)).to_bytes(4, "big")))


def _mask(row: int) -> int:
    return zlib.crc32(row.to_bytes(8, "big", signed=True))


def _masked(blob: bytes, row: int) -> bytes:
    """Return packed tokens with the checksum they have in a row, or of those of a row with the one that zlib knows."""
    return blob[:-4] + (int.from_bytes(blob[-4:], "big") ^ _mask(row)).to_bytes(4, "big")


def unpack(blob: object, row: int) -> list[str]:
    """Read the packed tokens of a row; earlier versions packed them for any."""
    if not isinstance(blob, bytes):
        raise BrokenSeal
    try:
        text = _decompressed(blob, row).decode("utf-8")
    except (zlib.error, UnicodeDecodeError, OverflowError) as error:
        raise BrokenSeal from error
    return text.split(" ") if text else []


def _decompressed(blob: bytes, row: int) -> bytes:
    try:
        return zlib.decompress(_masked(blob, row))
    except zlib.error:
        return zlib.decompress(blob)


def tokens_in(connection: Connection, scope: str, number: int, row: int, blob: object) -> list[str]:
    """Read the packed tokens of a memory; what cannot be read is analysed again."""
    try:
        return unpack(blob, row)
    except BrokenSeal:
        return [token for text in _analysed(connection, scope, number) for token in text.tokens]


def stored_texts(connection: Connection, scope: str, first: int, last: int) -> list[Text]:
    """Return the tokens of the memories from `first` to `last`, by ascending number; those of a lost row are made anew.

    Tokens of no memory are left out: its row was lost, and it cannot answer.
    """
    rows = rows_of(
        connection,
        "SELECT number, tokens, letters, dates FROM posting_tokens "
        "WHERE scope = ? AND number BETWEEN ? AND ? ORDER BY number",
        (scope, first, last),
    )
    living = connection.execute(
        "SELECT number, row FROM memories WHERE scope = ? AND number BETWEEN ? AND ? AND typeof(number) = 'integer' "
        "ORDER BY number",
        (scope, first, last),
    ).fetchall()
    known = {number: columns for number, *columns in rows}
    texts: list[Text] = []
    for number, row in living:
        if number not in known:
            texts += _analysed(connection, scope, number)
            continue
        blob, letters, dates = known[number]
        marks = tuple(dates.split()) if isinstance(dates, str) else ()
        texts.append(Text(number, tokens_in(connection, scope, number, row, blob), bool(letters), marks))
    return texts


def _analysed(connection: Connection, scope: str, number: int) -> Iterator[Text]:
    """Analyse a memory again, if it is there."""
    language = connection.execute("SELECT value FROM meta WHERE key = 'language'").fetchone()
    for letters, dates, *row in rows_of(
        connection,
        f"SELECT m.letters, m.dates, {SELECT} FROM memories AS m WHERE m.scope = ? AND m.number = ?",
        (scope, number),
    ):
        tokens = tokens_of(searchable_text(as_far_as_legible(tuple(row))), *(language or ()))
        yield Text(number, list(tokens), bool(letters), tuple(dates.split()) if isinstance(dates, str) else ())
