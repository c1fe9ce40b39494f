"""The agent loop: request a message, run its calls, append the outcomes, until there is a result.

Also `OutputSchema`, which turns the final answer into a typed value, and the default system prompt.
"""

import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from callwright.agent.compaction import (
    BadSummary,
    Compaction,
    compact_history,
    drop_outputs,
    estimate_message_tokens,
    summarise_history,
)
from callwright.agent.handover import Handover
from callwright.agent.model_request import ask_model
from callwright.agent.replay import Ending, find_outcomes
from callwright.agent.results import Paused, Result, Stopped
from callwright.agent.text_replies import EMPTY_REPLY, TextReplies, fill_empty, is_filled
from callwright.agent.tool_calls import RunDependencies, keep_outputs, make_calls
from callwright.agent.transcript import Transcript
from callwright.core._fast import make_constructor
from callwright.core.calls import Failed
from callwright.core.errors import Halted, InvalidArguments
from callwright.core.json import JsonObject, compact, freeze
from callwright.core.messages import AssistantMessage, Message, UserMessage
from callwright.providers.base import ModelRequest, ProviderError
from callwright.registry.catalog import Catalog, find_snapshot
from callwright.sessions.records import Spent
from callwright.tool.arguments import ArgumentParser
from callwright.tool.compile import compact_schema
from callwright.tool.concealment import require_readable_output

_request = make_constructor(ModelRequest)
_MAX_REPAIRS = 2
"""How often the model may correct a final answer that does not match the output schema."""
_GROWTH_FACTOR = 1.2
"""After a compaction the history must grow by this factor before the next one, or each turn would compact again."""
_CODE_FENCE = re.compile(
    r"^[ \t]*```(?:json)?[ \t]*\n(.*?)\n[ \t]*```[ \t]*$", re.DOTALL | re.MULTILINE | re.IGNORECASE
)


class OutputSchema:
    """The schema of the final answer, derived from a type, and the parser of its value."""

    def __init__(self, output_type: object) -> None:
        from callwright.tool.schema import adapter_for, parse_options, read_schema  # loads pydantic

        adapter = adapter_for(output_type, about="output")
        require_readable_output(adapter.core_schema)
        schema = compact_schema(read_schema(adapter, output_type, about="output"))
        self.schema: JsonObject = freeze(schema)
        self._is_text = output_type is str
        self._fields = tuple(schema.get("properties", ()))
        self._parser: ArgumentParser[Any] = ArgumentParser(
            adapter.validator.validate_json, self._fields, options=parse_options(adapter.core_schema)
        )

    def read(self, text: str) -> Any:
        """Parse an answer: all of the text, or its only code block. For `str`, a text that is no JSON is the answer.

        Raises:
            InvalidArguments: the answer does not match the schema.
        """
        try:
            return self._parse(text)
        except InvalidArguments:
            if self._is_text and text.strip():
                return text
            raise

    def _parse(self, text: str) -> Any:
        blocks = _CODE_FENCE.findall(text)  # never inside valid JSON, whose texts have no line breaks
        if len(blocks) != 1:
            return self._parser.parse(text)
        try:
            return self._parser.parse(blocks[0])
        except InvalidArguments:
            if text.lstrip().startswith(("{", "[")):  # JSON with a fault: its error helps, that of the block does not
                return self._parser.parse(text)
            raise

    def describe_error(self, error: InvalidArguments) -> str:
        """Describe the mismatch."""
        # the parser is that of calls, and calls a whole value so
        detail = error.detail if "arguments" in self._fields else error.detail.removeprefix("arguments: ")
        return f"the answer does not match the requested schema: {detail}"

    def ask_again(self, problem: str) -> str:
        """Ask the model to correct the answer, with the schema: some servers accept one and do not show it."""
        return f"{problem}; answer again with only JSON that matches this schema: {compact(self.schema)}"


def make_output_schema(output: object) -> OutputSchema | None:
    """Return the schema of a type; None if there is none."""
    return None if output is None else OutputSchema(output)


def find_early_stop(transcript: Transcript, reply: AssistantMessage) -> Stopped | None:
    """Return the result if a message was cut, refused or is not known to be finished: it is not the answer."""
    if reply.stop == "length":
        return transcript.stop("length", "the answer reached the token limit of one answer", reply)
    if reply.stop == "refusal":
        return transcript.stop("refusal", reply.text or "the model refused to answer", reply)
    if reply.stop == "other":
        problem = "the model stopped for an unknown reason; its answer may be incomplete"
        return transcript.stop("provider", problem, reply)
    return None


