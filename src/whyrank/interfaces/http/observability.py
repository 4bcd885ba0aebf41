"""Logs, metrics and traces of a server; queries and texts are in none of them."""

from __future__ import annotations

import importlib.util
import json
import logging
import os
import queue
import sys
import threading
from datetime import UTC, datetime
from functools import partial
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Protocol, cast

import prometheus_client as prometheus
from prometheus_client.metrics_core import GaugeMetricFamily, Metric
from prometheus_client.multiprocess import MultiProcessCollector

from ... import __version__
from ...analysis.sanitize import visible

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.trace import Span, Tracer

    from ...protocols import StoreStatus

_WAITING_LINES = 10_000  # of backlog for a slow reader; further lines are dropped and counted
_FLUSH_SECONDS = 1.0


class LogSink(Protocol):
    """Protocol of a text stream whose writes may block."""

    def write(self, text: str, /) -> object:
        """Write a text."""

    def flush(self) -> object:
        """Flush the text."""


class Descriptor:
    """File descriptor as an unbuffered text stream: no buffer has to be flushed when the process ends."""

    def __init__(self, number: int) -> None:
        self._number = number

    def write(self, text: str) -> int:
        """Write a text; may block."""
        left = memoryview(text.encode("utf-8", errors="backslashreplace"))
        while left:
            left = left[os.write(self._number, left) :]
        return len(text)

    def flush(self) -> None:
        """Do nothing: writes are not buffered."""


class LogWriter:
    """Non-blocking log stream with a bounded queue; a stalled reader delays no request."""

    def __init__(self, out: LogSink, lost: Callable[[int], str], waiting: int = _WAITING_LINES) -> None:
        self._out = out
        self._told = lost
        self._texts: queue.Queue[str | None] = queue.Queue(waiting)
        self._lost = 0
        self._thread = threading.Thread(target=self._pass_on, name="whyrank-log", daemon=True)
        self._thread.start()

    def write(self, text: str) -> int:
        """Queue a text; if the queue is full, count it as lost."""
        try:
            self._texts.put_nowait(text)
        except queue.Full:
            self._lost += 1
        return len(text)

    def flush(self) -> None:
        """Do nothing: a thread writes texts as soon as it can."""

    def close(self, seconds: float = _FLUSH_SECONDS) -> None:
        """Wait for the queue to be written, at most so many seconds."""
        try:
            self._texts.put(None, timeout=seconds)
        except queue.Full:
            return
        self._thread.join(seconds)

    def _pass_on(self) -> None:
        while (text := self._texts.get()) is not None:
            lost, self._lost = self._lost, 0
            try:
                self._out.write(f"{self._told(lost)}\n{text}" if lost else text)
                self._out.flush()
            except (OSError, ValueError):
                continue  # the stream is closed, which must not stop the server


_SHOWN_BYTES = 200  # of a path


class Log:
    """Access log, one line per request: method, path without query string, status, time, id."""

    def __init__(self, out: LogSink, *, as_json: bool) -> None:
        self._out = out
        self._as_json = as_json

    def request(self, method: str, path: bytes, status: int, seconds: float, identity: str) -> None:
        """Log a finished request."""
        shown = visible("".join(path[:_SHOWN_BYTES].decode("ascii", errors="backslashreplace").split()))
        told = {"method": method, "path": shown, "status": status, "ms": round(seconds * 1000, 1)}
        if self._as_json:
            self._say(json.dumps({**_stamped("info"), "event": "request", **told, "request_id": identity}))
        else:
            self._say(f"whyrank: {method} {shown} {status} {told['ms']} ms {identity}")

    def _say(self, line: str) -> None:
        self._out.write(f"{line}\n")


def lost_lines(count: int, *, as_json: bool) -> str:
    """Format the notice about lines that were dropped because the reader was too slow."""
    message = f"{count} lines of the log were lost, because nothing read them"
    return json.dumps({**_stamped("warning"), "event": "log", "message": message}) if as_json else f"whyrank: {message}"


