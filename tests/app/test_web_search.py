"""`web_search`: off unless configured, and each way to search against a real counterpart."""

import json
import sys
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from callwright.app.models import ModelChoice, Models, open_model
from callwright.app.settings import Settings
from callwright.app.settings_file import parse_layer
from callwright.app.web_search import is_own_server, web_search_tool
from callwright.core.access import Reach, RunCommand
from callwright.core.calls import Completed, Failed, Interrupted
from callwright.core.errors import Transient, UsageError
from callwright.executor.executor import Executor
from callwright.policy import AllowEverything, ByMode, Policies
from callwright.providers.hosted_search import HostedSearch
from callwright.registry import Registry
from callwright.testing import ScriptedProvider
from callwright.tool.decorator import tool


def configured(value: object) -> Settings:
    return Settings((parse_layer("user", "settings.json", json.dumps({"webSearch": value})),))


def search_tool(value: object, folder: Path) -> Any:
    return web_search_tool(configured(value), Models(ScriptedProvider()), folder)


@pytest.mark.parametrize("value", [None, "off"])
def test_it_is_off_unless_configured(value: object, tmp_path: Path) -> None:
    settings = Settings() if value is None else configured(value)
    assert web_search_tool(settings, Models(ScriptedProvider()), tmp_path) is None


@pytest.mark.parametrize("value", ["on", {"command": []}, {}, {"command": ["a"], "tool": "b"}, {"tool": "x", "y": 1}])
def test_wrong_setting_is_refused(value: object, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"settings\.json"):
        search_tool(value, tmp_path)


def test_model_without_hosted_search_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="hosts no web search"):
        search_tool("hosted", tmp_path)


