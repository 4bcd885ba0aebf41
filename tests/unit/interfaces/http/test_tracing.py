"""Spans are written to the real SDK: one for each request, one for each stage of its search below it."""

from __future__ import annotations

import asyncio
import io
import sys
import threading
from typing import TYPE_CHECKING

import httpx
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

from whyrank.engine.open import open_engine
from whyrank.interfaces.auth import auth_policy
from whyrank.interfaces.engine_pool import Access, PooledEngine
from whyrank.interfaces.http.app import Application, Principal
from whyrank.interfaces.http.observability import Log, Tracing, tracing

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


def test_a_request_and_its_stages_are_spans(tmp_path: Path) -> None:
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    with open_engine(tmp_path / "memory.db", workspace=tmp_path, embedding="none") as engine:
        engine.add("Robin prefers green tea")
    pooled = PooledEngine(
        tmp_path / "memory.db", lambda store: open_engine(store, workspace=tmp_path, embedding="none")
    )
    principal = Principal("", auth_policy("127.0.0.1", [], None), Access(pooled))
    application = Application(
        [principal], Log(as_json=False, out=io.StringIO()), threading.Event(), Tracing(provider.get_tracer("test"))
    )

    async def ask() -> None:
        transport = httpx.ASGITransport(application)
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
            headers = {"traceparent": PARENT, "x-request-id": "mine"}
            answer = await client.post("/v1/search", json={"query": "green tea"}, headers=headers)
            assert answer.json()["verdict"] == "found"
            assert (await client.get("/v1/nothing")).status_code == 404

    asyncio.run(ask())
    pooled.close()
    *stages, request, missing = exporter.get_finished_spans()
    assert request.name == "POST /v1/search"
    assert request.kind is SpanKind.SERVER
    assert request.parent is not None
    assert f"{request.context.trace_id:032x}" == PARENT[3:35]
    assert dict(request.attributes or {}) == {
        "http.request.method": "POST", "http.route": "/v1/search", "http.response.status_code": 200,
        "whyrank.request_id": "mine",
    }  # fmt: skip
    assert {"search.analysis", "search.keyword", "search.ranking"} <= {stage.name for stage in stages}
    for stage in stages:
        assert stage.parent is not None
        assert stage.parent.span_id == request.context.span_id
        assert (stage.end_time or 0) <= (request.end_time or 0)
    assert (missing.name, missing.status.status_code) == ("GET none", StatusCode.UNSET)
    assert "green tea" not in str([span.to_json() for span in exporter.get_finished_spans()])


def test_nobody_who_does_not_ask_for_spans_gets_any() -> None:
    assert tracing(exports=False) is None or isinstance(tracing(exports=False), Tracing)


def test_spans_that_nothing_can_send_are_a_line_in_the_log(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry.exporter.otlp.proto.http.trace_exporter", None)
    spans = tracing(exports=True)
    assert spans is not None  # somebody else may have set up where they go
    spans.close()
    assert "pip install 'whyrank[otel]'" in caplog.text
