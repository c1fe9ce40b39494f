"""A loopback server, and a conversation with every kind of content."""

import json
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from callwright.core.calls import Completed, Failed, ToolCall
from callwright.core.content import File, Image, Output, Text
from callwright.core.errors import ToolFailed
from callwright.core.messages import AssistantMessage, History, ToolMessage, UserMessage
from callwright.core.spec import ToolSpec
from callwright.providers.base import ModelRequest
from callwright.testing.loopback import Loopback

_GOLDEN = Path(__file__).parent / "golden"
_STREAMS = Path(__file__).parent / "streams"
_READ_SCHEMA = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
_LOOK_SCHEMA = {"type": "object", "properties": {"page": {"type": "integer"}}}


@pytest.fixture
async def server() -> AsyncIterator[Loopback]:
    async with Loopback() as running:
        yield running


@pytest.fixture
def tools() -> tuple[ToolSpec, ...]:
    return (ToolSpec("fs.read", "Read a file.", _READ_SCHEMA), ToolSpec("look", "Look at a page.", _LOOK_SCHEMA))


@pytest.fixture
def request_for(tools: tuple[ToolSpec, ...]) -> Callable[..., ModelRequest]:
    """Make a request with the two tools."""

    def make(*messages: Any, **fields: Any) -> ModelRequest:
        wire = {"fs.read": "fs_read", "look": "look"}
        return replace(ModelRequest(History(messages), "Be brief.", tools, wire), **fields)

    return make


@pytest.fixture
def conversation() -> tuple[Any, ...]:
    """Pictures both ways, parallel calls, a failure, a call that is no JSON, an id no API takes, an empty answer."""
    read, look = ToolCall("call_1", "fs.read", '{"path": "a.txt"}'), ToolCall("call_2", "look", {"page": 3})
    bad = ToolCall("no good id!", "look", '{"page": ')
    return (
        UserMessage(
            (
                Text("What is this?"),
                Image(b"\x89PNG\r\n\x1a\n\x00\x00\x00\x00IEND\xaeB`\x82"),
                File(b"%PDF", "application/pdf", "a.pdf"),
            )
        ),
        AssistantMessage((Text("I look."), read, look), "calls"),
        ToolMessage(
            (
                Completed(read, Output("hello\n")),
                Completed(look, Output((Text("page 3"), Image(b"\xff\xd8\xff\xe0", "image/jpeg")))),
            )
        ),
        AssistantMessage((bad,), "length"),
        ToolMessage((Failed(bad, ToolFailed("the call was cut off")),)),
        AssistantMessage((), "end"),
        UserMessage("And \ud83d now?"),
    )


@pytest.fixture
def recorded() -> Callable[[str], bytes]:
    """Read what a provider answered: thoughts, text and two calls, in its own words."""
    return lambda name: (_STREAMS / f"{name}.sse").read_bytes()


@pytest.fixture
def golden() -> Callable[[str, Any], None]:
    """Compare with a golden file; delete the file to have it written anew."""

    def compare(name: str, value: Any) -> None:
        path = _GOLDEN / f"{name}.json"
        if not path.exists():
            path.write_text(json.dumps(value, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
            pytest.fail(f"{path.name} was written; look at it and run again")
        assert value == json.loads(path.read_text(encoding="utf-8"))

    return compare
