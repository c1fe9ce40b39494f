"""Fixtures: a project, a scripted model, and an editor that is connected to our agent in this process."""

import asyncio
import json
import socket
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

import pytest
from acp.client.connection import ClientSideConnection
from tests.acp.editor import Connected, EditorClient

from callwright.acp import LineTransport
from callwright.cli.commands.acp import open_agent

Connect = Callable[..., AbstractAsyncContextManager[Connected]]


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("CALLWRIGHT_HOME", str(home))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture
def script(tmp_path: Path) -> Callable[..., str]:
    """Writes a script for the model; returns the option that names it."""

    def write(*replies: object) -> str:
        file = tmp_path / f"script-{len(list(tmp_path.glob('script-*')))}.json"
        file.write_text(json.dumps(replies))
        return f"--model=script:{file}"

    return write


@pytest.fixture
def connect(project: Path, script: Callable[..., str]) -> Connect:
    @asynccontextmanager
    async def connect(
        *replies: object, client: EditorClient | None = None, arguments: tuple[str, ...] = ()
    ) -> AsyncGenerator[Connected, None]:
        agent = open_agent([script(*replies), *arguments])
        ours, theirs = socket.socketpair()
        reader, writer = await asyncio.open_connection(sock=ours)
        far_reader, far_writer = await asyncio.open_connection(sock=theirs, limit=1 << 26)
        serving = asyncio.create_task(agent.serve(LineTransport(reader, writer)))
        used = client or EditorClient()
        connection = ClientSideConnection(used, far_writer, far_reader, use_unstable_protocol=True)  # type: ignore[arg-type] - it has what the tests use
        try:
            yield Connected(connection, used, project, agent)
        finally:
            await connection.close()
            far_writer.close()
            await serving

    return connect
