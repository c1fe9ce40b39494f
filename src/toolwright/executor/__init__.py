"""Admit, then perform: every call to its outcome."""

from toolwright.executor.executor import Executor
from toolwright.executor.turn import Bounds, Turn, TurnCancelled

__all__ = ["Bounds", "Executor", "Turn", "TurnCancelled"]
