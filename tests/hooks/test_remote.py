"""Hooks of type http and prompt, other shells, and background hooks that object."""

import asyncio
import json
import shutil
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from tests.waiting import LONG_SECONDS, until

from callwright import Completed, Effect, Executor, Registry, tool
from callwright.core.calls import Outcome
from callwright.core.errors import UsageError
from callwright.hooks.shell.config import parse_shell_hooks
from callwright.hooks.shell.dispatch import HookContext
from callwright.hooks.shell.hooks import ShellHooks
from callwright.hooks.shell.remote import (
    _Breaker,  # pyright: ignore[reportPrivateUsage] - what it leaves open is seen here only
    _post,  # pyright: ignore[reportPrivateUsage] - what it leaves open is seen here only
)
from callwright.policy import AllowEverything

DENY = json.dumps({"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "deny"}})
ALLOW = DENY.replace("deny", "allow")


class Endpoint(ThreadingHTTPServer):
    """Answers every request with one status and body, and keeps what it got."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.status, self.body = 200, b""
        self.got: list[tuple[dict[str, str], Any]] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/hook?a=1"


class _Handler(BaseHTTPRequestHandler):
    server: Endpoint  # pyright: ignore[reportIncompatibleVariableOverride] - always made by it

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.got.append((dict(self.headers), json.loads(body)))
        self.send_response(self.server.status)
        self.send_header("Location", self.server.url)
        self.send_header("Content-Length", str(len(self.server.body)))
        self.end_headers()
        self.wfile.write(self.server.body)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the name of the base class
        return None


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    with Endpoint() as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield server
        server.shutdown()


async def run_guarded(entry: dict[str, Any], tmp_path: Path, **context: Any) -> Outcome:
    @tool(effect=Effect.WRITE, aliases=("Bash",))
    async def bash(command: str) -> str:
        """Leave a mark, to see whether it ran."""
        (tmp_path / "ran").touch()
        return "ran"

    hooks, problems = parse_shell_hooks({"PreToolUse": [{"matcher": "Bash", "hooks": [entry]}]})
    assert problems == ()
    fired = ShellHooks(hooks, HookContext(str(tmp_path), **context))
    executor = Executor(Registry(bash), AllowEverything(), hooks=fired.call_hooks())
    outcome = await executor.run("bash", {"command": "x"})
    assert isinstance(outcome, Completed) is (tmp_path / "ran").exists()
    return outcome


@pytest.mark.slow
def test_connection_ends_with_an_answer_that_does_not(tmp_path: Path) -> None:
    (hook,), _ = parse_shell_hooks({"PreToolUse": [{"hooks": [{"type": "http", "url": "http://x", "timeout": 1}]}]})
    with socket.create_server(("127.0.0.1", 0)) as door:
        ended = threading.Event()

        def stall() -> None:
            connection, _ = door.accept()
            with connection:
                connection.settimeout(LONG_SECONDS)
                connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{")
                while connection.recv(1 << 16):
                    pass
                ended.set()

        threading.Thread(target=stall, daemon=True).start()
        asked = replace(hook, command=f"http://127.0.0.1:{door.getsockname()[1]}/")
        with pytest.raises(TimeoutError) as caught:
            _post(asked, b"{}", _Breaker())
        assert ended.wait(LONG_SECONDS)
    assert caught.value  # kept until here: its frames hold the connection


@pytest.mark.parametrize("scheme", ["http", "https"])
async def test_http_hook_that_answers_drop_by_drop_is_cut_off(scheme: str, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as door:
        cut = threading.Event()

        def drip() -> None:
            connection, _ = door.accept()
            # over TLS a record that is announced as long: the handshake waits for the rest of it
            drops = b"HTTP/1.1 200 OK\r\nX-Drops: " if scheme == "http" else b"\x16\x03\x03\x3f\xff"
            with connection, suppress(OSError):
                while True:
                    connection.sendall(drops)
                    drops = b"."
                    time.sleep(0.02)
            cut.set()

        threading.Thread(target=drip, daemon=True).start()
        entry = {"type": "http", "url": f"{scheme}://127.0.0.1:{door.getsockname()[1]}/", "timeout": 0.3}
        outcome = await run_guarded(entry, tmp_path)
        assert "did not end within 0.3 s" in outcome.text
        assert await asyncio.to_thread(cut.wait, LONG_SECONDS)  # no thread is left that reads on


async def test_http_hook_gets_the_event_and_listed_variables(
    endpoint: Endpoint, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GUARD_TOKEN", "t0ken")
    monkeypatch.setenv("OTHER_SECRET", "s3cret")
    headers = {"Authorization": "Bearer $GUARD_TOKEN", "X-Other": "${OTHER_SECRET}-"}
    entry = {"type": "http", "url": endpoint.url, "headers": headers, "allowedEnvVars": ["GUARD_TOKEN"]}
    assert isinstance(await run_guarded(entry, tmp_path), Completed)
    sent, event = endpoint.got[0]
    assert (sent["Authorization"], sent["X-Other"]) == ("Bearer t0ken", "-")
    assert event["tool_name"] == "Bash" and event["tool_input"] == {"command": "x"}


@pytest.mark.parametrize(
    ("status", "body", "runs"),
    [
        (200, "", True),
        (200, "{}", True),
        (204, "", True),
        (200, ALLOW, True),
        (200, DENY, False),
        (200, f"ok {DENY}", False),
        (200, "denied", False),
        (302, ALLOW, False),
        (403, "", False),
        (500, ALLOW, False),
        (200, "x" * 1_100_000, False),
    ],
)
async def test_http_hook_decides_or_fails_closed(
    endpoint: Endpoint, tmp_path: Path, status: int, body: str, runs: bool
) -> None:
    endpoint.status, endpoint.body = status, body.encode()
    outcome = await run_guarded({"type": "http", "url": endpoint.url, "timeout": 20}, tmp_path)
    assert isinstance(outcome, Completed) is runs


async def test_unreachable_endpoint_denies(tmp_path: Path) -> None:
    outcome = await run_guarded({"type": "http", "url": "http://127.0.0.1:1/hook"}, tmp_path)
    assert not isinstance(outcome, Completed) and "failed" in outcome.text


@pytest.mark.parametrize(
    ("answer", "runs"),
    [
        ('{"ok": true}', True),
        ('```json\n{"ok": true}\n```', True),
        ('{"ok": false, "reason": "not on Sunday"}', False),
        ('{"ok": "true"}', False),
        ('{"ok": 1}', False),
        ("{}", False),
        ("yes", False),
        ("", False),
        ('[{"ok": true}]', False),
        ('{"ok": false, "ok": true}', False),
    ],
)
async def test_prompt_hook_decides_or_fails_closed(tmp_path: Path, answer: str, runs: bool) -> None:
    asked: list[tuple[str, str]] = []

    async def ask(model: str, system: str, prompt: str) -> str:
        asked.append((model, prompt))
        return answer

    entry = {"type": "prompt", "prompt": "Safe? $ARGUMENTS", "model": "small"}
    outcome = await run_guarded(entry, tmp_path, ask_model=ask)
    assert isinstance(outcome, Completed) is runs
    assert asked[0][0] == "small" and '"tool_name": "Bash"' in asked[0][1] and "$ARGUMENTS" not in asked[0][1]


async def test_prompt_hook_without_a_model_denies(tmp_path: Path) -> None:
    async def fail(model: str, system: str, prompt: str) -> str:
        raise UsageError("there is no model 'small'")

    for context in ({}, {"ask_model": fail}):
        assert not isinstance(await run_guarded({"type": "prompt", "prompt": "x"}, tmp_path, **context), Completed)


@pytest.mark.parametrize("shell", ["sh", "dash", "zsh", "fish", "powershell"])
async def test_other_shells_run_or_deny(tmp_path: Path, shell: str) -> None:
    installed = shutil.which("pwsh" if shell == "powershell" else shell) is not None
    outcome = await run_guarded({"command": "exit 0", "shell": shell}, tmp_path)
    assert isinstance(outcome, Completed) is installed


async def test_rewaking_hook_hands_its_objection_over(tmp_path: Path) -> None:
    entry = {"command": "echo 'the build broke' >&2; exit 2", "asyncRewake": True}
    quiet = {"command": "echo 'only noted' >&2; exit 2", "async": True}
    hooks, _ = parse_shell_hooks({"PostToolUse": [{"hooks": [entry, quiet]}]})
    fired = ShellHooks(hooks, HookContext(str(tmp_path)))
    await fired.fire("PostToolUse", {"tool_name": "Bash"}, session_id="s")
    await until(lambda: not fired._running)  # pyright: ignore[reportPrivateUsage]
    assert fired.take_objections("other") == ""
    assert fired.take_objections("s") == "the build broke" and fired.take_objections("s") == ""
