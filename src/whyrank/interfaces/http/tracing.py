"""Spans for OpenTelemetry: one for each request and one for each stage of its search, where somebody asks for them."""

from __future__ import annotations

import importlib.util
import logging
import sys
import threading
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING

from ... import __version__

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.trace import Span, Tracer

_WHOLE = "total"  # what a search calls all of its stages together
_NANOSECONDS_PER_MILLISECOND = 1_000_000
_FIRST_FAILURE = 500
_SECONDS_TO_LEAVE = 2.0  # for a collector to take the last spans
_UNNAMED = "unknown_service"  # what a service is called that the environment does not name
_MISSING = "spans are asked for, but nothing is here to send them: pip install 'whyrank[otel]'"
_log = logging.getLogger(__name__)


class Tracing:
    """Writes spans to a tracer."""

    def __init__(self, tracer: Tracer, close: Callable[[], None] = lambda: None) -> None:
        self._tracer = tracer
        self.close = close

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
        if exports:
            _log.warning(_MISSING)
        return None
    from opentelemetry import trace

    provider = _set_up() if exports else None
    return Tracing(trace.get_tracer("whyrank"), partial(_left, provider) if provider else lambda: None)


def _set_up() -> TracerProvider | None:
    """Send spans to where the environment says, unless whoever started us has seen to that."""
    from opentelemetry import trace

    if not isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider):
        return None
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
    except ImportError:
        _log.warning(_MISSING)
        return None
    resource = Resource.create()
    if str(resource.attributes.get("service.name", _UNNAMED)).startswith(_UNNAMED):
        resource = resource.merge(Resource({"service.name": "whyrank", "service.version": __version__}))
    # Left to itself it would wait, when the process ends, for as long as it tries a collector that is gone.
    provider = TracerProvider(resource=resource, shutdown_on_exit=False)
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    trace.set_tracer_provider(provider)
    return provider


def _left(provider: TracerProvider) -> None:
    """Send what has not been sent; a collector that does not take it in time does not keep us."""
    sending = threading.Thread(target=provider.shutdown, name="whyrank-spans", daemon=True)
    sending.start()
    sending.join(_SECONDS_TO_LEAVE)
    if sending.is_alive():
        _log.warning("the last spans were not taken within %.0f seconds", _SECONDS_TO_LEAVE)
