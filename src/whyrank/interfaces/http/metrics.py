"""Figures for whoever watches a server, in the Prometheus format; over several workers they are summed."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple, cast

import prometheus_client as prometheus
from prometheus_client.metrics_core import GaugeMetricFamily, Metric
from prometheus_client.multiprocess import MultiProcessCollector

FOLDER_VARIABLE = "PROMETHEUS_MULTIPROC_DIR"  # set for workers, before this module is imported
CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_SECONDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)
_TENANT = "tenant"


class Stock(NamedTuple):
    """What a store holds at the moment."""

    memories: int
    bytes: int | None
    waiting: int
    caches: Mapping[str, int]


class Metrics:
    """Counts requests and searches; every tenant is told of its own alone."""

    def __init__(self) -> None:
        prometheus.disable_created_metrics()  # type: ignore[no-untyped-call]
        self._registry = own = prometheus.CollectorRegistry()
        self._requests = prometheus.Counter(
            "whyrank_http_requests", "Requests by route and status", [_TENANT, "route", "status"], registry=own
        )
        self._seconds = prometheus.Histogram(
            "whyrank_http_request_seconds", "How long requests took", [_TENANT, "route"], registry=own, buckets=_SECONDS
        )
        self._queries = prometheus.Counter(
            "whyrank_queries", "Searches by verdict and door", [_TENANT, "door", "verdict"], registry=own
        )
        self._stages = prometheus.Histogram(
            "whyrank_search_stage_seconds", "How long the stages of a search took", [_TENANT, "stage"],
            registry=own, buckets=_SECONDS,
        )  # fmt: skip

    def request(self, tenant: str, route: str, status: int, seconds: float) -> None:
        """Count a request."""
        self._requests.labels(tenant, route, str(status)).inc()
        self._seconds.labels(tenant, route).observe(seconds)

    def searched(self, tenant: str, verdict: str, timings: Mapping[str, float]) -> None:
        """Count a search; its times are milliseconds."""
        self._queries.labels(tenant, "http", verdict).inc()
        for stage, spent in timings.items():
            self._stages.labels(tenant, stage).observe(spent / 1000)

    def text(self, tenant: str, stock: Stock) -> bytes:
        """Return a tenant's figures, of all workers together."""
        registry = self._registry
        if FOLDER_VARIABLE in os.environ:
            registry = prometheus.CollectorRegistry()
            MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
        told = _Told([*_own(registry.collect(), tenant), *_held(stock)])
        return prometheus.generate_latest(cast(prometheus.CollectorRegistry, told))


class _Told:
    """Families of figures as they are to be written down."""

    def __init__(self, families: list[Metric]) -> None:
        self._families = families

    def collect(self) -> Iterable[Metric]:
        return self._families


def _own(families: Iterable[Metric], tenant: str) -> Iterable[Metric]:
    for family in families:
        family.samples = [
            sample._replace(labels={name: value for name, value in sample.labels.items() if name != _TENANT})
            for sample in family.samples
            if sample.labels.get(_TENANT) == tenant
        ]
        yield family


def _held(stock: Stock) -> Iterable[Metric]:
    yield GaugeMetricFamily("whyrank_memories", "Memories in the store", stock.memories)
    if stock.bytes is not None:
        yield GaugeMetricFamily("whyrank_store_bytes", "Size of the store", stock.bytes)
    yield GaugeMetricFamily("whyrank_embedding_queue", "Memories that wait for a vector", stock.waiting)
    caches = GaugeMetricFamily("whyrank_cache_bytes", "Memory held by each cache of this process", labels=["cache"])
    for name, held in stock.caches.items():
        caches.add_metric([name], held)
    yield caches


def counted(data: Mapping[str, Any]) -> tuple[str, Mapping[str, float]] | None:
    """Return verdict and times of an answer to a search; nothing of any other."""
    return (data["verdict"], data["timings"]) if "verdict" in data and "timings" in data else None
