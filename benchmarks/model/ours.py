"""callwright: the tasks through the agent of the command, with its compact tool set and permissions."""

import json
import shutil
import time
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from benchmarks.model.harness import TURNS
from benchmarks.model.peer_tools import MAX_TOKENS
from benchmarks.model.tasks import Task
from callwright.agent.results import Done, Result, Stopped
from callwright.app.assembly import assemble
from callwright.app.attachments import Attachments
from callwright.app.conversation import Conversation
from callwright.app.locations import Locations
from callwright.app.run_context import RunOptions
from callwright.app.settings import load_settings
from callwright.core.calls import Answers, Failed, Question
from callwright.core.events import CallEnded, Event
from callwright.core.messages import AssistantMessage, Usage
from callwright.providers.base import MessageDone, ModelEvent, ModelRequest, Provider
from callwright.repairs.prose_calls import find_call_in_prose, find_unknown_call
from callwright.repairs.text_calls import read_text_calls
from callwright.sessions.message_encoding import encode_message

PROJECT = "{project}"
"""Stands for the project's folder in recorded replies."""
_INVALID = ("invalid_input", "not_found")
_CONTEXT = 8192
_NAMES = {name: name for name in ("read", "write", "edit", "bash", "grep")}


class KeptReplies:
    """A provider that keeps what another one answered."""

    def __init__(self, provider: Provider) -> None:
        self._inner = provider
        self.replies: list[AssistantMessage] = []

    @property
    def model(self) -> str:
        return self._inner.model

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        """Pass a request on."""
        async for event in self._inner.stream(request):
            if isinstance(event, MessageDone):
                self.replies.append(event.message)
            yield event

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)


async def decline(questions: Sequence[Question]) -> Answers:
    """Decline every question: nobody is there to answer."""
    answers = Answers()
    for question in questions:
        answers.decline(question, "this is not allowed")
    return answers


async def run_task(task: Task, provider: Provider, folder: Path) -> dict[str, Any]:
    """Run a task and return its figures and the model's replies.

    The folder is emptied first. It is the same for every task, because its path is part of the system prompt, whose
    beginning a server then has to read only once.
    """
    shutil.rmtree(folder, ignore_errors=True)
    project = task.prepare(folder)
    locations = Locations.of(project, home=folder / "home")
    options = RunOptions(mode="auto", turns=TURNS, context=_CONTEXT, max_tokens=MAX_TOKENS, tools="compact", keep=False)
    kept, events = KeptReplies(provider), list[Event]()
    began = time.monotonic()
    settings = load_settings(locations, trusted=True)
    async with assemble(kept, settings, locations, options, observe=events.append) as app:
        app.agent.ask = decline
        conversation = Conversation(app, "task")
        conversation.attach = Attachments(app, conversation.session_id, print)
        result = [event async for event in conversation.say(task.request)][-1]
        if not isinstance(result, Result):
            raise TypeError(f"the run of {task.name} ended with {result!r}, which is no result")
        repairs = sum((Counter(tool.repairs) for tool in app.executor.stats), Counter[str]())
    found = describe_run(result, events)
    found |= {
        "task": task.name,
        "seconds": time.monotonic() - began,
        "turns": len(kept.replies),
        "repairs": dict(repairs),
    }
    found["passed"] = task.passed(project, found["answer"] if isinstance(result, Done) else "")
    found["replies"] = _encode_replies(kept.replies, project)
    return found


def _encode_replies(replies: Sequence[AssistantMessage], project: Path) -> list[Any]:
    """Return replies as JSON, without usage and with a placeholder for the project's folder."""
    bare = [encode_message(replace(reply, usage=Usage(), model="")) for reply in replies]
    return json.loads(json.dumps(bare).replace(str(project), PROJECT))


def describe_run(result: Result, events: Sequence[Event]) -> dict[str, Any]:
    """Return the figures of a run."""
    outcomes = [event.outcome for event in events if isinstance(event, CallEnded)]
    failed = [outcome for outcome in outcomes if isinstance(outcome, Failed)]
    invalid = sum(outcome.error.code in _INVALID and not outcome.started for outcome in failed)
    return {
        "answer": result.text,
        "end": "answer" if isinstance(result, Done) else result.kind if isinstance(result, Stopped) else "paused",
        "calls": len(outcomes),
        "invalid": invalid,
        "errors": len(failed) - invalid,
        "tokens": [result.usage.input_tokens, result.usage.output_tokens],
    }


def is_call(answer: str) -> bool:
    """Tell whether an answer is or contains a call that was never made."""
    found = find_call_in_prose(answer, _NAMES) or find_unknown_call(answer)
    return found is not None or bool(read_text_calls(answer, _NAMES))
