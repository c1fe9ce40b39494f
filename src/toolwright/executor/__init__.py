"""Admit, then perform: every call to its outcome."""

from toolwright.executor.executor import Bounds, Executor
from toolwright.executor.turn import Turn, TurnCancelled

__all__ = ["Bounds", "Executor", "Turn", "TurnCancelled"]
