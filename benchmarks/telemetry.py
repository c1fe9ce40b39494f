"""Overhead of observers: none, the log, OpenTelemetry. Processor time."""

import asyncio
import os
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext

from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult

from benchmarks.agent import ARGUMENTS, Model, grep
from benchmarks.measure import cpu_seconds
from callwright import Executor, Registry, ToolCall, Turn
from callwright.agent import Agent, RunLimits
from callwright.core.events import Event
from callwright.executor.executor import Observer
from callwright.policy import AllowEverything
from callwright.telemetry import Telemetry, log_to

_TURNS = 200
_CALLS = 100


class _Discarding(SpanExporter):
    def export(self, spans: object) -> SpanExportResult:
        return SpanExportResult.SUCCESS


def _hear(event: Event) -> None:
    return None


@contextmanager
def _logged() -> Iterator[Observer]:
    log = log_to(os.devnull)
    yield log
    log.close()


@contextmanager
def _traced(*, content: bool) -> Iterator[Observer]:
    tracers = TracerProvider(shutdown_on_exit=False)
    tracers.add_span_processor(BatchSpanProcessor(_Discarding(), max_queue_size=100_000))
    meters = MeterProvider([InMemoryMetricReader()], shutdown_on_exit=False)
    yield Telemetry(tracer_provider=tracers, meter_provider=meters, content=content)
    tracers.shutdown()
    meters.shutdown()


def _microseconds(observe: tuple[Observer, ...]) -> tuple[float, float]:
    """Per turn of one call, and per call in a turn of many."""
    executor = Executor(Registry(grep), AllowEverything(), observe=observe)
    limits = RunLimits(turns=_TURNS + 2, same_calls=None)
    calls = [ToolCall(f"c{n}", "grep", ARGUMENTS) for n in range(_CALLS)]

    def talk() -> None:
        asyncio.run(Agent(Model(_TURNS, 1), executor=executor, limits=limits).run("go"))

    def batch() -> None:
        async def several() -> None:
            for _ in range(10):
                await executor.execute(calls, turn=Turn("s", "t"))

        asyncio.run(several())

    return cpu_seconds(talk, 7) / _TURNS * 1e6, cpu_seconds(batch, 7) / _CALLS / 10 * 1e6


def main() -> None:
    """Print the table."""
    print(f"{'':<40} {'µs per turn':>12} {'µs per call':>12}")
    for name, opened in (
        ("no observer", nullcontext()),
        ("an observer that does nothing", nullcontext(_hear)),
        ("Telemetry, OpenTelemetry not set up", nullcontext(Telemetry())),
        ("log_to, lines at INFO", _logged()),
        ("Telemetry, SDK with a batch processor", _traced(content=False)),
        ("the same with content", _traced(content=True)),
    ):
        with opened as observer:
            turn, call = _microseconds(() if observer is None else (observer,))
        print(f"{name:<40} {turn:>12.1f} {call:>12.1f}")


if __name__ == "__main__":
    main()
