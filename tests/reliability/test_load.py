"""Four writers and eight readers for twenty seconds: no error, nobody locked out, nothing lost."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .load import READERS, WRITERS, run

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

LOAD_S = 20.0


def test_writers_and_readers_do_not_fail_each_other(
    tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    counted, errors, notices = run(tmp_path, LOAD_S)
    record_property("load", counted)
    print(counted)  # waits are the machine's too: `pytest -rP` shows them, the soak publishes them
    assert errors == []
    assert notices["not-indexed-yet"] == 0
    assert counted["writes"] > WRITERS
    assert counted["reads"] > READERS