class _AsJson(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        told: dict[str, Any] = {**_stamped(record.levelname.lower()), "event": "log", "logger": record.name}
        told["message"] = record.getMessage()
        if record.exc_info:
            told["trace"] = self.formatException(record.exc_info)
        return json.dumps(told)


def log_to(out: LogSink, *, as_json: bool) -> None:
    """Send the logging of libraries and failures to the same stream in the same format."""
    handler = logging.StreamHandler(out)
    handler.setFormatter(_AsJson() if as_json else logging.Formatter("whyrank: %(name)s: %(message)s"))
    logging.basicConfig(level=logging.WARNING, handlers=[handler])


def _stamped(level: str) -> dict[str, str]:
    return {"time": datetime.now(UTC).isoformat(timespec="milliseconds"), "level": level}


FOLDER_VARIABLE = "PROMETHEUS_MULTIPROC_DIR"  # set for workers, before this module is imported
CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_SECONDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)
_TENANT = "tenant"
_SERVER_COUNTS = {
    "connections": "Connections of all programs to the server",
    "max_connections": "Connections that the server accepts",
    "standbys": "Replicas that receive the changes of the server",
    "pool_size": "Connections that this process may have at most",
    "pool_open": "Connections that this process has",
    "pool_in_use": "Connections of this process that are in use",
    "pool_waiting": "Threads of this process that wait for a connection",
    "retries": "Transactions and snapshots that this process has tried again",
}


class Metrics:
    """Prometheus metrics of requests and searches; a tenant sees its own alone."""

    def __init__(self) -> None:
        prometheus.disable_created_metrics()  # type: ignore[no-untyped-call]
        self._registry = own = prometheus.CollectorRegistry()
        self._requests = prometheus.Counter(
            "whyrank_http_requests", "Requests by route and status", [_TENANT, "route", "status"], registry=own
        )
        self._seconds = prometheus.Histogram(
            "whyrank_http_request_seconds", "Duration of requests", [_TENANT, "route"], registry=own, buckets=_SECONDS
        )
        self._queries = prometheus.Counter(
            "whyrank_queries", "Searches by verdict and interface", [_TENANT, "door", "verdict"], registry=own
        )
        self._stages = prometheus.Histogram(
            "whyrank_search_stage_seconds", "Duration of the stages of a search", [_TENANT, "stage"],
            registry=own, buckets=_SECONDS,
        )  # fmt: skip

    def request(self, tenant: str, route: str, status: int, seconds: float) -> None:
        """Count a request."""
        self._requests.labels(tenant, route, str(status)).inc()
        self._seconds.labels(tenant, route).observe(seconds)

    def searched(self, tenant: str, verdict: str, timings: Mapping[str, float]) -> None:
        """Count a search; `timings` are in milliseconds."""
        self._queries.labels(tenant, "http", verdict).inc()
        for stage, spent in timings.items():
            self._stages.labels(tenant, stage).observe(spent / 1000)

    def text(self, tenant: str, stock: StoreStatus) -> bytes:
        """Return the metrics of a tenant, summed over all workers."""
        registry = self._registry
        if FOLDER_VARIABLE in os.environ:
            registry = prometheus.CollectorRegistry()
            MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
        families = [*_own(registry.collect(), tenant), *_held(stock)]
        told = SimpleNamespace(collect=lambda: families)
        return prometheus.generate_latest(cast("prometheus.CollectorRegistry", told))


def _own(families: Iterable[Metric], tenant: str) -> Iterable[Metric]:
    for family in families:
        family.samples = [
            sample._replace(labels={name: value for name, value in sample.labels.items() if name != _TENANT})
            for sample in family.samples
            if sample.labels.get(_TENANT) == tenant
        ]
        yield family


