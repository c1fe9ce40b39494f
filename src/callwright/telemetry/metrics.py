"""Histograms and counters, named by the conventions where these define one."""

from typing import Any

from opentelemetry.metrics import Histogram, Meter

from callwright.core.calls import Completed, Failed
from callwright.core.run_events import RequestEnded, RunEnded
from callwright.telemetry import attributes as names

_SECONDS_BUCKETS = (0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92)
_TOKENS_BUCKETS = (1, 4, 16, 64, 256, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304, 16777216, 67108864)


class Metrics:
    """Records requests, runs and calls when they end."""

    def __init__(self, meter: Meter) -> None:
        self._requests = _seconds_histogram(meter, "gen_ai.client.operation.duration", "GenAI operation duration.")
        self._first = _seconds_histogram(
            meter, "gen_ai.client.operation.time_to_first_chunk", "Time to receive the first chunk of an answer."
        )
        self._tokens = meter.create_histogram(
            "gen_ai.client.token.usage",
            unit="{token}",
            description="Number of input and output tokens used.",
            explicit_bucket_boundaries_advisory=_TOKENS_BUCKETS,
        )
        self._runs = _seconds_histogram(meter, "gen_ai.invoke_agent.duration", "Duration of one agent invocation.")
        self._tools = _seconds_histogram(meter, "gen_ai.execute_tool.duration", "Duration of one tool execution.")
        self._calls = meter.create_counter(
            "callwright.tool.calls",
            unit="{call}",
            description="Calls by tool and outcome, including calls that never ran.",
        )
        self._cost = meter.create_counter("callwright.cost", unit="{USD}", description="Cost of the model's tokens.")

    def record_request(self, event: RequestEnded) -> None:
        """Record a request to a model."""
        about = {
            names.OPERATION: "chat",
            names.PROVIDER: event.began.vendor or names.UNKNOWN,
            names.REQUEST_MODEL: event.began.model,
        }
        message = event.message
        if message is None:
            self._requests.record(event.seconds, {**about, names.ERROR: event.reason})
            return
        if message.model:
            about[names.RESPONSE_MODEL] = message.model
        self._requests.record(event.seconds, about)
        if event.first_seconds is not None:
            self._first.record(event.first_seconds, about)
        if event.cost:
            self._cost.add(event.cost, about)
        usage = message.usage
        if usage.total:  # 0 means that the server reports no usage, not that it used none
            self._tokens.record(usage.total - usage.output_tokens, {**about, names.TOKEN_TYPE: "input"})
            self._tokens.record(usage.output_tokens, {**about, names.TOKEN_TYPE: "output"})

    def record_run(self, event: RunEnded) -> None:
        """Record a run of an agent."""
        about: dict[str, Any] = {names.OPERATION: "invoke_agent", names.REQUEST_MODEL: event.began.model}
        if event.began.agent:
            about[names.AGENT] = event.began.agent
        if event.reason:
            about[names.ERROR] = event.reason
        self._runs.record(event.seconds, about)

    def record_call(self, tool: str, outcome: Completed | Failed, seconds: float | None) -> None:
        """Record a call of a tool by its own name, empty if there is none, and the call's duration if it ran."""
        code = outcome.error.code if isinstance(outcome, Failed) else "completed"
        # names that a model invents, or spells in its own way, would make the number of time series unbounded
        tool = tool or names.UNKNOWN
        self._calls.add(1, {names.TOOL: tool, names.OUTCOME: code})
        if seconds is not None:
            about = {names.OPERATION: "execute_tool", names.TOOL: tool, names.TOOL_TYPE: "function"}
            self._tools.record(seconds, about if code == "completed" else {**about, names.ERROR: code})


def _seconds_histogram(meter: Meter, name: str, description: str) -> Histogram:
    return meter.create_histogram(
        name, unit="s", description=description, explicit_bucket_boundaries_advisory=_SECONDS_BUCKETS
    )
