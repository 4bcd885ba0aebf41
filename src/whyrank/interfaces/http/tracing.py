"""Spans for OpenTelemetry: one for each request and one for each stage of its search, where somebody asks for them."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from opentelemetry.trace import Span, Tracer

_WHOLE = "total"  # what a search calls all of its stages together
_NANOSECONDS_PER_MILLISECOND = 1_000_000
_FIRST_FAILURE = 500


class Tracing:
    """Writes spans to a tracer."""

    def __init__(self, tracer: Tracer) -> None:
        self._tracer = tracer

    def begin(self, method: str, headers: Mapping[str, str]) -> Span:
        """Begin the span of a request, below that of whoever asked, if they said so."""
        from opentelemetry.propagate import extract
        from opentelemetry.trace import SpanKind

        attributes = {"http.request.method": method}
        return self._tracer.start_span(method, extract(headers), SpanKind.SERVER, attributes)

    def end(self, span: Span, route: str, status: int, identity: str) -> None:
        """End the span of a request."""
        from opentelemetry.trace import StatusCode

        method = span.attributes["http.request.method"] if hasattr(span, "attributes") else ""
        span.update_name(f"{method} {route}".strip())
        span.set_attribute("http.route", route)
        span.set_attribute("http.response.status_code", status)
        span.set_attribute("whyrank.request_id", identity)
        if status >= _FIRST_FAILURE:
            span.set_status(StatusCode.ERROR)
        span.end()

    def stages(self, span: Span, began_ns: int, timings: Mapping[str, float]) -> None:
        """Write the stages of a search below a request: one after the other, as they were done."""
        from opentelemetry.trace import set_span_in_context

        below, at = set_span_in_context(span), began_ns
        for stage, spent in timings.items():
            if stage != _WHOLE:
                child = self._tracer.start_span(f"search.{stage}", below, start_time=at)
                at += round(spent * _NANOSECONDS_PER_MILLISECOND)
                child.end(at)


def tracing(exports: bool) -> Tracing | None:
    """Return what writes spans, if OpenTelemetry is installed and in use here; `exports` asks for it to be set up."""
    if importlib.util.find_spec("opentelemetry") is None or not (exports or "opentelemetry.trace" in sys.modules):
        return None
    from opentelemetry import trace

    if exports:
        _set_up()
    return Tracing(trace.get_tracer("whyrank"))


def _set_up() -> None:
    """Send spans to where the environment says, unless whoever started us has seen to that."""
    from opentelemetry import trace

    if not isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider):
        return
    if importlib.util.find_spec("opentelemetry.exporter") is None:
        return
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    provider = TracerProvider()
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    trace.set_tracer_provider(provider)
