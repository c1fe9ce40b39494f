"""Admit, then perform: every call to its outcome."""

from callwright.executor.executor import Executor
from callwright.executor.turn import Turn, TurnCancelled, TurnLimits

__all__ = ["Executor", "Turn", "TurnCancelled", "TurnLimits"]
