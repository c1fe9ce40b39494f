"""The loop: a model, its tools, and a conversation that is valid at every moment."""

from callwright.core._lazy import lazy_exports

TYPE_CHECKING = False  # read as true by type checkers; importing typing would cost more than this file
if TYPE_CHECKING:
    from callwright.agent.agent import Agent as Agent
    from callwright.agent.compaction import Compaction as Compaction
    from callwright.agent.graph import (
        Graph as Graph,
        GraphFinished as GraphFinished,
        GraphWaiting as GraphWaiting,
        goto as goto,
        halt as halt,
        interrupt as interrupt,
    )
    from callwright.agent.handover import Handover as Handover
    from callwright.agent.loop import default_system_prompt as default_system_prompt
    from callwright.agent.model_request import Requests as Requests
    from callwright.agent.results import (
        AgentEvent as AgentEvent,
        Done as Done,
        ModelRetried as ModelRetried,
        Paused as Paused,
        Result as Result,
        Stopped as Stopped,
        TurnEnded as TurnEnded,
    )
    from callwright.agent.run_limits import Prices as Prices, RunLimits as RunLimits
    from callwright.agent.undo import (
        Rewinding as Rewinding,
        RewindPoint as RewindPoint,
        UndoConflict as UndoConflict,
        UndoHistory as UndoHistory,
    )
else:
    __getattr__ = lazy_exports(
        __name__,
        {
            "agent": "Agent",
            "run_limits": "RunLimits Prices",
            "handover": "Handover",
            "compaction": "Compaction",
            "graph": "GraphFinished Graph GraphWaiting goto halt interrupt",
            "loop": "default_system_prompt",
            "model_request": "Requests",
            "undo": "Rewinding RewindPoint UndoConflict UndoHistory",
            "results": "AgentEvent Done ModelRetried Paused Result Stopped TurnEnded",
        },
    )
