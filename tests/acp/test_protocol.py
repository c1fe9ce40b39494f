"""Every method of the schema is answered or refused, and no message ends the connection."""

import asyncio
import json
import os
import sys
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any, cast

import pytest
from acp import RequestError
from acp.meta import AGENT_METHODS
from acp.schema import InitializeResponse, McpServerStdio
from hypothesis import given, strategies as st
from tests.acp.conftest import Connect
from tests.acp.editor import Connected
from tests.waiting import LONG_SECONDS

from callwright.acp.requests import read_servers
from callwright.acp.transport import BadMessage, LineTransport, check_message
from callwright.mcp.config import servers_of

SUPPORTED = {
    "authenticate",
    "initialize",
    "session/cancel",
    "session/close",
    "session/delete",
    "session/fork",
    "session/list",
    "session/load",
    "session/new",
    "session/prompt",
    "session/resume",
    "session/set_config_option",
    "session/set_mode",
}


_RIGHT = {"session/close": (0, -32002), "session/delete": (-32002,), "session/list": (0,)}
"""What a method may say of parameters that are right for it."""


async def code_of(editor: Connected, method: str, params: object) -> int:
    """Return the error code of a request; 0 if it succeeded."""
    try:
        await editor.raw(method, params)
    except RequestError as error:
        return error.code
    return 0


@pytest.mark.parametrize("method", sorted(AGENT_METHODS.values()))
async def test_every_method_is_answered_or_refused(connect: Connect, method: str) -> None:
    async with connect("never") as editor:
        session = await editor.start()
        wrong: list[Any] = [None, {}, [], "text", 5, {"sessionId": 5}, {"sessionId": session, "cwd": {}, "prompt": "x"}]
        params: Any
        for params in wrong:
            code = await code_of(editor, method, params)
            if method not in SUPPORTED - {"session/cancel"}:  # a notification is no request
                assert code == -32601
            elif not ((isinstance(params, dict) and params) or (params is None and method == "session/list")):
                assert code == (0 if method == "session/list" and params == {} else -32602), (params, code)
            else:
                assert code in (-32602, *_RIGHT.get(method, ())), (params, code)
            await editor.connection._conn.send_notification(method, cast("Any", params))  # pyright: ignore[reportPrivateUsage] - the SDK has no public way
        assert await code_of(editor, "session/list", {}) == 0


async def test_unknown_methods_are_refused_and_notifications_ignored(connect: Connect) -> None:
    async with connect("never") as editor:
        await editor.start()
        for method in ("session/nothing", "", "_own/method", "initialise", "x" * 100_000):
            assert await code_of(editor, method, {}) == -32601
            await editor.connection._conn.send_notification(method, {})  # pyright: ignore[reportPrivateUsage] - the SDK has no public way
        assert await code_of(editor, "session/list", {}) == 0


async def test_initialize_comes_first_and_is_honest(connect: Connect) -> None:
    async with connect("never") as editor:
        assert await code_of(editor, "session/new", {"cwd": str(editor.project), "mcpServers": []}) == -32600
        answered = InitializeResponse.model_validate(await editor.raw("initialize", {"protocolVersion": 99}))
        offered = answered.agent_capabilities
        assert answered.protocol_version == 1 and offered is not None and offered.load_session
        assert offered.prompt_capabilities is not None and not offered.prompt_capabilities.audio
        assert offered.mcp_capabilities is not None and not offered.mcp_capabilities.sse
        sessions = offered.session_capabilities
        assert sessions is not None and sessions.list and sessions.fork and sessions.resume and sessions.delete
        assert answered.auth_methods == []
        assert await code_of(editor, "authenticate", {"methodId": "token"}) == -32602


async def test_servers_that_are_not_supported_are_refused(connect: Connect) -> None:
    async with connect("never") as editor:
        await editor.connection.initialize(1)
        stdio: dict[str, Any] = {"name": "a", "command": "true", "args": [], "env": []}
        refused: list[list[Any]] = [
            [{"type": "sse", "name": "a", "url": "http://127.0.0.1:1/sse", "headers": []}],
            [{"type": "acp", "name": "a", "id": "1"}],
            [{"type": "stdio", "name": "a"}],
            [stdio, 5],
            [stdio, stdio],
        ]
        for servers in refused:
            code = await code_of(editor, "session/new", {"cwd": str(editor.project), "mcpServers": servers})
            assert code == -32602