async def read_finished_result(
    transcript: Transcript,
    last: AssistantMessage,
    schema: OutputSchema | None,
    find_problem: Callable[[AssistantMessage], str | None],
) -> Result | None:
    """Return the result of a session that had ended before this run; None if the model is to continue.

    `find_problem` tells what is wrong with a message that is no answer: the process may have ended before it was said.
    """
    if last.stop == "paused":
        return None
    stopped = find_early_stop(transcript, last)
    if stopped is not None:
        return stopped
    if schema is None:
        problem = EMPTY_REPLY if is_filled(last) else find_problem(last)
        if problem is None:
            return transcript.finish(last.text)
    else:
        try:
            return transcript.finish(last.text, schema.read(last.text))
        except InvalidArguments as error:
            problem = schema.describe_error(error)
            if transcript.corrections >= _MAX_REPAIRS:
                return transcript.stop("output", problem, last)
            problem = schema.ask_again(problem)
    await transcript.add_user_message(UserMessage(problem), prompt=False)
    return None


class Loop:
    """Runs one session until there is a result."""

    def __init__(
        self,
        dependencies: RunDependencies,
        transcript: Transcript,
        schema: OutputSchema | None,
        handover: Handover | None = None,
    ) -> None:
        self._parts = dependencies
        self._snapshot = find_snapshot(dependencies.registry, dependencies.state)
        self._transcript = transcript
        self._schema = schema
        self._handover = handover
        self.then: Callable[[], Awaitable[None]] | None = None
        """Called once the calls that were open at the start have their outcomes."""
        self._repairs_left = _MAX_REPAIRS
        self._text_replies = TextReplies(dependencies.provider)
        self._compact_above = 0.0 if dependencies.compaction is None else float(dependencies.compaction.at_tokens)
        self._shortened_in = -1
        """The number of turns before the last request that was refused as too large."""
        self._request: ModelRequest | None = None
        """The last request. The next one is the same as long as the tools are: the history grows in place."""
        self._requested: Catalog | None = None
        """The tools of that request."""
        self._due: Compaction | None = None
        """Set when the provider refused the last request as too large: compact before the next one."""

    async def run(self) -> Result:
        """Run until there is a result; failures of the model and of tools are never raised."""
        transcript = self._transcript
        ended = None
        if transcript.open is not None:
            outcomes = await make_calls(transcript, transcript.open, self._catalog(), self._parts)
            ended = self._find_end(transcript, outcomes)
        if ended is None and self.then is not None:
            await self.then()
        while ended is None:
            limit = transcript.watch.find_stop_reason() or transcript.spending.find_exceeded()
            if limit is not None:
                return transcript.stop(*limit)
            if self._handover is not None and (why := self._handover.find_reason(transcript.spending.turns)):
                return transcript.stop("handover", why)
            catalog = self._catalog()
            try:
                if self._due is not None or (self._compact_above and transcript.tokens > self._compact_above):
                    await self._compact(transcript, catalog)
                reply = await self._ask(transcript, catalog, transcript.history)
            except (TimeoutError, ProviderError) as error:
                stopped = self._find_stop(transcript, error)
                if stopped is not None:
                    return stopped
                continue
            calls = reply.calls
            if not calls and self._schema is None:
                reply = self._text_replies.read_calls(reply, catalog)
                calls = reply.calls
            if calls:
                self._text_replies.asked = False
                turn = transcript.open_turn(reply, calls)
                ended = self._find_end(transcript, await make_calls(transcript, turn, catalog, self._parts))
            else:
                ended = await self._conclude(transcript, reply, catalog)
        return ended

    def _catalog(self) -> Catalog:
        """Return the tools as they are now; the reader of cut outputs from the first one on that was cut."""
        catalog = self._snapshot()
        return self._parts.executor.with_reader(catalog) if self._transcript.has_cut_outputs else catalog

    def _find_stop(self, transcript: Transcript, error: TimeoutError | ProviderError) -> Stopped | None:
        """Return the result of a run whose request failed; None if it is to be made again, with half the history."""
        if isinstance(error, TimeoutError):
            return transcript.stop(*(transcript.watch.find_stop_reason() or ("cancelled", "the run was stopped")))
        turns = transcript.spending.turns
        if error.fault != "too_large" or self._shortened_in == turns or self._parts.compaction is None:
            stopped = transcript.stop("provider", f"the model request failed: {error}")
            return replace(stopped, transient=error.fault == "transient")
        # Once per turn: a history that is still too large after halving will not fit by compacting again.
        self._shortened_in = turns
        # By the estimate, as the kept part is measured: the provider counts other languages and the tools differently.
        size = sum(map(estimate_message_tokens, transcript.history))
        self._due = replace(self._parts.compaction, at_tokens=max(size, 2), keep_tokens=size // 2)
        return None

    def _find_end(self, transcript: Transcript, outcomes: Paused | Sequence[Ending]) -> Result | None:
        """Return the result of a run that a turn's calls have ended; None if the model is to continue."""
        if isinstance(outcomes, Paused):
            return outcomes
        for outcome in outcomes:
            if isinstance(outcome, Failed) and isinstance(outcome.error, Halted):
                return transcript.stop("halted", outcome.error.message)
        repetition = transcript.spending.repetition
        if repetition is None or transcript.spending.find_exceeded() is not None:  # the limit is the better explanation
            return None
        return transcript.stop("repeated", repetition)

    async def _conclude(self, transcript: Transcript, reply: AssistantMessage, catalog: Catalog) -> Result | None:
        """Turn a message without calls into the result, unless it was cut, refused, unfinished or does not match."""
        await transcript.add_reply(fill_empty(reply) if reply.stop == "end" else reply)
        transcript.emit_turn_end()
        if reply.stop == "paused":  # the provider interrupted a long server-side turn and expects to be asked again
            return None
        stopped = find_early_stop(transcript, reply)
        if stopped is not None:
            return stopped
        if self._schema is None:
            problem = self._text_replies.find_problem(reply, catalog, transcript.history)
            return transcript.finish(reply.text) if problem is None else await self._ask_again(transcript, problem)
        try:
            return transcript.finish(reply.text, self._schema.read(reply.text))
        except InvalidArguments as error:
            return await self._repair(transcript, self._schema, self._schema.describe_error(error))

    async def _ask_again(self, transcript: Transcript, problem: str) -> Result | None:
        """Ask once more for an answer; a second message that is none ends the run."""
        if not self._text_replies.may_ask():
            return transcript.stop("empty", f"the model gave no answer, also when asked again: {problem}")
        await transcript.add_user_message(UserMessage(problem), prompt=False)
        return None

    async def _repair(self, transcript: Transcript, schema: OutputSchema, problem: str) -> Result | None:
        if self._repairs_left == 0:
            return transcript.stop("output", f"after {_MAX_REPAIRS} corrections: {problem}")
        self._repairs_left -= 1
        await transcript.add_user_message(UserMessage(schema.ask_again(problem)), prompt=False)
        return None

    def _ask(
        self, transcript: Transcript, catalog: Catalog, messages: Sequence[Message], *, shaped: bool = True
    ) -> Awaitable[AssistantMessage]:
        """Request a message; a summary is not `shaped` by the schema of the answer, and not shown to the user."""
        parts, request = self._parts, self._request
        if request is None or request.messages is not messages or self._requested is not catalog or not shaped:
            request = _request(
                messages,
                parts.system,
                catalog.definitions,
                catalog.wire_names,
                parts.requests.max_tokens,
                None if self._schema is None or not shaped else self._schema.schema,
                parts.requests.options,
                shaped,
            )
            self._request, self._requested = request if shaped else None, catalog
        observe = parts.executor.observe
        if observe is None:
            return ask_model(parts.provider, request, parts.requests, transcript)
        from callwright.agent.observation import ask_model_observed  # an unobserved run must not pay for it

        return ask_model_observed(observe, parts.provider, request, parts.requests, transcript)

    async def _request_summary(
        self, transcript: Transcript, catalog: Catalog, messages: Sequence[Message]
    ) -> AssistantMessage:
        """Request a summary, and count what it used, also if it cannot be used."""
        try:
            summary = await self._ask(transcript, catalog, messages, shaped=False)
        except ProviderError as error:
            if error.fault != "too_large":
                raise
            clipped = drop_outputs(messages, len(messages), self._parts.executor.outputs, readable=False)
            summary = await self._ask(transcript, catalog, clipped, shaped=False)
        transcript.spending.add(summary.usage, summary.model)
        return summary

    async def summarise(self, focus: str) -> None:
        """Replace the whole history with a summary; if this raises `ProviderError`, nothing has changed."""
        transcript, catalog = self._transcript, self._catalog()
        history, usage = await summarise_history(
            transcript.history,
            len(transcript.history),
            partial(self._request_summary, transcript, catalog),
            focus=focus,
        )
        await transcript.compact(history, usage)

    async def _compact(self, transcript: Transcript, catalog: Catalog) -> None:
        needed, self._due = self._due, None
        plan = needed or self._parts.compaction or Compaction()
        try:
            history, usage = await compact_history(
                transcript.history,
                plan,
                self._parts.executor.outputs,
                self._parts.executor.with_reader(catalog),
                partial(self._request_summary, transcript, catalog),
                refused=needed is not None,
            )
        except BadSummary as error:
            if error.usage.total:
                transcript.note(Spent(error.usage))
            if needed is not None:
                raise
            self._compact_above = transcript.tokens * _GROWTH_FACTOR  # the whole history may still fit
            return
        if [*history] != [*transcript.history]:  # the same if the listener does not want it now
            keep_outputs(transcript, find_outcomes(history), self._parts.executor.outputs, durable=self._parts.durable)
            await transcript.compact(history, usage)
        self._compact_above = max(self._compact_above, transcript.tokens * _GROWTH_FACTOR)


_GUIDANCE = """\
You have tools. Use them to find things out and to do things instead of guessing or describing what you would do.
Make calls that do not depend on each other in parallel, in one message; wait for an outcome only where the next call \
needs it. When a call fails, read what it says and change something before you try again. When a person declines a \
call, do not look for another way to the same effect. Say when you are done, in a few words."""


def default_system_prompt(task: str = "") -> str:
    """Return a system prompt with guidance on using tools.

    Args:
        task: what the agent is for; put before the guidance.
    """
    return f"{task}\n\n{_GUIDANCE}" if task else _GUIDANCE
