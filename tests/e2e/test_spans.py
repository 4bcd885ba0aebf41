"""Spans go to a collector over OTLP; one that is gone harms neither the answers nor the end of a server."""

from __future__ import annotations

import gzip
import http.server
import socket
import threading
import time
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from .conftest import SECONDS
from .rest import ended, searched, serving

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from opentelemetry.proto.trace.v1.trace_pb2 import Span

STAGES = {"search.analysis", "search.embedding", "search.keyword", "search.vector", "search.scoring", "search.ranking"}
QUESTION = "what does Suzy drink in private"
ENDING_SECONDS = 8.0  # the exporter by itself would try for 10 and more


class Collector(http.server.ThreadingHTTPServer):
    """Takes in spans at /v1/traces."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Taking)
        self.bodies: list[bytes] = []
        self.paths: set[str] = set()

    @property
    def services(self) -> set[str]:
        """Return who says to have sent spans."""
        resources = [one.resource for body in self.bodies for one in _request(body).resource_spans]
        attributes = [one for resource in resources for one in resource.attributes]
        return {one.value.string_value for one in attributes if one.key == "service.name"}

    @property
    def spans(self) -> list[Span]:
        """Return the spans that came."""
        resources = [one for body in self.bodies for one in _request(body).resource_spans]
        return [span for resource in resources for scope in resource.scope_spans for span in scope.spans]


def _request(body: bytes) -> ExportTraceServiceRequest:
    request = ExportTraceServiceRequest()
    request.ParseFromString(body)
    return request


class Taking(http.server.BaseHTTPRequestHandler):
    """Keeps what was sent, and says that it was taken."""

    server: Collector

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        self.server.bodies.append(gzip.decompress(body) if self.headers["content-encoding"] == "gzip" else body)
        self.server.paths.add(self.path)
        self.send_response(200)
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def collector() -> Iterator[Collector]:
    with Collector() as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@contextmanager
def nobody() -> Iterator[str]:
    """Yield an address at which nobody listens, kept so that nobody will."""
    with socket.socket() as kept:
        kept.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{kept.getsockname()[1]}"


@contextmanager
def silence() -> Iterator[str]:
    """Yield an address at which somebody takes connections and never answers."""
    with socket.create_server(("127.0.0.1", 0), backlog=64) as listening:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"


@pytest.mark.parametrize("workers", ["1", "2"])
def test_the_stages_of_a_search_arrive_at_the_collector(workspace: Path, collector: Collector, workers: str) -> None:
    address = f"http://127.0.0.1:{collector.server_port}"
    with serving(workspace, "--workers", workers, OTEL_EXPORTER_OTLP_ENDPOINT=address) as server:
        answer = searched(server, QUESTION)
        assert answer.json()["hits"]
        ended(server)  # by which everything is sent
    assert collector.paths == {"/v1/traces"}
    assert collector.services == {"whyrank"}
    [request] = [span for span in collector.spans if span.name == "POST /v1/search"]
    told = {one.key: one.value.string_value or one.value.int_value for one in request.attributes}
    assert told["whyrank.request_id"] == answer.headers["x-request-id"]
    assert told["http.response.status_code"] == 200
    stages = [span for span in collector.spans if span.parent_span_id == request.span_id]
    assert {span.name for span in stages} >= STAGES
    for stage in stages:
        assert request.start_time_unix_nano <= stage.start_time_unix_nano <= stage.end_time_unix_nano
    assert not any(word in body for word in (b"Suzy", b"private") for body in collector.bodies)


def test_the_environment_may_name_the_service(workspace: Path, collector: Collector) -> None:
    address = f"http://127.0.0.1:{collector.server_port}"
    with serving(workspace, OTEL_EXPORTER_OTLP_ENDPOINT=address, OTEL_SERVICE_NAME="notes") as server:
        searched(server, QUESTION)
        ended(server)
    assert collector.services == {"notes"}


@pytest.mark.parametrize("gone", [nobody, silence], ids=["nobody", "silence"])
@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_collector_that_is_gone_keeps_nobody(
    workspace: Path, gone: Callable[[], AbstractContextManager[str]], workers: str
) -> None:
    with (
        gone() as address,
        serving(
            workspace, "--workers", workers, OTEL_EXPORTER_OTLP_ENDPOINT=address, OTEL_BSP_SCHEDULE_DELAY="100"
        ) as server,
    ):
        searched(server, QUESTION)
        time.sleep(0.5)  # by then the first spans are on their way to nowhere
        began = time.monotonic()
        assert {searched(server, QUESTION).status_code for _ in range(50)} == {200}
        assert time.monotonic() - began < SECONDS / 6
        began = time.monotonic()
        _, log = ended(server)
        assert time.monotonic() - began < ENDING_SECONDS
        assert server.process.returncode == 0
    assert "the last spans were not accepted" in log
    assert "Traceback" not in log
    assert "Suzy" not in log
