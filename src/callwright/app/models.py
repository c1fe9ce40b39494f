"""Which model to talk to: what is configured, what a key offers, what answers on this machine.

`local:FILE`: a model file run in this process, by llama.cpp behind its own server on loopback.

The model of the conversation, and the others that skills ask for.
"""

import json
import os
import socket
import sys
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Generator, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeAlias

from callwright.app.settings import Settings
from callwright.core.errors import UsageError
from callwright.providers.base import ModelEvent, ModelRequest, Provider
from callwright.providers.clients import close_provider
from callwright.providers.resolve import provider_for

_CONTEXT_TOKENS = 16_384
_running: list[object] = []
"""Servers in use: one that nobody holds ends, and its model with it."""


def local_provider(file: str) -> Provider:
    """Load a GGUF file and talk to it; raises `UsageError` that says what is missing."""
    path = Path(file).expanduser()
    if not path.is_file():
        raise UsageError(f"--model local:{file}: there is no such file; give a model in GGUF format")
    if find_spec("xllamacpp") is None:
        raise UsageError("a local model needs the package xllamacpp: pip install 'callwright[local,openai]'")
    return provider_for(f"{_served(path)}/v1#{path.stem}")


def _served(path: Path) -> str:
    import xllamacpp  # type: ignore[import-not-found, unused-ignore] - optional

    library: Any = xllamacpp
    parameters = library.CommonParams()
    parameters.model.path = str(path)
    parameters.n_ctx, parameters.n_parallel, parameters.warmup, parameters.verbosity = _CONTEXT_TOKENS, 1, False, -1
    try:
        with _quiet():
            server = library.Server(parameters)
    except Exception as error:
        raise UsageError(f"--model local:{path}: the model cannot be loaded: {error}") from error
    _running.append(server)
    return str(server.listening_address)


@contextmanager
def _quiet() -> Generator[None, None, None]:
    """Keep what the library prints while loading off stderr, which belongs to what we have to say."""
    sys.stderr.flush()
    kept = os.dup(2)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nowhere, 2)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(nowhere)


_KEYS = (
    ("ANTHROPIC_API_KEY", "anthropic:claude-sonnet-5-5"),
    ("OPENAI_API_KEY", "openai:gpt-6.1-sol"),
    ("GEMINI_API_KEY", "google:gemini-4-argon"),
    ("GOOGLE_API_KEY", "google:gemini-4-argon"),
)
_SERVERS = (("Ollama", 11434), ("llama.cpp", 8080), ("LM Studio", 1234), ("vLLM", 8000))
_PROBE_SECONDS = 0.4
_MOST_BYTES = 1 << 20

NO_MODEL = """\
There is no model to talk to. Do one of these, then run callwright again:
  export ANTHROPIC_API_KEY=…           a key for a hosted model (also OPENAI_API_KEY, GEMINI_API_KEY)
  ollama serve                         or any model server on this machine (llama.cpp, LM Studio, vLLM)
  callwright --model local:FILE.gguf   a model file, with: pip install 'callwright[local,openai]'
  callwright demo                      needs no model: see what it does"""


@dataclass(frozen=True, slots=True)
class ModelChoice:
    """A model and why it was chosen."""

    name: str
    why: str
    base_url: str = ""


def choose_model(
    settings: Settings, *, asked: str = "", environment: Mapping[str, str] | None = None
) -> ModelChoice | None:
    """Take what is configured, else what a key in the environment offers, else a server on this machine."""
    around = os.environ if environment is None else environment
    base_url = settings.last("baseUrl") or ""
    for name, why in (
        (asked, "--model"),
        (around.get("CALLWRIGHT_MODEL", ""), "CALLWRIGHT_MODEL"),
        (settings.last("model") or "", "the settings"),
    ):
        if name:
            return ModelChoice(name, f"configured by {why}", base_url)
    for key, name in _KEYS:
        if around.get(key):
            return ModelChoice(name, f"{key} is set", base_url)
    return local_server()