async def test_meta_cannot_replace_parameters(connect: Connect) -> None:
    async with connect("one") as editor:
        session = await editor.start()
        sent = {"sessionId": session, "prompt": [{"type": "text", "text": "hi"}], "_meta": {"session_id": "other"}}
        assert await editor.raw("session/prompt", {**sent, "_meta": {"prompt": 5, "session_id": "x"}})
        assert editor.client.text() == "one"


@pytest.mark.parametrize(
    ("line", "code"),
    [
        (b"{", -32700),
        (b"[" * 100_000, -32700),
        (b"\xff\xfe\x00", -32700),
        (b"[]", -32600),
        (b"5", -32600),
        (b"null", -32600),
        (b'"text"', -32600),
        (b"{}", -32600),
        (b'{"id": [1], "method": "initialize"}', -32600),
        (b'{"id": null, "method": "initialize"}', -32600),
        (b'{"id": true, "result": {}}', -32600),
        (b'{"id": 1, "method": {"a": 1}}', -32600),
        (b'{"id": 1.5, "method": "initialize"}', -32600),
        (b'{"id": 1e999, "method": "initialize"}', -32600),
        (b'{"id": NaN, "method": "initialize"}', -32700),
        (b'{"id": 1, "method": "session/cancel", "method": "session/delete"}', -32600),
        (b'[{"jsonrpc": "2.0", "id": 1, "method": "initialize"}]', -32600),
    ],
)
def test_line_that_is_no_message_gets_an_error(line: bytes, code: int) -> None:
    with pytest.raises(BadMessage) as raised:
        check_message(line)
    assert raised.value.reply["error"]["code"] == code


@pytest.mark.parametrize(
    "answer",
    [
        b'{"id": 1}',
        b'{"id": 1, "error": "text"}',
        b'{"id": 1, "error": {"code": "x", "message": 5}}',
        b'{"id": 1, "result": {"a": 1}, "error": {"code": 1, "message": "no"}}',
        b'{"id": 1, "result": {"optionId": "reject", "optionId": "once"}}',
        b'{"id": 1, "result": {"yes": 0}, "result": {"yes": 1}}',
    ],
)
def test_answer_that_is_not_clear_is_an_error(answer: bytes) -> None:
    assert set(check_message(answer)) == {"id", "error"}


_KEYS = st.sampled_from(["id", "method", "params", "result", "error", "code"])
_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(_KEYS, inner, max_size=4),
    max_leaves=6,
)


@given(_VALUES)
def test_every_json_value_is_a_message_or_an_error(value: Any) -> None:
    try:
        message = check_message(json.dumps(value).encode())
    except BadMessage:
        return
    assert "method" in message or "result" in message or isinstance(message["error"]["code"], int)
    assert not isinstance(message.get("id"), (dict, list))


async def test_long_line_is_skipped() -> None:
    reader = asyncio.StreamReader()
    sent: list[bytes] = []

    class Writer:
        def is_closing(self) -> bool:
            return False

        def write(self, data: bytes) -> None:
            sent.append(data)

        async def drain(self) -> None: ...

    transport = LineTransport(reader, Writer(), most_bytes=100_000)  # type: ignore[arg-type] - all that it uses
    reader.feed_data(b'{"id": 1, "method": "' + b"x" * 400_000 + b'"}\n{"id": 2, "method": "next"}\n{"id": 3, "meth')
    reader.feed_eof()
    assert await transport.receive() == {"id": 2, "method": "next"}
    assert "400" in json.loads(sent[0])["error"]["message"]
    assert await transport.receive() is None


