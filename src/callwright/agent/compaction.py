"""Compaction: estimates the tokens of a history and shortens it, keeping calls and their outcomes together.

The system prompt and the tools are not part of the history, so a provider's cache of them stays valid.
"""

from collections.abc import Awaitable, Callable, Sequence
from typing import Literal, Protocol, TypeAlias

from callwright.clip import READER, Outputs, clip_text
from callwright.core._fast import frozen, replace
from callwright.core.calls import Completed, Failed, ToolCall
from callwright.core.content import Output, Part, Text, text_of_file, tokens_for
from callwright.core.errors import UsageError
from callwright.core.messages import (
    AssistantMessage,
    History,
    Message,
    Thinking,
    ToolMessage,
    Usage,
    UserMessage,
)
from callwright.providers.base import ProviderError
from callwright.registry.catalog import Catalog

_MESSAGE_CHARS = 16
"""The JSON around a message or a call."""
_IMAGE_CHARS = 6_000
"""About 1,500 tokens, roughly the price of a full-size image; its size in bytes says nothing about it."""


def estimate_message_tokens(message: Message) -> int:
    """Estimate how many tokens one message takes."""
    chars = _MESSAGE_CHARS
    if isinstance(message, ToolMessage):
        for outcome in message.outcomes:
            content = outcome.output.content if isinstance(outcome, Completed) else outcome.error.message
            chars += _MESSAGE_CHARS + (len(content) if type(content) is str else count_content_chars(content))
    elif isinstance(message, AssistantMessage):
        for part in message.parts:
            if not isinstance(part, ToolCall):
                chars += _count_text_chars(part)
                continue
            arguments = part.arguments
            written = arguments if isinstance(arguments, (str, bytes)) else repr(arguments)
            chars += _MESSAGE_CHARS + len(part.name) + len(written)
    else:
        chars += count_content_chars(message.content)
    return tokens_for(chars)


def count_content_chars(content: str | tuple[Part, ...]) -> int:
    """Count characters; an image or a file that is no text counts as many as its tokens are worth."""
    return len(content) if isinstance(content, str) else sum(map(_count_part_chars, content))


def _count_part_chars(part: Part) -> int:
    text = part.text if isinstance(part, Text) else text_of_file(part)
    return _IMAGE_CHARS if text is None else len(text)


def _count_text_chars(part: Text | Thinking) -> int:
    opaque = part.opaque if isinstance(part, Thinking) else None
    return len(part.text) + (0 if opaque is None else len(repr(opaque)))


CompactionMethod: TypeAlias = Literal["summary", "drop"]
Summarise: TypeAlias = Callable[[Sequence[Message]], Awaitable[AssistantMessage]]
_KEPT_OUTPUT_CHARS = 400
SUMMARY_PROMPT = (
    "Summarise the conversation so far for yourself, because its messages will be removed: the task in the user's "
    "own words, decisions and their reasons, what was done and what came of it (names, paths, values), what failed, "
    "and what is to be done next. Answer with the summary only; call no tools."
)
_AGAIN = (
    "Your last attempt was no summary, or too long and cut off: answer with text only, without a call, half as long as "
    "you would."
)
_SUMMARY_HEAD = "The earlier conversation was summarised to save space:\n\n"
_LEFT_OUT = "The earlier conversation was removed because it no longer fitted and could not be summarised."
_LAST_REQUEST = "The last message of the user in it:"
_KEPT_REQUEST_CHARS = 8_000


class BadSummary(ProviderError):
    """There is no summary that may replace the conversation, which stays as it is."""

    def __init__(self, message: str, usage: Usage = Usage()) -> None:
        super().__init__(message, fault="invalid")
        self.usage = usage
        """Of the requests for it."""


class CompactionListener(Protocol):
    """Receives the compactions of a history."""

    async def before(self) -> bool:
        """Return whether to compact now; if not, compaction is tried again when the history has grown."""
        ...

    async def after(self, summary: str) -> None:
        """Receive the summary that replaced the removed messages."""
        ...


@frozen
class Compaction:
    """When and how a history is shortened.

    Args:
        at_tokens: The estimated size above which the history is shortened.
        keep_tokens: About how much of the end stays as it is.
        method: "summary" lets the model summarise; "drop" clips old outputs and keeps the whole in files.
        listener: Is called before and after a compaction.

    Raises:
        UsageError: `keep_tokens` is negative or not below `at_tokens`.
    """

    at_tokens: int = 150_000
    keep_tokens: int = 20_000
    method: CompactionMethod = "summary"
    listener: CompactionListener | None = None

    def __post_init__(self) -> None:
        if not 0 <= self.keep_tokens < self.at_tokens:
            raise UsageError(f"Compaction needs 0 <= keep_tokens < at_tokens: {self!r}")