def open_model(choice: ModelChoice) -> Provider:
    """Make the provider of a model: all that `provider_for` knows, a file of this machine, an address of one's own."""
    kind, _, rest = choice.name.partition(":")
    if kind == "local":
        return local_provider(rest)
    if not choice.base_url or kind == "script":
        return provider_for(choice.name)
    if kind == "anthropic":
        from callwright.providers.anthropic import AnthropicMessages

        return AnthropicMessages(rest, base_url=choice.base_url)
    return provider_for(f"{choice.base_url}#{rest or choice.name}")


def local_server(servers: Iterable[tuple[str, int]] = _SERVERS) -> ModelChoice | None:
    """Ask the usual ports of this machine, all at once, which models they serve; the first in order wins."""
    known = list(servers)
    with ThreadPoolExecutor(len(known)) as pool:
        served = pool.map(_first_model, [port for _, port in known])
        for (program, port), model in zip(known, served, strict=True):
            if model:
                address = f"http://127.0.0.1:{port}/v1"
                return ModelChoice(f"{address}#{model}", f"{program} answers on this machine")
    return None


def _first_model(port: int) -> str:
    with suppress(OSError, HTTPException, ValueError, LookupError, TypeError):
        with closing(socket.create_connection(("127.0.0.1", port), timeout=_PROBE_SECONDS)):
            pass  # most ports are closed, which shows sooner this way
        with closing(HTTPConnection("127.0.0.1", port, timeout=_PROBE_SECONDS)) as connection:
            connection.request("GET", "/v1/models")
            response = connection.getresponse()
            if response.status == 200:
                return str(json.loads(response.read(_MOST_BYTES))["data"][0]["id"])
    return ""


OpenModel: TypeAlias = Callable[[str], Provider]
"""Makes the provider of a model by its name; raises `UsageError`."""


def named_model(name: str) -> Provider:
    """Make the provider of a model by the name it has in settings."""
    from callwright.providers.resolve import provider_for  # few skills ask for a model

    return provider_for(name)


class Models:
    """The conversation's own model and others by name, each opened once."""

    def __init__(self, own: Provider, open_model: OpenModel = named_model, *, switching: bool = True) -> None:
        """Without `switching` only agents inside the conversation may have another model: its own is being watched."""
        self.own = own
        self.switching = switching
        self.main = SwitchedModel(own)
        """The model the conversation is led with: its own, or the one it was switched to."""
        self._open = open_model
        self._opened: dict[str, Provider] = {}

    def get(self, name: str) -> Provider:
        """The provider of a model; raises `UsageError`."""
        if name not in self._opened:
            self._opened[name] = self._open(name)
        return self._opened[name]

    def switch(self, name: str = "") -> None:
        """Go on with another model, or without a name with the conversation's own."""
        if name and not self.switching:
            raise UsageError("only a skill that runs as an agent of its own can have another model here: context: fork")
        self.main.current = self.get(name) if name else self.own

    async def aclose(self) -> None:
        """Close what was opened here; the conversation's own model is closed with its agent."""
        while self._opened:
            await close_provider(self._opened.popitem()[1])


class SwitchedModel:
    """A provider another one can stand in for."""

    def __init__(self, own: Provider) -> None:
        self._own = own
        self.current = own

    @property
    def model(self) -> str:
        return self.current.model

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        """Ask whichever model is in force."""
        events = self.current.stream(request)
        try:
            async for event in events:
                yield event
        finally:
            if isinstance(events, AsyncGenerator):
                await events.aclose()

    async def aclose(self) -> None:
        """Close the conversation's own model."""
        await close_provider(self._own)

    def __getattr__(self, name: str) -> Any:
        if name in ("_own", "current"):  # not there yet, as while being copied
            raise AttributeError(name)
        return getattr(self.current, name)
