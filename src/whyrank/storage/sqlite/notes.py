"""Texts kept by name in the table `meta`, and in memory for as long as the file does not change."""

from __future__ import annotations

from .connection import Connection

_PREFIX = "note:"


class Notes:
    """Texts by name: a search asks for one each time, so what was read stays until the next write."""

    def __init__(self) -> None:
        self._read: tuple[int, dict[str, str | None]] = (-1, {})

    def get(self, connection: Connection, generation: int, name: str) -> str | None:
        """Return the text under a name, if there is one."""
        since, known = self._read
        if since != generation:
            known = {}
            self._read = (generation, known)
        if name not in known:
            known[name] = self.stored(connection, name)
        return known[name]

    def stored(self, connection: Connection, name: str) -> str | None:
        """Return the text under a name as it stands in the file."""
        row = connection.execute("SELECT value FROM meta WHERE key = ?", (_PREFIX + name,)).fetchone()
        return row[0] if row else None

    def all(self, connection: Connection) -> dict[str, str]:
        """Return all of them."""
        rows = connection.execute(
            "SELECT substr(key, ?), value FROM meta WHERE substr(key, 1, ?) = ? ORDER BY key",
            (len(_PREFIX) + 1, len(_PREFIX), _PREFIX),
        ).fetchall()
        return dict(rows)

    def put(self, connection: Connection, name: str, text: str) -> None:
        """Write one, inside the transaction at hand."""
        connection.execute("UPDATE meta SET value = value + 1 WHERE key = 'generation'")
        connection.execute(
            "INSERT INTO meta VALUES (?, ?) ON CONFLICT DO UPDATE SET value = excluded.value", (_PREFIX + name, text)
        )
