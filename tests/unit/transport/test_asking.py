"""Whatever a provider does, the caller gets an answer or a clear error, in time, and nobody sees the key."""

from __future__ import annotations

import socket
import threading
import time
import traceback
from email.utils import formatdate
from typing import Any

import pytest

from tests.faulty_server import Fault, FaultyServer
from whyrank.errors import (
    ConfigError,
    ProviderError,
    ProviderGarbage,
    ProviderRefused,
    ProviderTimeout,
    ProviderUnavailable,
)
from whyrank.providers.endpoint import Endpoint, Key, Patience, checked_url, masked_url, without_users
from whyrank.providers.http import Transport

SECRET = "sk-very-secret-0123456789"
PATIENCE = Patience(total_s=10.0)


class Asking:
    """A transport whose pauses are written down instead of slept."""

    def __init__(self, url: str, patience: Patience = PATIENCE, key: str | None = None, **options: Any) -> None:
        self.pauses: list[float] = []
        endpoint = Endpoint(url, "embedder", Key(key, "a test") if key else None)
        self.transport = Transport(endpoint, patience, sleep=self.pauses.append, draw=lambda: 0.0, **options)

    def ask(self) -> dict[str, Any]:
        return self.transport.post("embeddings", {"input": ["tea"], "model": "m"})


def failure(server: FaultyServer, **options: Any) -> ProviderError:
    with pytest.raises(ProviderError) as caught:
        Asking(server.url, **options).ask()
    return caught.value


@pytest.mark.parametrize(
    ("fault", "kind"),
    [
        ("400", ProviderRefused),
        ("401", ProviderRefused),
        ("403", ProviderRefused),
        ("404", ProviderRefused),
        ("413", ProviderRefused),
        ("garbage", ProviderGarbage),
        ("not-an-object", ProviderGarbage),
        ("deep", ProviderGarbage),
        ("empty", ProviderGarbage),
        ("redirect-elsewhere", ProviderRefused),
    ],
)
def test_what_waiting_does_not_mend_is_said_at_once(fault: Fault, kind: type[ProviderError]) -> None:
    with FaultyServer([fault]) as server:
        error = failure(server)
        assert type(error) is kind
        assert error.hint
        assert len(server.requests) == 1


@pytest.mark.parametrize("fault", ["429", "500", "503", "cut"])
def test_what_may_pass_is_tried_again(fault: Fault) -> None:
    with FaultyServer([fault, fault]) as server:
        asking = Asking(server.url)
        assert len(asking.ask()["data"]) == 1
        # 0.5 · 2⁰, 0.5 · 2¹, nothing left to chance
        assert asking.pauses == [0.5, 1.0]


def test_after_so_many_attempts_it_is_given_up_with_the_providers_words() -> None:
    with FaultyServer(["503"] * 9) as server:
        error = failure(server, patience=Patience(total_s=10, attempts=3))
        assert type(error) is ProviderUnavailable
        assert "planned 503" in error.message
        assert len(server.requests) == 3


def test_pauses_grow_to_a_limit_and_chance_only_shortens_them() -> None:
    patience = Patience(first_pause_s=0.5, longest_pause_s=3.0, jitter=0.5)
    assert [patience.pause_s(attempt, 0.0) for attempt in (1, 2, 3, 4, 5, 2_000)] == [0.5, 1.0, 2.0, 3.0, 3.0, 3.0]
    assert patience.pause_s(2, 1.0) == 1.0 * (1 - 0.5 * 1.0)
    assert patience.pause_s(1, 0.0, asked_for_s=7.0) == 7.0


def test_retry_after_is_kept_to_in_seconds_and_as_a_date() -> None:
    with FaultyServer(["429"], retry_after="3") as server:
        asking = Asking(server.url)
        asking.ask()
        assert asking.pauses == [3.0]
    with FaultyServer(["429"], retry_after=formatdate(time.time() + 4, usegmt=True)) as server:
        asking = Asking(server.url)
        asking.ask()
        assert 2.0 < asking.pauses[0] <= 4.0


@pytest.mark.parametrize("nonsense", ["soon", "-5", "nan", "inf", "Thu, 99 Foo"])
def test_a_retry_after_that_makes_no_sense_is_not_kept_to(nonsense: str) -> None:
    with FaultyServer(["429"], retry_after=nonsense) as server:
        asking = Asking(server.url)
        asking.ask()
        assert asking.pauses == [0.5]


def test_who_asks_for_more_time_than_there_is_is_not_waited_for() -> None:
    with FaultyServer(["429"], retry_after="3600") as server:
        error = failure(server)
        assert isinstance(error, ProviderUnavailable)
        assert error.retry_after_s == 3600
        assert "3600 seconds" in error.hint
        assert len(server.requests) == 1


@pytest.mark.parametrize("fault", ["hang", "drip", "drip-headers"])
def test_a_deadline_covers_silence_and_slow_drips_alike(fault: Fault) -> None:
    with FaultyServer([fault]) as server:
        before = threading.active_count()
        start = time.monotonic()
        error = failure(server, patience=Patience(total_s=0.4))
        spent = time.monotonic() - start
        assert type(error) is ProviderTimeout
        assert "0.4 seconds" in error.message
        assert 0.3 < spent < 15  # and they would hang for 30
        assert threading.active_count() <= before + 1  # the server's own; ours has ended


def test_who_is_late_before_there_is_a_connection_sends_nothing_afterwards(monkeypatch: pytest.MonkeyPatch) -> None:
    looked_up = socket.getaddrinfo

    def slow(*arguments: Any, **options: Any) -> Any:
        time.sleep(1.0)
        return looked_up(*arguments, **options)

    monkeypatch.setattr(socket, "getaddrinfo", slow)
    with FaultyServer() as server:
        assert type(failure(server, patience=Patience(total_s=0.2))) is ProviderTimeout
        time.sleep(1.5)
        assert server.requests == []


