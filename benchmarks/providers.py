"""What a provider spends on a request before it is sent: its body, built every turn of a conversation that grows.

A body is bytes, because that is what the vendors' clients take, so it is copied once every turn; nothing else grows.
glibc gives such a block back to the system and asks for a little more the next turn, and fresh pages cost several
times the copy: hence the second table. Handing the clients pieces instead costs them more than it saves us up to
bodies of about a megabyte, and conversations are summarised before.
"""

import ctypes
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
_TIMED, _REPEATS = 20, 5
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
"""glibc's names for what MALLOC_TRIM_THRESHOLD_ and MALLOC_MMAP_THRESHOLD_ set from outside."""
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


def _microseconds(history: History, build: Callable[[], object]) -> float:
    """Return the processor time per build, while the history grows by one turn each time."""
    build()
    gc.collect()
    took, kept = 0.0, None
    for number in range(_TIMED):
        for message in _turn(len(history) + number):
            history.append(message)
        began = time.process_time()
        kept = build()  # the last one lives until the next is there, as it does while it is sent
        took += time.process_time() - began
    del kept
    return took / _TIMED * 1e6


def body_microseconds(provider: AnthropicMessages | OpenAIResponses | OpenAIChat | GoogleGemini, turns: int) -> float:
    """Return the cost of one body after a number of turns."""
    history = _after(turns)
    request = ModelRequest(history, _SYSTEM, _TOOLS)
    return _microseconds(history, lambda: provider._body(request, provider._encoder.encode(request)))


def _told(name: str, measured: list[float]) -> tuple[str, str, str, bool]:
    flat = max(measured) <= measured[0] * 1.2
    return name, " / ".join(f"{each:.0f}" for each in measured) + " µs", "within 20 %", flat


def _rows() -> list[tuple[str, str, str, bool]]:
    return [
        _told(type(each).__name__, [min(body_microseconds(each, turns) for _ in range(_REPEATS)) for turns in TURNS])
        for each in _PROVIDERS
    ]


def main() -> None:
    """Print the tables."""
    title = f"building a request after {TURNS[0]} / {TURNS[1]} / {TURNS[2]:,} turns"
    table(title, _rows())
    keep = getattr(ctypes.CDLL(None), "mallopt", None)
    if keep is not None:
        for kind in (_TRIM_THRESHOLD, _MMAP_THRESHOLD):
            keep(kind, 1 << 28)
        table(f"{title}, with an allocator that keeps what it has", _rows())
