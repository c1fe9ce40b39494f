"""pydantic-ai: an agent with the five tools, one run per task."""

from pathlib import Path
from typing import Any

from pydantic_ai import Agent, UsageLimits, capture_run_messages
from pydantic_ai.messages import ModelResponse, RetryPromptPart
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

from benchmarks.model.peer_tools import MAX_TOKENS, Calls, make_tools
from benchmarks.model.tasks import Task


def run_task(task: Task, project: Path, base_url: str, model: str, system: str, turns: int) -> dict[str, Any]:
    """Run a task and return its figures."""
    calls = Calls()
    chat = OpenAIChatModel(model, provider=OpenAIProvider(base_url=base_url, api_key="none"))
    agent = Agent(
        chat,
        tools=make_tools(project, calls),
        system_prompt=system,
        retries=2,
        model_settings={"max_tokens": MAX_TOKENS},
    )
    answer, end = "", "answer"
    with capture_run_messages() as messages:
        try:
            answer = str(agent.run_sync(task.request, usage_limits=UsageLimits(request_limit=turns)).output)
        except Exception as error:  # noqa: BLE001 - whatever ends the run is its end
            end = type(error).__name__
    replies = [message for message in messages if isinstance(message, ModelResponse)]
    retried = sum(isinstance(part, RetryPromptPart) for message in messages for part in message.parts)
    return {
        "answer": answer,
        "end": end,
        "calls": calls.made + retried,
        "invalid": retried,
        "errors": calls.failed,
        "turns": len(replies),
        "tokens": [
            sum(reply.usage.input_tokens or 0 for reply in replies),
            sum(reply.usage.output_tokens or 0 for reply in replies),
        ],
    }
