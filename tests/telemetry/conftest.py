"""The OpenTelemetry SDK with in-memory exporters."""

from collections.abc import Iterator
from typing import Any

import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from callwright.telemetry import Telemetry


class Collected:
    """A telemetry pipeline and what has come out of it."""

    def __init__(self) -> None:
        self._exporter = InMemorySpanExporter()
        self._reader = InMemoryMetricReader()
        self.tracers = TracerProvider(shutdown_on_exit=False)
        self.tracers.add_span_processor(SimpleSpanProcessor(self._exporter))
        self.meters = MeterProvider([self._reader], shutdown_on_exit=False)
        self.telemetry = self.observer()

    def observer(self, *, content: bool = False) -> Telemetry:
        """An observer of this pipeline."""
        return Telemetry(tracer_provider=self.tracers, meter_provider=self.meters, content=content)

    @property
    def spans(self) -> list[ReadableSpan]:
        """What has ended, in the order it did."""
        return list(self._exporter.get_finished_spans())

    def span(self, name: str) -> ReadableSpan:
        """The one span of that name."""
        (found,) = [span for span in self.spans if span.name == name]
        return found

    @property
    def tree(self) -> dict[str, str]:
        """Each span's name with its parent's; empty for roots."""
        by_id = {span.context.span_id: span.name for span in self.spans if span.context is not None}
        return {span.name: "" if span.parent is None else by_id[span.parent.span_id] for span in self.spans}

    def points(self, metric: str) -> list[tuple[dict[str, Any], Any]]:
        """A metric's points, with what they are about."""
        data = self._reader.get_metrics_data()
        found = [
            point
            for resource in (data.resource_metrics if data is not None else ())
            for scope in resource.scope_metrics
            for one in scope.metrics
            if one.name == metric
            for point in one.data.data_points
        ]
        return [(dict(point.attributes or {}), point) for point in found]


@pytest.fixture
def collected() -> Iterator[Collected]:
    made = Collected()
    yield made
    made.tracers.shutdown()
    made.meters.shutdown()
