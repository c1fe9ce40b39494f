"""The loop: a model, its tools, and a conversation that is valid at every moment."""

from callwright.core.lazy import loader

TYPE_CHECKING = False  # read as true by type checkers; typing itself would cost the import more than this file
if TYPE_CHECKING:
    from callwright.agent.agent import Agent as Agent
    from callwright.agent.budget import Budget as Budget
    from callwright.agent.budget import Prices as Prices
    from callwright.agent.compact import Compaction as Compaction
    from callwright.agent.graph import Finished as Finished
    from callwright.agent.graph import Graph as Graph
    from callwright.agent.graph import Waiting as Waiting
    from callwright.agent.graph import goto as goto
    from callwright.agent.graph import halt as halt
    from callwright.agent.graph import interrupt as interrupt
    from callwright.agent.model import Requests as Requests
    from callwright.agent.prompt import default_system_prompt as default_system_prompt
    from callwright.agent.result import AgentEvent as AgentEvent
    from callwright.agent.result import Done as Done
    from callwright.agent.result import ModelRetried as ModelRetried
    from callwright.agent.result import Paused as Paused
    from callwright.agent.result import Result as Result
    from callwright.agent.result import Stopped as Stopped
    from callwright.agent.result import TurnEnded as TurnEnded

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

_HOMES = {
    "agent": "Agent",
    "budget": "Budget Prices",
    "compact": "Compaction",
    "graph": "Finished Graph Waiting goto halt interrupt",
    "model": "Requests",
    "prompt": "default_system_prompt",
    "result": "AgentEvent Done ModelRetried Paused Result Stopped TurnEnded",
}

__getattr__ = loader(__name__, _HOMES)
