"""What a provider spends on a request before it is sent: its body, built every turn of a conversation that grows.

A body is bytes, because that is what the vendors' clients take. It is extended in place from turn to turn, which needs
that the client has dropped the last one: all of them have when the model's message is complete. The second table shows
what a turn costs if something keeps the last body, so that it has to be copied.
"""

import gc
import time
from collections.abc import Callable

from benchmarks.measure import table
from callwright.core.calls import Completed, ToolCall
from callwright.core.content import Output
from callwright.core.messages import AssistantMessage, History, Message, ToolMessage, UserMessage
from callwright.core.spec import ToolSpec
from callwright.providers.anthropic import AnthropicMessages
from callwright.providers.base import ModelRequest
from callwright.providers.google import GoogleGemini
from callwright.providers.openai.chat import OpenAIChat
from callwright.providers.openai.responses import OpenAIResponses

TURNS = (20, 200, 2_000)
_ARGUMENTS = '{"path":"src/main.py","pattern":"TODO","limit":20,"recursive":true}'
_SCHEMA = {"type": "object", "properties": {"path": {"type": "string"}, "pattern": {"type": "string"}}}
_TOOLS = tuple(ToolSpec(f"tool_{number}", "Search a file.", _SCHEMA) for number in range(20))
_SYSTEM = "Use tools instead of guessing. " * 200
_Provider = AnthropicMessages | OpenAIResponses | OpenAIChat | GoogleGemini
_TIMED, _REPEATS = 20, 5
_MOST_GROWTH = 1.2
_PROVIDERS = (
    AnthropicMessages("claude", api_key="k"),
    OpenAIResponses("gpt", api_key="k"),
    OpenAIChat("gpt", api_key="k"),
    GoogleGemini("gemini", api_key="k"),
)


def _turn(number: int) -> tuple[Message, Message]:
    call = ToolCall(f"call_{number}", "tool_1", _ARGUMENTS)
    return AssistantMessage((call,), "calls"), ToolMessage((Completed(call, Output("a line of text")),))


def _after(turns: int) -> History:
    return History([UserMessage("go"), *(message for number in range(turns) for message in _turn(number))])


def _microseconds(history: History, build: Callable[[], object], *, held: bool) -> float:
    """Return the processor time per build, while the history grows by one turn each time."""
    build()
    gc.collect()
    took, last = 0.0, None
    for number in range(_TIMED):
        for message in _turn(len(history) + number):
            history.append(message)
        if not held:
            last = None
        began = time.process_time()
        last = build()
        took += time.process_time() - began
    del last
    return took / _TIMED * 1e6


def body_microseconds(provider: _Provider, turns: int, *, held: bool = False) -> float:
    """Return the cost of one body after a number of turns; `held`: the last body is still in use."""
    history = _after(turns)
    request = ModelRequest(history, _SYSTEM, _TOOLS)
    return _microseconds(history, lambda: provider._body(request, provider._encoder.encode(request)), held=held)


def _rows(*, held: bool = False) -> list[tuple[str, str, str, bool]]:
    return [_told(each, [_best(each, turns, held=held) for turns in TURNS], held=held) for each in _PROVIDERS]


def _best(
    provider: AnthropicMessages | OpenAIResponses | OpenAIChat | GoogleGemini, turns: int, *, held: bool
) -> float:
    return min(body_microseconds(provider, turns, held=held) for _ in range(_REPEATS))


def _told(provider: object, measured: list[float], *, held: bool) -> tuple[str, str, str, bool]:
    growth = measured[2] / measured[1]
    shown = f"{' / '.join(f'{each:.0f}' for each in measured)} µs, {growth:.2f}x of 200 turns"
    return type(provider).__name__, shown, "-" if held else "<= 1.20x", held or growth <= _MOST_GROWTH


def main() -> None:
    """Print the tables."""
    title = f"building a request after {TURNS[0]} / {TURNS[1]} / {TURNS[2]:,} turns"
    table(title, _rows())
    table(f"{title}, while the last one is still in use", _rows(held=True))