def test_an_answer_without_end_is_cut() -> None:
    with FaultyServer(["huge"]) as server:
        error = failure(server, most_bytes=1_000_000)
        assert type(error) is ProviderGarbage
        assert "1 MB" in error.message


def test_a_redirect_on_the_same_host_is_followed_and_circles_are_not() -> None:
    with FaultyServer(["redirect-here"]) as server:
        assert len(Asking(server.url).ask()["data"]) == 1
        assert [request.path for request in server.requests] == ["/v1/embeddings"] * 2
    with FaultyServer(["redirect-here"] * 9) as server:
        assert "in a loop" in failure(server).message


def test_a_redirect_to_another_host_names_it_and_goes_nowhere() -> None:
    with FaultyServer(["redirect-elsewhere"]) as server:
        error = failure(server, key=SECRET)
        assert "localhost.example" in error.message
        assert "embedder.url" in error.hint


def test_nobody_there_is_unavailable_and_says_where_to_look() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}/v1"
        asking = Asking(url, Patience(total_s=5, attempts=2))
        with pytest.raises(ProviderUnavailable) as caught:
            asking.ask()
    assert "embedder.url" in caught.value.hint
    assert asking.pauses == [0.5]


def test_a_connection_is_used_again() -> None:
    with FaultyServer() as server:
        asking = Asking(server.url)
        for _ in range(3):
            asking.ask()
        assert len({request.headers.get("host") for request in server.requests}) == 1
        assert len(asking.transport._lines._idle) == 1


def test_the_key_is_sent_and_shown_nowhere(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(0), FaultyServer(["ok", "401"], key="another") as server:
        asking = Asking(server.url, key=SECRET)
        for _ in range(2):  # the server quotes the key, then does not
            with pytest.raises(ProviderRefused) as caught:
                asking.ask()
            told = "".join(traceback.format_exception(caught.value)) + repr(caught.value) + str(caught.value)
            assert SECRET not in told
            assert "a test" in caught.value.hint
        assert [request.headers["authorization"] for request in server.requests] == [f"Bearer {SECRET}"] * 2
        assert SECRET not in repr(asking.transport)
        assert SECRET not in repr(vars(asking.transport.endpoint))
    assert SECRET not in caplog.text


@pytest.mark.parametrize("secret", ["", "two words", "line\nHost: evil", "ключ", "a\0b"])
def test_what_cannot_be_a_key_is_refused_without_being_shown(secret: str) -> None:
    with pytest.raises(ConfigError) as caught:
        Key(secret, "the file")
    assert not secret or secret not in str(caught.value)


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("http://localhost:11434", "http://localhost:11434/v1"),
        ("http://localhost:11434/", "http://localhost:11434/v1"),
        ("https://API.openai.com/v1/", "https://api.openai.com/v1"),
        (" https://host/some/path ", "https://host/some/path"),
        ("http://[::1]:8080", "http://[::1]:8080/v1"),
    ],
)
def test_a_url_has_one_form(given: str, meant: str) -> None:
    assert checked_url(given) == meant


@pytest.mark.parametrize(
    "given",
    [
        "", "localhost:11434", "ftp://host", "http://", "http://user:pass@host", "http://host/?key=1", "http://host#x",
        "http://host:99999", "http://ho\nst/", "file:///etc/passwd", "http://[::1",
    ],
)  # fmt: skip
def test_what_is_no_url_is_refused(given: str) -> None:
    with pytest.raises(ValueError, match="must"):
        checked_url(given)


@pytest.mark.parametrize(("given", "shown"), [
    ("http://user:hunter2@localhost:1/v1", "http://…@localhost:1/v1"),
    ("http://hunter2@localhost/v1", "http://…@localhost/v1"),
    ("user:hunter2@host", "…@host"),
    ("http://user:hun@ter2@host/v1", "http://…@host/v1"),
    ("http://user:hun/ter2@host/v1", "http://…@host/v1"),
    ("http://user:hunter2", "http://user:…"),
    ("http://host/v1?api_key=hunter2", "http://host/v1?…"),
    ("http://host/v1#hunter2", "http://host/v1?…"),
    ("['http://user:hunter2@host']", "…@host']"),
    ("http://localhost:11434/v1", "http://localhost:11434/v1"),
    ("http://[::1]:11434/v1", "http://[::1]:11434/v1"),
    ("ftp://host", "ftp://host"),
])  # fmt: skip
def test_a_url_is_shown_without_what_may_be_secret(given: str, shown: str) -> None:
    assert masked_url(given) == shown


def test_an_endpoint_shows_no_password_in_its_repr_or_host() -> None:
    endpoint = Endpoint("http://user:hunter2@localhost:1/v1", "llm")
    assert "hunter2" not in repr(Transport(endpoint)) + endpoint.host


@pytest.mark.parametrize(
    "given", ["http://user:hunter2", "http://user:hunter2@[x", "http://u:hunter2@h\u2100st/", "http://u:hunter2@h"]
)
def test_why_a_url_is_none_is_said_without_quoting_it(given: str) -> None:
    with pytest.raises(ValueError, match="must") as caught:
        checked_url(given)
    assert "hunter2" not in "".join(traceback.format_exception(caught.value)).split("ValueError")[-1]
    assert caught.value.__cause__ is None


def test_urls_in_the_words_of_others_lose_their_users() -> None:
    assert without_users("see http://u:hunter2@proxy:3128/ first") == "see http://…@proxy:3128/ first"
