"""The loop: ask the model, make its calls, tell it what came of them, until it is done.

The final answer as a type: its schema, its value, and what to say when it does not fit.

What a system prompt should say about tools, whatever the agent is for.
"""

import re
from collections.abc import Awaitable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from callwright.agent.compaction import Compaction, compact_history, summarise_history
from callwright.agent.model_request import Requests, ask_model
from callwright.agent.results import Paused, Result, Stopped, TurnEnded
from callwright.agent.tool_calls import CallContext, make_calls
from callwright.agent.transcript import OpenTurn, Transcript
from callwright.core._fast import maker
from callwright.core.calls import Failed
from callwright.core.errors import Halted, InvalidArguments
from callwright.core.json import JsonObject, freeze
from callwright.core.messages import AssistantMessage, Message, UserMessage
from callwright.executor.executor import Executor
from callwright.executor.turn import AskPerson
from callwright.providers.base import ModelRequest, Provider, ProviderError
from callwright.registry.catalog import Catalog, Toolset, session_catalog
from callwright.tool.arguments import Parser
from callwright.tool.base import State
from callwright.tool.compile import compact_schema
from callwright.tool.schema import adapter_for, parse_options

_request = maker(ModelRequest)
_REPAIRS = 2
_ROOM_TO_GROW = 1.2
"""A history that could not be made shorter is tried again when it has grown by this much."""


@dataclass(frozen=True, slots=True)
class RunDependencies:
    """What a run works with."""

    provider: Provider
    registry: Toolset
    executor: Executor
    state: State
    ask: AskPerson | None
    durable: bool
    system: str
    requests: Requests
    compaction: Compaction | None


class Shape(Protocol):
    """What the final answer must be; the one that is used brings pydantic with it."""

    schema: JsonObject

    def read(self, text: str) -> Any:
        """The answer as a value; raises `InvalidArguments`."""
        ...

    def complaint(self, error: InvalidArguments) -> str:
        """What the model is told so that the next answer fits."""
        ...


