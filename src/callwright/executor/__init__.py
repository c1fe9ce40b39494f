"""Admit, then perform: every call to its outcome."""

from callwright.executor.executor import Executor
from callwright.executor.turn import Bounds, Turn, TurnCancelled

__all__ = ["Bounds", "Executor", "Turn", "TurnCancelled"]
