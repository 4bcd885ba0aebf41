"""A ticket lets one browser in, once and for a moment, and nobody else on the machine can read it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from whyrank.interfaces.http.app import Ticket, is_good, issued

PAGE = "http://127.0.0.1:8643/"


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


def test_its_file_leads_to_the_page_and_is_ours_alone(home: Path) -> None:
    with issued(PAGE) as ticket:
        file = Path(ticket.file)
        assert f'content="0; url={PAGE}#ticket={ticket.text}"' in file.read_text(encoding="utf-8")
        assert file.stat().st_mode & 0o777 == 0o600
        assert file.parent.stat().st_mode & 0o777 == 0o700
        assert file.parent.parent == home
        # Browsers that are kept apart from the system may not read what is hidden.
        assert not any(part.startswith(".") for part in file.relative_to(home).parts)
    assert list(home.iterdir()) == []


def test_it_is_good_once() -> None:
    with issued(PAGE) as ticket:
        assert is_good(ticket, ticket.text)
        assert not Path(ticket.file).parent.exists()
        assert not is_good(ticket, ticket.text)


def test_a_wrong_one_uses_nothing_up() -> None:
    with issued(PAGE) as ticket:
        for wrong in ("", ticket.text[:-1], f"{ticket.text}x", "\ud800", "é"):
            assert not is_good(ticket, wrong)
        assert is_good(ticket, ticket.text)


def test_an_old_one_is_good_for_nothing() -> None:
    with issued(PAGE) as ticket:
        assert not is_good(ticket._replace(until=0.0), ticket.text)
        assert not Path(ticket.file).exists()


def test_where_none_was_issued_none_is_good() -> None:
    assert not is_good(None, "")
    assert not is_good(Ticket("text", "/nowhere/at/all", 1e18), "text")


def test_without_a_home_it_lies_where_temporary_things_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "nowhere"))
    with issued(PAGE) as ticket:
        assert not Path(ticket.file).is_relative_to(tmp_path / "nowhere")
        assert is_good(ticket, ticket.text)


def test_no_two_are_alike_and_each_can_stand_in_an_address() -> None:
    with issued(PAGE) as one, issued(PAGE) as other:
        assert one.text != other.text
        assert re.fullmatch(r"[A-Za-z0-9_-]{43}", one.text)


def test_a_page_by_any_name_stays_an_address() -> None:
    with issued('http://"><script>/') as ticket:
        assert "<script>" not in Path(ticket.file).read_text(encoding="utf-8")
