"""The official reference servers, each started and used through our client."""

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.mcp import peers

from callwright import Completed, Executor, Registry
from callwright.mcp import McpServers, ServerConfig
from callwright.policy import AllowEverything

pytestmark = [pytest.mark.peers, pytest.mark.slow, pytest.mark.timeout(600)]


@asynccontextmanager
async def connected(config: ServerConfig) -> AsyncGenerator[Executor, None]:
    registry = Registry()
    async with McpServers([config], registry) as servers:
        [status] = servers.status()
        assert status.condition == "ready", status.reason
        assert status.problems == ()
        yield Executor(registry, AllowEverything())


async def text(executor: Executor, tool: str, **arguments: Any) -> str:
    outcome = await executor.run(tool, arguments)
    assert isinstance(outcome, Completed), outcome
    return outcome.text


def scripted(name: str, package: str, *arguments: str) -> ServerConfig:
    return ServerConfig(name, peers.node(), (peers.node_script(package, "dist/index.js"), *arguments))


async def test_the_time_server_tells_the_time():
    program = peers.python_program("mcp-server-time")
    async with connected(ServerConfig("time", program)) as executor:
        said = json.loads(await text(executor, "mcp__time__get_current_time", timezone="Europe/Paris"))
        assert said["timezone"] == "Europe/Paris"


async def test_the_git_server_reads_a_repository(tmp_path: Path):
    await asyncio.to_thread(subprocess.run, ["git", "init", "-q", str(tmp_path)], check=True)
    (tmp_path / "new.txt").write_text("x")
    program = peers.python_program("mcp-server-git")
    async with connected(ServerConfig("git", program, ("--repository", str(tmp_path)))) as executor:
        assert "new.txt" in await text(executor, "mcp__git__git_status", repo_path=str(tmp_path))


async def test_the_fetch_server_offers_its_tool_and_prompt():
    program = peers.python_program("mcp-server-fetch")
    async with connected(ServerConfig("fetch", program)) as executor:
        assert {"mcp__fetch__fetch", "mcp__fetch__get_prompt"} <= set(executor.registry.snapshot().tools)


async def test_the_sqlite_server_keeps_a_table(tmp_path: Path):
    program = peers.python_program("mcp-server-sqlite")
    async with connected(ServerConfig("db", program, ("--db-path", str(tmp_path / "a.db")))) as executor:
        await text(executor, "mcp__db__create_table", query="CREATE TABLE tea (kind TEXT, minutes INTEGER)")
        await text(executor, "mcp__db__write_query", query="INSERT INTO tea VALUES ('green', 2), ('black', 4)")
        said = await text(executor, "mcp__db__read_query", query="SELECT kind FROM tea WHERE minutes > 3")
        assert "black" in said and "green" not in said
        refused = await executor.run("mcp__db__read_query", {"query": "DROP TABLE tea"})
        assert "Only SELECT" in refused.text
        resource = await text(executor, "mcp__db__read_resource", uri="memo://insights")
        assert "No business insights" in resource
        assert {"mcp__db__get_prompt", "mcp__db__list_resources"} <= set(executor.registry.snapshot().tools)


async def test_the_everything_server_works():
    config = scripted("all", peers.EVERYTHING, "stdio")
    async with connected(config) as executor:
        assert "hello" in await text(executor, "mcp__all__echo", message="hello")
        names = executor.registry.snapshot().tools
        assert {"mcp__all__list_resources", "mcp__all__read_resource", "mcp__all__get_prompt"} <= set(names)


async def test_the_filesystem_server_reads_allowed_files(tmp_path: Path):
    (tmp_path / "a.txt").write_text("content")
    config = scripted("files", peers.FILESYSTEM, str(tmp_path))
    async with connected(config) as executor:
        assert "content" in await text(executor, "mcp__files__read_text_file", path=str(tmp_path / "a.txt"))


async def test_the_memory_server_remembers(tmp_path: Path):
    config = scripted("memory", peers.MEMORY)
    config = ServerConfig("memory", config.command, config.args, env={"MEMORY_FILE_PATH": str(tmp_path / "m.json")})
    async with connected(config) as executor:
        entity = {"name": "Ada", "entityType": "person", "observations": ["wrote programs"]}
        await text(executor, "mcp__memory__create_entities", entities=[entity])
        assert "wrote programs" in await text(executor, "mcp__memory__read_graph")


async def test_the_official_inspector_uses_our_gateway():
    script = peers.node_script(peers.INSPECTOR, "clients/launcher/build/index.js")
    program = Path(__file__).parents[1] / "serve" / "gateway_program.py"
    process = await asyncio.create_subprocess_exec(
        *(peers.node(), script, "--cli", sys.executable, str(program)),
        *("--method", "tools/call", "--tool-name", "add", "--tool-arg", "a=2", "--tool-arg", "b=3"),
        stdout=asyncio.subprocess.PIPE,
        env={**os.environ, "PATH": f"{Path(peers.node()).parent}:{os.environ['PATH']}"},
    )
    said = (await process.communicate())[0]
    assert json.loads(said)["structuredContent"] == {"sum": 5}
