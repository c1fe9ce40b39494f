"""Conversations of every kind, and the check that a provider sends them in a form that its vendor accepts."""

from collections.abc import Callable, Mapping

from callwright.core.calls import Completed, Failed, ToolCall
from callwright.core.content import File, Image, Output, Text
from callwright.core.errors import ToolFailed
from callwright.core.json import JsonObject
from callwright.core.messages import AssistantMessage, History, Message, Thinking, ToolMessage, UserMessage
from callwright.core.spec import ToolSpec
from callwright.providers.base import ModelRequest, Provider
from callwright.providers.clients import close_provider
from callwright.testing.loopback import Loopback, LoopbackReply, Received
from callwright.testing.requests import FindFaults

_REASONING: JsonObject = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "ZW5j"}
_THOUGHTS = (
    Thinking("hm", {"provider": "anthropic", "value": {"type": "thinking", "signature": "c2ln"}}),
    Thinking("hm", {"provider": "openai", "value": _REASONING}),
    Thinking("hm", {"provider": "google", "value": {"thought": True, "signature": "c2ln"}}),
    Thinking("", {"provider": "google", "value": {"signature": "c2ln"}}),
    Thinking("hm", {"provider": "openai_chat", "value": "reasoning_content"}),
    Thinking("hm"),
)
"""Thinking of every vendor: each must get back its own and none of the others'."""
_READ = ToolCall("call_1", "fs.read", '{"path": "a.txt"}')
_LOOK = ToolCall("no good id!", "look", {"page": 3})
_CUT = ToolCall("call_2", "look", '{"page": ')
_PARTS = (
    Text("see"),
    Image(b"\x89PNG\r\n\x1a\n", "image/jpg"),
    Image(b"\xff\xd8\xff\xe0", "image/pjpeg"),
    Image(b"GIF89a", "image/gif"),
    Image(b"<svg/>", "image/svg+xml"),
    Image(b"BM", "image/bmp"),
    File(b"%PDF", "application/pdf", "a.pdf"),
    File(b"a,b", "text/csv", "a.csv"),
    File(b"PK", "application/zip"),
)
_ASK = UserMessage("And now?")
CONVERSATIONS: Mapping[str, tuple[Message, ...]] = {
    "a question": (UserMessage("Say hello."),),
    "blank texts": (UserMessage(" "), AssistantMessage((Text(""),)), _ASK, AssistantMessage(()), _ASK),
    "calls and a failure": (
        UserMessage("Look."),
        AssistantMessage((Text("I look."), _READ, _LOOK), "calls"),
        ToolMessage((Completed(_READ, Output("")), Failed(_LOOK, ToolFailed("no page 3")))),
        _ASK,
    ),
    "a call that was cut off": (
        _ASK,
        AssistantMessage((_CUT,), "length"),
        ToolMessage((Failed(_CUT, ToolFailed("the call was cut off")),)),
        _ASK,
    ),
    "thinking cut off": (_ASK, AssistantMessage(_THOUGHTS, "length"), _ASK),
    "thinking before text": (_ASK, AssistantMessage((*_THOUGHTS, Text("so"))), _ASK),
    "thinking after text": (_ASK, AssistantMessage((Text("so"), *_THOUGHTS), "length"), _ASK),
    "thinking before a call": (
        _ASK,
        AssistantMessage((*_THOUGHTS, _READ), "calls", model="gemini-2.5-pro"),
        ToolMessage((Completed(_READ, Output("a")),)),
    ),
    "an unsigned call": (
        _ASK,
        AssistantMessage((_READ,), "calls", model="gemini-2.5-pro"),
        ToolMessage((Completed(_READ, Output("a")),)),
    ),
    "media": (
        UserMessage(_PARTS),
        AssistantMessage((_READ,), "calls"),
        ToolMessage((Completed(_READ, Output(_PARTS)),)),
        _ASK,
    ),
}
"""Conversations that a session can contain, whichever models took part in it."""
_TOOLS = (
    ToolSpec("fs.read", "Read a file.", {"type": "object", "properties": {"path": {"type": "string"}}}),
    ToolSpec("look", "Look at a page.", {"type": "object", "properties": {"page": {"type": "integer", "minimum": 1}}}),
)
_WIRE = {"fs.read": "fs_read"}
_ANSWERS: tuple[JsonObject | None, ...] = (
    None,
    {
        "type": "object",
        "properties": {
            "count": {"type": "integer", "minimum": 1, "maximum": 9},
            "names": {"type": "array", "items": {"type": "string", "pattern": "^a"}, "maxItems": 3},
        },
        "required": ["count"],
    },
    {"type": "object", "additionalProperties": {"type": "integer"}},
)


async def check_requests(make: Callable[[str], Provider], find_faults: FindFaults, answer: bytes) -> list[Received]:
    """Check that everything a session can contain is sent in a form that the vendor accepts; return the requests.

    Each of `CONVERSATIONS` is sent with and without tools and with several schemas of the answer.

    Args:
        make: Creates the provider for the address of a server.
        find_faults: Returns what the vendor would refuse, such as `anthropic_faults`.
        answer: A response that the provider can read.

    Raises:
        AssertionError: The vendor would refuse a request.
    """
    async with Loopback(find_faults) as server:
        server.reply(LoopbackReply([answer]))
        provider = make(server.url)
        for name, messages in CONVERSATIONS.items():
            for tools in (_TOOLS, ()):
                for schema in _ANSWERS:
                    request = ModelRequest(History(messages), "Be brief.", tools, _WIRE, output_schema=schema)
                    before = len(server.received)
                    async for _ in provider.stream(request):
                        pass
                    faults = [fault for received in server.received[before:] for fault in find_faults(received)]
                    assert not faults, f"{name}: {'; '.join(faults)}"
        await close_provider(provider)
        return server.received