class Loop:
    """One run over one conversation."""

    def __init__(self, machinery: RunDependencies, talk: Transcript, shape: Shape | None) -> None:
        self._with = machinery
        self._talk = talk
        self._shape = shape
        self._around = CallContext(machinery.executor, machinery.state, machinery.ask, machinery.durable)
        self._repairs_left = _REPAIRS
        self._compact_above = 0.0 if machinery.compaction is None else float(machinery.compaction.at_tokens)
        self._made_smaller = False
        self._due: Compaction | None = None
        """How to make the history smaller before the next request, because the last one was refused as too large."""

    async def run(self) -> Result:
        """Go on until there is a result; raises for nothing a model or a tool did."""
        talk = self._talk
        ended = None
        if talk.open is not None:
            ended = await self._call(talk, talk.open, session_catalog(self._with.registry, self._with.state))
        while ended is None:
            limit = talk.watch.stopped() or talk.spending.exceeded()
            if limit is not None:
                return talk.stopped(*limit)
            catalog = session_catalog(self._with.registry, self._with.state)
            reply = await self._reply(talk, catalog)
            if not isinstance(reply, AssistantMessage):
                return reply
            if calls := reply.calls:
                ended = await self._call(talk, talk.propose(reply, calls), catalog)
            else:
                ended = await self._conclude(talk, reply)
        return ended

    async def _reply(self, talk: Transcript, catalog: Catalog) -> AssistantMessage | Stopped:
        """One request, with the tools as they are now."""
        try:
            if self._due is not None or (self._compact_above and talk.tokens > self._compact_above):
                await self._compact(talk, catalog)
            return await self._ask(talk, catalog, talk.history)
        except TimeoutError:
            return talk.stopped(*(talk.watch.stopped() or ("cancelled", "the run was stopped")))
        except ProviderError as error:
            if error.fault != "too_large" or self._made_smaller or self._with.compaction is None:
                return talk.stopped("provider", f"the model could not be asked: {error}")
        self._made_smaller = True
        self._due = replace(self._with.compaction, at_tokens=max(talk.tokens, 2), keep_tokens=talk.tokens // 2)
        return await self._reply(talk, catalog)

    async def _call(self, talk: Transcript, turn: OpenTurn, catalog: Catalog) -> Result | None:
        """Make the open turn's calls; None when the model is to be told what came of them."""
        outcomes = await make_calls(talk, turn, catalog, self._around)
        if isinstance(outcomes, Paused):
            return outcomes
        for outcome in outcomes:
            if isinstance(outcome, Failed) and isinstance(outcome.error, Halted):
                return talk.stopped("halted", outcome.error.message)
        circles = talk.spending.repeated(outcomes)
        if circles is None or talk.spending.exceeded() is not None:  # a limit that is reached as well says more
            return None
        return talk.stopped("repeated", circles)

    async def _conclude(self, talk: Transcript, reply: AssistantMessage) -> Result | None:
        """A message without calls is the answer, unless it was cut, refused, unfinished or of the wrong shape."""
        await talk.say(reply)
        spent = talk.spending
        talk.tell(TurnEnded(spent.usage, spent.turns, spent.known_cost))
        if reply.stop == "paused":
            return None
        if reply.stop == "length":
            return talk.stopped("length", f"the answer reached its limit of {self._with.requests.max_tokens} tokens")
        if reply.stop == "refusal":
            return talk.stopped("refusal", reply.text or "the model refused to answer")
        if self._shape is None:
            return talk.done(reply.text)
        try:
            return talk.done(reply.text, self._shape.read(reply.text))
        except InvalidArguments as error:
            return await self._repair(talk, self._shape.complaint(error))

    async def _repair(self, talk: Transcript, complaint: str) -> Result | None:
        if self._repairs_left == 0:
            return talk.stopped("output", f"after {_REPAIRS} repairs {complaint}")
        self._repairs_left -= 1
        await talk.hear(UserMessage(complaint))
        return None

    def _ask(self, talk: Transcript, catalog: Catalog, messages: Sequence[Message]) -> Awaitable[AssistantMessage]:
        parts = self._with
        request = _request(
            messages,
            parts.system,
            catalog.definitions,
            catalog.wire_names,
            parts.requests.max_tokens,
            None if self._shape is None else self._shape.schema,
            parts.requests.options,
        )
        observe = parts.executor.observe
        if observe is None:
            return ask_model(parts.provider, request, parts.requests, talk)
        from callwright.agent.model_request import ask_model_observed  # loaded by those who watch

        return ask_model_observed(observe, parts.provider, request, parts.requests, talk)

    async def summarise(self, focus: str) -> None:
        """Put a summary in the place of everything said so far; raises `ProviderError`, with nothing changed."""
        talk, catalog = self._talk, session_catalog(self._with.registry, self._with.state)
        history, usage = await summarise_history(
            talk.history, len(talk.history), lambda messages: self._ask(talk, catalog, messages), focus=focus
        )
        await talk.compact(history, usage)

    async def _compact(self, talk: Transcript, catalog: Catalog) -> None:
        plan, self._due = self._due or self._with.compaction or Compaction(), None
        history, usage = await compact_history(
            talk.history,
            plan,
            self._with.executor.outputs,
            catalog,
            lambda messages: self._ask(talk, catalog, messages),
        )
        await talk.compact(history, usage)
        self._compact_above = max(self._compact_above, talk.tokens * _ROOM_TO_GROW)


_CODE_FENCE = re.compile(r"\A\s*```(?:json)?[ \t]*\n(?P<body>.*)\n[ \t]*```\s*\Z", re.DOTALL)


class OutputShape:
    """What the final answer must be."""

    def __init__(self, kind: object) -> None:
        adapter = adapter_for(kind, about="output")
        schema = compact_schema(adapter.json_schema())
        self.schema: JsonObject = freeze(schema)
        fields = tuple(schema.get("properties", ()))
        self._parser: Parser[Any] = Parser(
            adapter.validator.validate_json, fields, options=parse_options(adapter.core_schema)
        )

    def read(self, text: str) -> Any:
        """Return the answer as a value, looking through a code fence; raises `InvalidArguments`."""
        fenced = _CODE_FENCE.match(text)
        return self._parser.parse(fenced["body"] if fenced else text)

    def complaint(self, error: InvalidArguments) -> str:
        """What the model is told so that the next answer fits."""
        return f"the answer is not what was asked for: {error.detail}; answer again with JSON of the given schema only"


_GUIDANCE = """\
You have tools. Use them to find things out and to do things instead of guessing or describing what you would do.
Make calls that do not depend on each other in parallel, in one message; wait for an outcome only where the next call \
needs it. When a call fails, read what it says and change something before you try again. When a person declines a \
call, do not look for another way to the same effect. Say when you are done, in a few words."""


def default_system_prompt(task: str = "") -> str:
    """Return guidance on using tools well, after what the agent is for."""
    return f"{task}\n\n{_GUIDANCE}" if task else _GUIDANCE
