"""Histories of runs from before a change of the workflow: runs under way must go on with the code of today.

A server kept these. After a change of `workflow.py` that fails here, runs that are under way during the update would
fail too: let the new code take the old steps for them (`workflow.patched`). Add histories; never replace one.
"""

import json
from pathlib import Path
from typing import Any, NoReturn

import pytest
from temporalio import workflow
from temporalio.api.history.v1 import HistoryEvent
from temporalio.client import WorkflowHistory
from temporalio.worker import (
    ContinueAsNewInput,
    ExecuteWorkflowInput,
    Interceptor,
    Replayer,
    StartActivityInput,
    UnsandboxedWorkflowRunner,
    WorkflowInboundInterceptor,
    WorkflowInterceptorClassInput,
    WorkflowOutboundInterceptor,
)

from callwright.temporal.workflow import SIGNAL, WORKFLOW, RunWorkflow

HISTORIES = sorted(Path(__file__).with_name("histories").glob("*.json"))


def read_history(path: Path) -> WorkflowHistory:
    history: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return WorkflowHistory.from_json(f"callwright/{path.stem}", history)


class Recorder(Interceptor):
    """Records what a replayed workflow orders, and how it ends: a replay by itself compares only kinds of steps."""

    def __init__(self) -> None:
        self.orders: list[Any] = []
        self.ends: list[Any] = []

    def workflow_interceptor_class(self, input: WorkflowInterceptorClassInput) -> type[WorkflowInboundInterceptor]:  # noqa: A002 - its name there
        recorder = self

        class Outbound(WorkflowOutboundInterceptor):
            def start_activity(self, input: StartActivityInput) -> workflow.ActivityHandle[Any]:  # noqa: A002 - as above
                recorder.orders.append(json.loads(json.dumps(input.args)))
                return super().start_activity(input)

            def continue_as_new(self, input: ContinueAsNewInput) -> NoReturn:  # noqa: A002 - as above
                recorder.ends.append(json.loads(json.dumps(input.args)))
                super().continue_as_new(input)

        class Inbound(WorkflowInboundInterceptor):
            def init(self, outbound: WorkflowOutboundInterceptor) -> None:
                super().init(Outbound(outbound))

            async def execute_workflow(self, input: ExecuteWorkflowInput) -> Any:  # noqa: A002 - as above
                result = await super().execute_workflow(input)
                recorder.ends.append([result])
                return result

        return Inbound


def read_payloads(event: HistoryEvent) -> Any:
    """Return what an event carries to an activity or out of the workflow; None for the others."""
    match event.WhichOneof("attributes"):
        case "activity_task_scheduled_event_attributes":
            found = event.activity_task_scheduled_event_attributes.input
        case "workflow_execution_completed_event_attributes":
            found = event.workflow_execution_completed_event_attributes.result
        case "workflow_execution_continued_as_new_event_attributes":
            found = event.workflow_execution_continued_as_new_event_attributes.input
        case _:
            return None
    return [json.loads(payload.data) for payload in found.payloads]


@pytest.mark.parametrize("path", HISTORIES, ids=lambda path: path.stem)
async def test_earlier_runs_go_on(path: Path) -> None:
    recorder, history = Recorder(), read_history(path)
    replayer = Replayer(workflows=[RunWorkflow], workflow_runner=UnsandboxedWorkflowRunner(), interceptors=[recorder])
    await replayer.replay_workflow(history)
    stored = [found for event in history.events if (found := read_payloads(event)) is not None]
    assert [*recorder.orders, *recorder.ends] == stored


@workflow.defn(name=WORKFLOW, sandboxed=False)
class OtherWorkflow:
    """Does something else first."""

    @workflow.signal(name=SIGNAL)
    def note_answered(self, given: Any) -> None: ...

    @workflow.run
    async def run(self, order: Any) -> None:
        await workflow.sleep(1)


async def test_change_of_the_workflow_is_noticed() -> None:
    replayer = Replayer(workflows=[OtherWorkflow], workflow_runner=UnsandboxedWorkflowRunner())
    with pytest.raises(workflow.NondeterminismError):
        await replayer.replay_workflow(read_history(HISTORIES[0]))


def test_histories_cover_the_ways_of_a_run() -> None:
    kinds = {event.WhichOneof("attributes") for path in HISTORIES for event in read_history(path).events}
    for each in ("timer_fired", "timer_canceled", "workflow_execution_signaled", "workflow_execution_cancel_requested"):
        assert f"{each}_event_attributes" in kinds
    for end in ("completed", "failed", "canceled", "continued_as_new"):
        assert f"workflow_execution_{end}_event_attributes" in kinds
