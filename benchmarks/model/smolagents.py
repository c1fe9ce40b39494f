"""smolagents: a tool-calling agent with the five tools, one run per task."""

from pathlib import Path
from typing import Any

from smolagents import LogLevel, OpenAIServerModel, ToolCallingAgent, tool

from benchmarks.model.peer_tools import MAX_TOKENS, Calls, make_tools
from benchmarks.model.tasks import Task


def run_task(task: Task, project: Path, base_url: str, model: str, system: str, turns: int) -> dict[str, Any]:
    """Run a task and return its figures."""
    calls = Calls()
    chat = OpenAIServerModel(model, api_base=base_url, api_key="none", max_tokens=MAX_TOKENS)
    tools = [tool(function) for function in make_tools(project, calls)]
    agent = ToolCallingAgent(tools, chat, verbosity_level=LogLevel.OFF, max_steps=turns, instructions=system)
    answer, end = "", "answer"
    try:
        answer = str(agent.run(task.request))
    except Exception as error:  # noqa: BLE001 - whatever ends the run is its end
        end = type(error).__name__
    steps = [step for step in agent.memory.steps if type(step).__name__ == "ActionStep"]
    invalid = sum(step.error is not None for step in steps)
    usage = agent.monitor.get_total_token_counts()
    return {
        "answer": answer,
        "end": end if len(steps) < turns + 1 else "AgentMaxStepsError",
        "calls": calls.made,
        "invalid": invalid,
        "errors": calls.failed,
        "turns": len(steps),
        "tokens": (usage.input_tokens, usage.output_tokens),
    }