@pytest.mark.slow
@pytest.mark.parametrize("stdout", [PIPE, DEVNULL])
async def test_input_that_asyncio_cannot_wait_for_ends_the_process(
    project: Path, script: Callable[..., str], stdout: int
) -> None:
    """Neither a traceback nor a process that waits for ever."""
    command = (sys.executable, "-m", "callwright", "acp", script("hello"))
    process = await asyncio.create_subprocess_exec(*command, stdin=DEVNULL, stdout=stdout, stderr=PIPE, cwd=project)
    async with asyncio.timeout(LONG_SECONDS):
        output, errors = await process.communicate()
    assert (process.returncode, output or b"", errors) == (0, b"", b"")


@pytest.mark.slow
async def test_process_survives_hostile_lines_and_prints_only_messages(
    project: Path, script: Callable[..., str]
) -> None:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "callwright", "acp", script("hello"), stdin=PIPE, stdout=PIPE, stderr=PIPE, cwd=project
    )
    assert process.stdin is not None
    hostile = [b"{", b"[]", b"null", b"\x00\xff", b'{"id":0,"error":"text"}', b'{"id":{},"result":1}', b"[" * 50_000]
    new: dict[str, Any] = {"cwd": os.fspath(project), "mcpServers": []}
    lines: list[Any] = [
        *hostile,
        {"id": 1, "method": "initialize", "params": {"protocolVersion": 1, "clientCapabilities": {"fs": 5}}},
        {"id": "\ud800", "method": "session/list", "params": {}},
        {"id": 2, "method": "session/new", "params": new},
        {"id": 3, "method": "session/prompt", "params": {"sessionId": "\udfff", "prompt": [{"type": "text"}]}},
        {"id": 4, "method": "nes/suggest", "params": {}},
    ]
    for line in lines:
        process.stdin.write((line if isinstance(line, bytes) else json.dumps(line).encode()) + b"\n")
    process.stdin.close()
    out, err = await process.communicate()
    answers = [json.loads(line) for line in out.splitlines()]
    assert process.returncode == 0, err.decode()
    by_id = {str(each.get("id")): each for each in answers if "id" in each}
    assert by_id["1"]["result"]["protocolVersion"] == 1
    assert by_id["4"]["error"]["code"] == -32601
    assert sum(each.get("error", {}).get("code") in (-32700, -32600) for each in answers) >= len(hostile) - 1


def _random_value(random: Random, depth: int = 0) -> Any:
    plain: list[Any] = [None, True, 0, -1, 1 << 70, 1.5, "", "x", "\ud800", "../..", "/", "\0", "session/new", [], {}]
    if depth > 3 or random.random() < 0.5:
        return random.choice(plain)
    keys = ["sessionId", "cwd", "prompt", "mcpServers", "type", "text", "uri", "resource", "_meta", "modeId", "value"]
    if random.random() < 0.5:
        return [_random_value(random, depth + 1) for _ in range(random.randrange(3))]
    return {random.choice(keys): _random_value(random, depth + 1) for _ in range(random.randrange(5))}


@pytest.mark.parametrize("seed", range(4))
async def test_random_requests_are_all_answered(connect: Connect, seed: int) -> None:
    random = Random(seed)
    async with connect("one") as editor:
        session = await editor.start()
        methods = [*sorted(SUPPORTED - {"session/cancel", "session/close", "session/delete"}), "nothing"]
        for _ in range(60):
            params: Any = _random_value(random)
            if random.random() < 0.3:
                params = {"sessionId": session, "cwd": str(editor.project), "prompt": params, "mcpServers": params}
            await code_of(editor, random.choice(methods), params)
        assert await code_of(editor, "session/list", {}) == 0
        assert not [path for path in editor.project.iterdir() if path.name != ".callwright"]


def test_entries_of_mcp_servers_are_taken_literally(tmp_path: Path) -> None:
    variables = [{"name": "A", "value": "${HOME}"}]
    server = McpServerStdio.model_validate(
        {"name": "own", "command": "run", "args": ["-c", "echo ${HOME:-x} $HOME"], "env": variables}
    )
    loaded = servers_of(json.loads(read_servers([server], tmp_path)))
    (config,) = loaded.servers
    assert (config.args, dict(config.env)) == (("-c", "echo ${HOME:-x} $HOME"), {"A": "${HOME}"})
    assert (config.cwd, config.repository, loaded.problems) == (str(tmp_path), "", ())
