"""The loop: a model, its tools, and a conversation that is valid at every moment."""

from toolwright.agent.agent import Agent
from toolwright.agent.budget import Budget, Prices
from toolwright.agent.compact import Compaction
from toolwright.agent.graph import Finished, Graph, Waiting, goto, halt, interrupt
from toolwright.agent.model import Requests
from toolwright.agent.prompt import default_system_prompt
from toolwright.agent.result import AgentEvent, Done, ModelRetried, Paused, Result, Stopped, TurnEnded

__all__ = [
    "Agent",
    "AgentEvent",
    "Budget",
    "Compaction",
    "Done",
    "Finished",
    "Graph",
    "ModelRetried",
    "Paused",
    "Prices",
    "Requests",
    "Result",
    "Stopped",
    "TurnEnded",
    "Waiting",
    "default_system_prompt",
    "goto",
    "halt",
    "interrupt",
]