async def compact_history(
    history: Sequence[Message],
    plan: Compaction,
    outputs: Outputs,
    catalog: Catalog,
    summarise: Summarise,
    *,
    refused: bool = False,
) -> tuple[History, Usage]:
    """Return a shorter history that is still valid, and the usage of the request that summarised it.

    Of a history that was `refused` as too large, outputs of the last turn are clipped too if it alone is over the plan.
    """
    if plan.listener is not None and not await plan.listener.before():
        return History(history), Usage()
    if refused:
        history = _clip_large_tail(history, plan.keep_tokens, outputs, readable=READER in catalog)
    shorter, usage = await _shorten(history, plan, outputs, catalog, summarise)
    if plan.listener is not None:
        first = shorter[0] if shorter else None
        summary = first.content if isinstance(first, UserMessage) and isinstance(first.content, str) else ""
        await plan.listener.after(summary.removeprefix(_SUMMARY_HEAD) if plan.method == "summary" else "")
    return shorter, usage


async def _shorten(
    history: Sequence[Message], plan: Compaction, outputs: Outputs, catalog: Catalog, summarise: Summarise
) -> tuple[History, Usage]:
    cut = find_tail_start(history, plan.keep_tokens)
    if plan.method == "drop" or not cut:
        # of a summary: with nothing before the tail to summarise, clipped outputs are all there is to gain
        before = cut if plan.method == "drop" else len(history)
        return History(drop_outputs(history, before, outputs, readable=READER in catalog)), Usage()
    try:
        return await summarise_history(history, cut, summarise)
    except BadSummary:
        raise
    except ProviderError as error:
        # Such as a wrong model name: the conversation must still be there when it is right.
        if error.fault == "invalid":
            raise BadSummary(f"the request for a summary was rejected: {error}") from error
        # Only where no summary can ever be made: after an outage, the conversation must still be there.
        if error.fault != "too_large":
            raise
        return History([UserMessage(_describe_removed(history[:cut])), *history[cut:]]), Usage()


def _describe_removed(removed: Sequence[Message]) -> str:
    """Return what stands in the place of messages that could not be summarised: the user's request is not lost."""
    for message in reversed(removed):
        if isinstance(message, UserMessage):
            text = Output(message.content).text
            if text.startswith(_LEFT_OUT):  # of an earlier time, with the request in it
                return text
            if text:
                return f"{_LEFT_OUT} {_LAST_REQUEST}\n\n{clip_text(text, _KEPT_REQUEST_CHARS, '[…]')}"
    return _LEFT_OUT


async def summarise_history(
    history: Sequence[Message], cut: int, summarise: Summarise, *, focus: str = ""
) -> tuple[History, Usage]:
    """Replace the first messages with a summary; return the history and the usage.

    Raises:
        BadSummary: The message was cut, refused, unfinished or no summary, twice.
        ProviderError: The request failed.
    """
    prompt = f"{SUMMARY_PROMPT} Above all keep what concerns: {focus}" if focus else SUMMARY_PROMPT
    usage, problem = Usage(), ""
    for wish in (prompt, f"{prompt} {_AGAIN}"):
        summary = await summarise([*history[:cut], UserMessage(wish)])
        usage += summary.usage
        problem = _find_problem(summary)
        if not problem:
            return History([UserMessage(f"{_SUMMARY_HEAD}{summary.text}"), *history[cut:]]), usage
    raise BadSummary(problem, usage)


def _find_problem(summary: AssistantMessage) -> str:
    """Return why a message may not replace the conversation: what is missing from it would be lost for good."""
    if summary.stop == "length":
        return "the summary reached the token limit of one answer; raise Requests.max_tokens"
    if summary.stop == "refusal":
        return "the model refused to summarise the conversation"
    if summary.stop not in ("end", "calls"):
        return "the summary may be incomplete"
    if summary.calls:  # the text beside a call announces it
        return "the model made a call instead of a summary"
    return "" if summary.text.strip() else "the model returned an empty summary"


def find_tail_start(history: Sequence[Message], keep_tokens: int) -> int:
    """Return where the kept part begins: never between calls and their outcomes, never after the last message."""
    start = total = 0
    for index in range(len(history) - 1, -1, -1):
        total += estimate_message_tokens(history[index])
        if isinstance(history[index], ToolMessage):
            continue  # providers reject outcomes whose calls are missing
        if start and total > keep_tokens:
            break
        start = index
    return start


def _clip_large_tail(
    history: Sequence[Message], keep_tokens: int, outputs: Outputs, *, readable: bool
) -> Sequence[Message]:
    """Clip the outputs of the last turn if it alone is larger than the part to keep, which begins with a whole turn."""
    start = find_tail_start(history, keep_tokens)
    if sum(map(estimate_message_tokens, history[start:])) <= keep_tokens:
        return history
    return [*history[:start], *drop_outputs(history[start:], len(history), outputs, readable=readable)]


def drop_outputs(history: Sequence[Message], before: int, outputs: Outputs, *, readable: bool) -> list[Message]:
    """Clip the outputs of the first messages to their beginnings and ends; the whole output stays in a file."""
    return [
        ToolMessage(tuple(_clip_outcome(outcome, outputs, readable=readable) for outcome in message.outcomes))
        if index < before and isinstance(message, ToolMessage)
        else message
        for index, message in enumerate(history)
    ]


def _clip_outcome(outcome: Completed | Failed, outputs: Outputs, *, readable: bool) -> Completed | Failed:
    if isinstance(outcome, Failed):
        return outcome
    return replace(outcome, output=outputs.clip(outcome.output, _KEPT_OUTPUT_CHARS, readable=readable))