@pytest.mark.parametrize(
    ("model", "base_url", "variables", "address"),
    [
        ("openai:gpt-6.1-sol", "", {}, "https://api.openai.com/v1/responses"),
        ("http://127.0.0.1:9/v1#gpt", "", {}, ""),
        ("openai:gpt-6.1-sol", "http://127.0.0.1:9/v1", {}, ""),
        ("openai-chat:gpt", "", {"OPENAI_BASE_URL": "http://127.0.0.1:9/v1"}, ""),
        ("anthropic:claude", "http://127.0.0.1:9", {}, "http://127.0.0.1:9/v1/messages"),
        ("anthropic:claude", "", {"ANTHROPIC_BASE_URL": "http://127.0.0.1:9"}, "http://127.0.0.1:9/v1/messages"),
    ],
)
def test_hosted_search_sends_query_and_key_only_where_the_model_is(
    model: str, base_url: str, variables: dict[str, str], address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {"OPENAI_API_KEY": "key", "ANTHROPIC_API_KEY": "key", **variables}.items():
        monkeypatch.setenv(name, value)
    choice = ModelChoice(model, "chosen", base_url)
    written = json.dumps({"webSearch": "hosted", **({"baseUrl": base_url} if base_url else {})})
    settings = Settings((parse_layer("user", "settings.json", written),))
    models = Models(open_model(choice))
    if address:
        made: Any = web_search_tool(settings, models, tmp_path, own_server=is_own_server(choice))
        assert made.bind({"query": "x"}).accesses() == (Reach(address),)
    else:
        with pytest.raises(UsageError, match="hosts no web search"):
            web_search_tool(settings, models, tmp_path, own_server=is_own_server(choice))


async def test_command_gets_the_query_as_one_argument(tmp_path: Path) -> None:
    script = tmp_path / "find.py"
    script.write_text("import sys; print('found', sys.argv[1:])")
    made = search_tool({"command": [sys.executable, str(script)]}, tmp_path)
    (access,) = made.bind({"query": "a; touch b"}).accesses()
    assert isinstance(access, RunCommand) and access.line.endswith(" 'a; touch b'")
    outcome = await Executor(Registry(made), Policies(AllowEverything())).run("web_search", {"query": "a; touch b"})
    assert isinstance(outcome, Completed) and outcome.text.strip() == "found ['a; touch b']"
    assert not (tmp_path / "b").exists()


async def test_command_is_asked_about(tmp_path: Path) -> None:
    made = search_tool({"command": ["search-the-web"]}, tmp_path)
    outcome = await Executor(Registry(made), Policies(ByMode("default"))).run("web_search", {"query": "x"})
    assert isinstance(outcome, Interrupted)


@pytest.mark.parametrize("mode", ["default", "plan", "auto", "dontAsk"])
async def test_command_does_not_run_as_if_it_were_behind_a_wall(tmp_path: Path, mode: str) -> None:
    made = search_tool({"command": ["search-the-web"]}, tmp_path)
    policies = Policies(ByMode(mode, sandboxed=True, auto_allow="walled"))
    outcome = await Executor(Registry(made), policies).run("web_search", {"query": "x"})
    assert isinstance(outcome, Interrupted if mode in ("default", "auto") else Failed)
    assert isinstance(outcome, Interrupted) or outcome.error.code == "denied"


async def test_failing_command_tells_why(tmp_path: Path) -> None:
    made = search_tool({"command": [sys.executable, "-c", "import sys; sys.exit('no network')"]}, tmp_path)
    outcome = await Executor(Registry(made), Policies(AllowEverything())).run("web_search", {"query": "x"})
    assert isinstance(outcome, Failed) and "no network" in outcome.text


async def test_other_tool_is_called_with_the_query(tmp_path: Path) -> None:
    @tool
    def brave(q: str) -> str:
        """Search."""
        return f"results for {q}"

    made = search_tool({"tool": "brave", "argument": "q"}, tmp_path)
    outcome = await Executor(Registry(made, brave), Policies(AllowEverything())).run("web_search", {"query": "x"})
    assert isinstance(outcome, Completed) and outcome.text == "results for x"


@pytest.fixture
def vendor() -> Iterator[Callable[..., tuple[str, list[Any]]]]:
    """Start a server that answers with a status and a document, and keeps the requests."""
    servers: list[ThreadingHTTPServer] = []

    def start(document: object, status: int = 200) -> tuple[str, list[Any]]:
        seen: list[Any] = []

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                length = int(self.headers["content-length"])
                seen.append((self.path, dict(self.headers), json.loads(self.rfile.read(length))))
                body = json.dumps(document).encode()
                self.send_response(status)
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name in the base class
                pass

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        servers.append(server)
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        return f"http://127.0.0.1:{server.server_port}", seen

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


ANTHROPIC = {
    "content": [
        {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {"query": "x"}},
        {
            "type": "web_search_tool_result",
            "content": [{"type": "web_search_result", "url": "https://a", "title": "A"}],
        },
        {"type": "text", "text": "It is so."},
    ]
}
OPENAI = {
    "output": [
        {"type": "web_search_call", "status": "completed"},
        {
            "type": "message",
            "content": [
                {
                    "type": "output_text",
                    "text": "It is so.",
                    "annotations": [{"type": "url_citation", "url": "https://a", "title": "A"}],
                }
            ],
        },
    ]
}
GOOGLE = {
    "candidates": [
        {
            "content": {"parts": [{"text": "It is so."}]},
            "groundingMetadata": {"groundingChunks": [{"web": {"uri": "https://a", "title": "A"}}]},
        }
    ]
}


@pytest.mark.parametrize(
    ("name", "document", "path", "header"),
    [
        ("anthropic", ANTHROPIC, "/v1/messages", "x-api-key"),
        ("openai", OPENAI, "/v1/responses", "authorization"),
        ("gcp.gemini", GOOGLE, "/v1beta/models/m:generateContent", "x-goog-api-key"),
    ],
)
async def test_hosted_search_reads_each_vendor(
    vendor: Callable[..., tuple[str, list[Any]]], name: str, document: object, path: str, header: str
) -> None:
    url, seen = vendor(document)
    search = HostedSearch(name, "m", url, "key")
    assert await search.search("why") == "It is so.\n\nSources:\n1. A https://a"
    ((asked, headers, body),) = seen
    assert asked == path and "key" in headers[header] and "why" in json.dumps(body) and "search" in json.dumps(body)


async def test_vendor_that_is_busy_is_tried_again(vendor: Callable[..., tuple[str, list[Any]]]) -> None:
    url, _ = vendor({"error": "overloaded"}, 529)
    with pytest.raises(Transient, match="529"):
        await HostedSearch("anthropic", "m", url, "key").search("x")


async def test_hosted_search_declares_what_it_reaches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Claude(ScriptedProvider):
        vendor = "anthropic"

    monkeypatch.setenv("ANTHROPIC_API_KEY", "key")
    made: Any = web_search_tool(configured("hosted"), Models(Claude()), tmp_path)
    assert made.bind({"query": "x"}).accesses() == (Reach("https://api.anthropic.com/v1/messages"),)
