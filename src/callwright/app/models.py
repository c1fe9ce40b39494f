"""Which model to talk to: what is configured, what a key offers, what answers on this machine."""

import json
import os
import socket
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException

from callwright.app.settings import Settings
from callwright.providers.base import Provider
from callwright.providers.names import provider_for

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
        from callwright.app.local_model import local_provider

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
