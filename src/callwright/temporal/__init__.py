"""Runs of agents on Temporal: workers on several machines, runs that outlive them, answers from anywhere."""

from callwright.core._lazy import lazy_exports

TYPE_CHECKING = False  # read as true by type checkers; importing typing would cost more than this file
if TYPE_CHECKING:
    from callwright.temporal.client import Runs as Runs, WaitingRun as WaitingRun
    from callwright.temporal.run import (
        Run as Run,
        RunFailed as RunFailed,
        RunInfo as RunInfo,
        TemporalError as TemporalError,
    )
    from callwright.temporal.worker import AgentWorker as AgentWorker
else:
    __getattr__ = lazy_exports(
        __name__,
        {"client": "Runs WaitingRun", "run": "Run RunFailed RunInfo TemporalError", "worker": "AgentWorker"},
        install={"temporalio": "'callwright[temporal]'"},
    )
