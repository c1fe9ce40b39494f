"""The executor: admits calls, performs them, and returns one outcome per call."""

from callwright.executor.executor import Executor
from callwright.executor.runtime import TurnLimits
from callwright.executor.turn_context import Turn, TurnCancelled

__all__ = ["Executor", "Turn", "TurnCancelled", "TurnLimits"]