def _held(stock: StoreStatus) -> Iterable[Metric]:
    yield GaugeMetricFamily("whyrank_memories", "Memories in the store", stock.memories)
    if stock.bytes is not None:
        yield GaugeMetricFamily("whyrank_store_bytes", "Size of the store", stock.bytes)
    yield GaugeMetricFamily("whyrank_embedding_queue", "Memories without a vector yet", stock.without_vector)
    caches = GaugeMetricFamily("whyrank_cache_bytes", "Memory held by each cache of this process", labels=["cache"])
    for name, held in stock.caches.items():
        caches.add_metric([name], held)
    yield caches
    for name, told in _SERVER_COUNTS.items():
        if name in stock.server:
            yield GaugeMetricFamily(f"whyrank_postgres_{name}", told, float(stock.server[name]))
    yield from _replicas(stock.server.get("replicas", ()))


def _replicas(replicas: Iterable[Mapping[str, Any]]) -> Iterable[Metric]:
    up = GaugeMetricFamily("whyrank_postgres_replica_up", "Whether a replica may answer searches", labels=["host"])
    behind = GaugeMetricFamily(
        "whyrank_postgres_replica_behind_bytes", "Log that a replica has not replayed", labels=["host"]
    )
    answered = GaugeMetricFamily(
        "whyrank_postgres_replica_answered", "Searches of this process that a replica answered", labels=["host"]
    )
    for one in replicas:
        up.add_metric([one["host"]], one["state"] == "streaming")
        answered.add_metric([one["host"]], one["answered"])
        if one["behind_bytes"] is not None:
            behind.add_metric([one["host"]], one["behind_bytes"])
    yield from (family for family in (up, behind, answered) if family.samples)


def counted(data: Mapping[str, Any]) -> tuple[str, Mapping[str, float]] | None:
    """Return verdict and timings of a search response; None for any other response."""
    return (data["verdict"], data["timings"]) if "verdict" in data and "timings" in data else None


_WHOLE = "total"  # key of the sum of all stages in the timings of a search
_NANOSECONDS_PER_MILLISECOND = 1_000_000
_FIRST_FAILURE = 500
_EXPORT_SECONDS = 2.0  # for a collector to accept the last spans
_UNNAMED = "unknown_service"  # default service name, used if the environment sets none
_MISSING = "spans are requested, but OpenTelemetry is not installed: pip install 'whyrank[otel]'"
_log = logging.getLogger(__name__)


class Tracing:
    """OpenTelemetry spans of requests and search stages."""

    def __init__(self, tracer: Tracer, close: Callable[[], None] = lambda: None) -> None:
        self._tracer = tracer
        self.close = close

    def begin(self, method: str, headers: Mapping[str, str]) -> Span:
        """Begin the span of a request, as a child of the caller's span if the headers carry one."""
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
        """Record the stages of a search as consecutive child spans of the request."""
        from opentelemetry.trace import set_span_in_context

        below, at = set_span_in_context(span), began_ns
        for stage, spent in timings.items():
            if stage != _WHOLE:
                child = self._tracer.start_span(f"search.{stage}", below, start_time=at)
                at += round(spent * _NANOSECONDS_PER_MILLISECOND)
                child.end(at)


def tracing(exports: bool) -> Tracing | None:
    """Return the tracing, if OpenTelemetry is installed and in use; `exports` sets up an exporter."""
    if importlib.util.find_spec("opentelemetry") is None or not (exports or "opentelemetry.trace" in sys.modules):
        if exports:
            _log.warning(_MISSING)
        return None
    from opentelemetry import trace

    provider = _set_up() if exports else None
    return Tracing(trace.get_tracer("whyrank"), partial(_left, provider) if provider else lambda: None)


def _set_up() -> TracerProvider | None:
    """Export spans to the endpoint of the environment, unless a tracer provider is already configured."""
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
    # Its own exit hook would wait as long as it retries a collector that is gone.
    provider = TracerProvider(resource=resource, shutdown_on_exit=False)
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    trace.set_tracer_provider(provider)
    return provider


def _left(provider: TracerProvider) -> None:
    """Export the remaining spans; give up on a collector that does not accept them in time."""
    sending = threading.Thread(target=provider.shutdown, name="whyrank-spans", daemon=True)
    sending.start()
    sending.join(_EXPORT_SECONDS)
    if sending.is_alive():
        _log.warning("the last spans were not accepted within %.0f seconds", _EXPORT_SECONDS)
