"""A span that is the current one for everything done inside it, also in the tasks and threads begun there."""

from contextvars import ContextVar
from time import perf_counter

from opentelemetry.context import attach, get_current
from opentelemetry.trace import Span, Status, StatusCode, set_span_in_context

from callwright.telemetry import names

_inside: "ContextVar[Entered | None]" = ContextVar("callwright_span", default=None)


class Entered:
    """Made current where it is made. The end may be told from another task, so there is no token to give back."""

    __slots__ = ("_before", "_began", "outer", "span")

    def __init__(self, span: Span) -> None:
        self.span = span
        self._began = perf_counter()
        self.outer = _inside.get()
        self._before = get_current()
        attach(set_span_in_context(span, self._before))
        _inside.set(self)

    @property
    def seconds(self) -> float:
        """How long ago it was entered."""
        return perf_counter() - self._began

    @property
    def innermost(self) -> bool:
        """Whether what runs now is inside, and nothing else is around it."""
        return _inside.get() is self

    @property
    def here(self) -> bool:
        """Whether what runs now is inside."""
        step = _inside.get()
        while step is not None and step is not self:
            step = step.outer
        return step is self

    def close(self, error: str = "", said: str = "") -> None:
        """End the span, as an error where there is one; what was current before it is so again."""
        if self.here:  # first, because a broken exporter must not leave later spans in the wrong place
            attach(self._before)
            _inside.set(self.outer)
        end_span(self.span, error, said)


def end_span(span: Span, error: str = "", said: str = "") -> None:
    """End a span, as an error where there is one."""
    if error:
        span.set_attribute(names.ERROR, error)
        span.set_status(Status(StatusCode.ERROR, said or None))
    span.end()


def note_retry(span: Span, error: str, attempt: int, delay_seconds: float) -> None:
    """Write down that an attempt failed and another will follow."""
    span.add_event("retry", {names.ERROR: error, names.ATTEMPTS: attempt, names.DELAY: delay_seconds})
