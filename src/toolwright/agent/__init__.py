"""The loop: a model, its tools, and a conversation that is valid at every moment."""

from toolwright.core.lazy import loader

TYPE_CHECKING = False  # read as true by type checkers; typing itself would cost the import more than this file
if TYPE_CHECKING:
    from toolwright.agent.agent import Agent as Agent
    from toolwright.agent.budget import Budget as Budget
    from toolwright.agent.budget import Prices as Prices
    from toolwright.agent.compact import Compaction as Compaction
    from toolwright.agent.graph import Finished as Finished
    from toolwright.agent.graph import Graph as Graph
    from toolwright.agent.graph import Waiting as Waiting
    from toolwright.agent.graph import goto as goto
    from toolwright.agent.graph import halt as halt
    from toolwright.agent.graph import interrupt as interrupt
    from toolwright.agent.model import Requests as Requests
    from toolwright.agent.prompt import default_system_prompt as default_system_prompt
    from toolwright.agent.result import AgentEvent as AgentEvent
    from toolwright.agent.result import Done as Done
    from toolwright.agent.result import ModelRetried as ModelRetried
    from toolwright.agent.result import Paused as Paused
    from toolwright.agent.result import Result as Result
    from toolwright.agent.result import Stopped as Stopped
    from toolwright.agent.result import TurnEnded as TurnEnded

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
