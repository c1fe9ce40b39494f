"""What tests of tools share: a context to run in, and what was reported through it."""

from collections.abc import Awaitable, Sequence

import pytest

from callwright import Outcome, ToolCall, ToolContext
from callwright.core.json import Json
from callwright.tool.base import InnerBatch, State


class RecordingScope:
    """Stands where the executor stands, and remembers progress."""

    session_id = "session"
    turn_id = "turn"
    run_id = "run"
    cancelled = False

    def __init__(self) -> None:
        self.state = State()
        self.reports: list[object] = []

    def report(self, call: ToolCall, progress: object) -> None:
        self.reports.append(progress)

    def execute(self, context: ToolContext, calls: Sequence[ToolCall], batch: InnerBatch) -> Awaitable[list[Outcome]]:
        raise NotImplementedError

    def keep(self, path: str, note: Json, *, wait: bool) -> Awaitable[None]:
        raise NotImplementedError

    def find_kept(self, path: str) -> Sequence[Json]:
        return ()


@pytest.fixture
def scope() -> RecordingScope:
    return RecordingScope()


@pytest.fixture
def reports(scope: RecordingScope) -> list[object]:
    return scope.reports


@pytest.fixture
def context(scope: RecordingScope) -> ToolContext:
    return ToolContext(ToolCall("call-1", "tool"), scope)
