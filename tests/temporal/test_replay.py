"""Histories of runs from before a change of the workflow: runs under way must go on with the code of today.

A server kept these. After a change of `workflow.py` that fails here, runs that are under way during the update would
fail too: let the new code take the old steps for them (`workflow.patched`). Add histories; never replace one.
"""

import json
from pathlib import Path
from typing import Any

import pytest
from temporalio import workflow
from temporalio.client import WorkflowHistory
from temporalio.worker import Replayer, UnsandboxedWorkflowRunner

from callwright.temporal.workflow import SIGNAL, WORKFLOW, RunWorkflow

HISTORIES = sorted(Path(__file__).with_name("histories").glob("*.json"))


def read_history(path: Path) -> WorkflowHistory:
    history: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return WorkflowHistory.from_json(f"callwright/{path.stem}", history)


@pytest.mark.parametrize("path", HISTORIES, ids=lambda path: path.stem)
async def test_earlier_runs_go_on(path: Path) -> None:
    replayer = Replayer(workflows=[RunWorkflow], workflow_runner=UnsandboxedWorkflowRunner())
    await replayer.replay_workflow(read_history(path))


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
