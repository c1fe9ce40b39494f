"""Chooses and opens models: configured names and options, API keys, local servers, and models for skills."""

import json
import os
import socket
import sys
from collections.abc import AsyncIterator, Callable, Generator, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, replace
from http.client import HTTPConnection, HTTPException
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeAlias

from callwright.agent import RunLimits
from callwright.app.costs import unknown_price
from callwright.app.settings import Settings
from callwright.core._lazy import install_command
from callwright.core.errors import UsageError
from callwright.core.messages import UserMessage
from callwright.providers.base import MessageDone, ModelEvent, ModelRequest, Provider, close_provider, closing_events
from callwright.providers.options import ModelOptions, WithOptions
from callwright.providers.pricing import Prices, prices_for
from callwright.providers.resolve import ToolMode, provider_for
from callwright.system.paths import expand_home

_KEYS = (
    ("ANTHROPIC_API_KEY", "anthropic:claude-sonnet-5-5"),
    ("ANTHROPIC_AUTH_TOKEN", "anthropic:claude-sonnet-5-5"),
    ("OPENAI_API_KEY", "openai:gpt-6.1-sol"),
    ("GEMINI_API_KEY", "google:gemini-4-argon"),
    ("GOOGLE_API_KEY", "google:gemini-4-argon"),
)
_SERVERS = (("Ollama", 11434), ("llama.cpp", 8080), ("LM Studio", 1234), ("vLLM", 8000))
_PROBE_SECONDS = 0.4
_MOST_BYTES = 1 << 20
_QUESTION_TOKENS = 1_024
_ASKED = "configured by --model"
_FALLBACK = "it is a fallback: --fallback-model, or fallbackModel in the settings"

NO_MODEL = """\
No model found. Do one of these, then run callwright again:
  export ANTHROPIC_API_KEY=…  a hosted model (or OPENAI_API_KEY, GEMINI_API_KEY)
  ollama serve                a model on this machine (or LM Studio, vLLM, …)
  --model local:FILE.gguf     a model file, loaded by callwright itself
  callwright demo             try it without a model"""


@dataclass(frozen=True, slots=True)
class ModelChoice:
    """A model and why it was chosen."""

    name: str
    why: str
    base_url: str = ""
    tool_mode: ToolMode = "auto"
    """How the model calls tools."""


def choose_model(
    settings: Settings, *, asked: str = "", environment: Mapping[str, str] | None = None
) -> ModelChoice | None:
    """Choose a model: a configured name, else one for an API key in the environment, else a server on this machine.

    Args:
        settings: The merged settings.
        asked: The value of `--model`.
        environment: By default that of the process.

    Returns:
        The choice, or None if there is no model.
    """
    variables = os.environ if environment is None else environment
    base_url = settings.last("baseUrl") or ""
    for name, why in (
        (asked, _ASKED),
        (variables.get("CALLWRIGHT_MODEL", ""), "configured by CALLWRIGHT_MODEL"),
        (settings.last("model") or "", "configured by the settings"),
    ):
        if name:
            return ModelChoice(name, why, base_url)
    for key, name in _KEYS:
        if variables.get(key):
            return ModelChoice(name, f"{key} is set", base_url)
    return local_server()


_OPTION_KEYS = {
    "temperature": "temperature",
    "maxTokens": "max_tokens",
    "effort": "effort",
    "stop": "stop",
    "context": "context",
    "threads": "threads",
}
_NO_OPTIONS = ModelOptions()


def model_options(settings: Settings, asked: ModelOptions = _NO_OPTIONS) -> ModelOptions:
    """Return the options of the model: those of the command line, else those of the settings.

    Raises:
        UsageError: A value in the settings is not valid; the message names its file and line.
    """
    found: dict[str, Any] = {}
    for key, name in _OPTION_KEYS.items():
        value = settings.last("modelOptions", key)
        if value is not None:
            found[name] = tuple(value) if key == "stop" else value
    try:
        return ModelOptions(**found).merge(asked)
    except UsageError as error:
        raise UsageError(f"{settings.place('modelOptions')}: modelOptions: {error}") from None


def fallback_names(settings: Settings, asked: Sequence[str] = ()) -> tuple[str, ...]:
    """Return the models to ask when the chosen one cannot answer."""
    found = settings.last("fallbackModel") or ()
    return tuple(asked) or ((found,) if isinstance(found, str) else tuple(found))


def open_model(choice: ModelChoice, options: ModelOptions = _NO_OPTIONS) -> Provider:
    """Open the provider of a chosen model: a named one, a model file, or one behind a configured base URL.

    Raises:
        UsageError: The name is malformed, a package or key is missing, or the API has no such option.
    """
    kind, _, rest = choice.name.partition(":")
    if kind == "local":
        return _local_provider(rest, options, choice.tool_mode)
    # a script is a file and has no address
    if not choice.base_url or kind == "script":
        return provider_for(choice.name, options=options, tool_mode=choice.tool_mode)
    if kind == "anthropic":
        from callwright.providers.anthropic import AnthropicMessages
        from callwright.providers.json_actions import SchemaActions

        provider = WithOptions(AnthropicMessages(rest, base_url=choice.base_url), options)
        return SchemaActions(provider) if choice.tool_mode == "schema" else provider
    return provider_for(f"{choice.base_url}#{rest or choice.name}", options=options, tool_mode=choice.tool_mode)


def check_model(
    choice: ModelChoice, options: ModelOptions = _NO_OPTIONS, *, environment: Mapping[str, str] = os.environ
) -> Provider:
    """Open a model to check it, without loading a model file and without a request; a file gives no usable provider.

    Raises:
        UsageError: As `open_model`, but for a file that cannot be loaded.
    """
    kind, _, rest = choice.name.partition(":")
    if kind == "local":
        return provider_for(f"http://127.0.0.1/v1#{_find_model_file(rest).stem}", options=options)
    if choice.base_url and kind != "script":
        return open_model(choice, options)
    return provider_for(choice.name, options=options, tool_mode=choice.tool_mode, environment=environment)


def open_with_fallbacks(
    choice: ModelChoice, others: Sequence[str], options: ModelOptions, report: Callable[[str], None]
) -> Provider:
    """Open the chosen model, with the models that answer in its place; raises `UsageError` as `open_model` does.

    The others are at their vendors' addresses: `baseUrl` is that of the chosen model.
    """
    first = _open_configured(choice, options)
    if not others:
        return first
    from callwright.providers.fallback import Fallback

    return Fallback(first, *(_open_configured(ModelChoice(name, _FALLBACK), options) for name in others), report=report)


def _open_configured(choice: ModelChoice, options: ModelOptions) -> Provider:
    """Open a model; an error also says where its name comes from, which the user may have forgotten."""
    try:
        return open_model(choice, options)
    except UsageError as error:
        raise UsageError(str(error) if choice.why == _ASKED else f"{error} ({choice.why})") from None


def context_tokens(choice: ModelChoice, options: ModelOptions) -> int | None:
    """Return how many tokens the model can take in, where that is known."""
    return options.context or (_CONTEXT_TOKENS if choice.name.startswith("local:") else None)


def local_server(servers: Iterable[tuple[str, int]] = _SERVERS) -> ModelChoice | None:
    """Query the usual ports of this machine in parallel; return the first server, in order, that serves a model."""
    candidates = list(servers)
    # in parallel, because each closed port may cost the whole probe time behind a firewall
    with ThreadPoolExecutor(len(candidates)) as pool:
        models = pool.map(_first_model, [port for _, port in candidates])
        for (program, port), model in zip(candidates, models, strict=True):
            if model:
                address = f"http://127.0.0.1:{port}/v1"
                return ModelChoice(f"{address}#{model}", f"{program} answers on this machine")
    return None


def _first_model(port: int) -> str:
    with suppress(OSError, HTTPException, ValueError, LookupError, TypeError):
        with closing(socket.create_connection(("127.0.0.1", port), timeout=_PROBE_SECONDS)):
            pass  # most ports are closed, and a bare connect fails faster than a request
        with closing(HTTPConnection("127.0.0.1", port, timeout=_PROBE_SECONDS)) as connection:
            connection.request("GET", "/v1/models")
            with connection.getresponse() as response:
                if response.status == 200:
                    return str(json.loads(response.read(_MOST_BYTES))["data"][0]["id"])
    return ""


OpenModel: TypeAlias = Callable[[str], Provider]
"""Opens the provider of a model by name; raises `UsageError` if there is none."""


class Models:
    """The model of the conversation, and others by name that skills ask for; each is opened once."""

    def __init__(self, own: Provider, open_model: OpenModel = provider_for, *, switching: bool = True) -> None:
        """Start with the model of the conversation.

        Args:
            own: The model of the conversation.
            open_model: Opens other models by name.
            switching: Whether the conversation itself may change its model. False if the caller wraps `own`, as a
                wrapper around one model would miss the events of another.
        """
        self.own = own
        self.first = own
        """The model the conversation began with."""
        self.switching = switching
        self.main = ModelSwitcher(own)
        """The model in use: the conversation's own, or the one it was switched to."""
        self.prices_of: Callable[[str], Prices | None] = prices_for
        """Returns the prices of a model by name."""
        self._open = open_model
        self._opened: dict[str, Provider] = {}

    def get(self, name: str) -> Provider:
        """Return the provider of a model; raises `UsageError` if there is none."""
        if name not in self._opened:
            self._opened[name] = self._open(name)
        return self._opened[name]

    def limits_for(self, provider: Provider, limits: RunLimits) -> RunLimits:
        """Return the limits of a run with a model, whose requests cost its own prices.

        Args:
            provider: The model.
            limits: Those of a run with the conversation's own model.

        Raises:
            UsageError: There is a limit in USD, and the price of the model is unknown.
        """
        if provider is self.own:
            return limits
        prices = self.prices_of(provider.model)
        if prices is None and limits.money is not None:
            raise unknown_price(provider.model)
        return replace(limits, prices=prices)

    def price_in_use(self, limits: RunLimits) -> RunLimits:
        """Return the limits of a run whose next requests the model in use answers, at its own prices."""
        model, own = self.main.current.model, self.main.current is self.own
        prices = None if own else self.prices_of(model)
        return limits if prices is None else replace(limits, other_prices={**limits.other_prices, model: prices})

    async def ask(self, name: str, system: str, prompt: str) -> str:
        """Ask a model one question, without tools; the conversation's own if the name is empty.

        Raises:
            UsageError: There is no such model.
            ProviderError: The request failed.
        """
        request = ModelRequest((UserMessage(prompt),), system=system, max_tokens=_QUESTION_TOKENS)
        async with closing_events((self.get(name) if name else self.own).stream(request)) as events:
            async for event in events:
                if isinstance(event, MessageDone):
                    return event.message.text
        return ""

    def switch(self, name: str = "") -> None:
        """Use another model, or without a name the conversation's own."""
        if name and not self.switching:
            raise UsageError("only a skill with context: fork can use another model here")
        self.main.current = self.get(name) if name else self.own

    async def aclose(self) -> None:
        """Close the models opened here; the conversation's own is closed with its agent."""
        while self._opened:
            await close_provider(self._opened.popitem()[1])


class ModelSwitcher:
    """A provider that forwards to the model in use."""

    def __init__(self, own: Provider) -> None:
        self._own = own
        self.current = own

    @property
    def model(self) -> str:
        return self.current.model

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        """Stream from the model in use; a message of another one than the conversation's own is under its name."""
        current = self.current
        async with closing_events(current.stream(request)) as events:
            async for event in events:
                if current is not self._own and isinstance(event, MessageDone):
                    event = MessageDone(replace(event.message, model=current.model or event.message.model))
                yield event

    async def aclose(self) -> None:
        """Close the conversation's own model."""
        await close_provider(self._own)

    def __getattr__(self, name: str) -> Any:
        if name in ("_own", "current"):  # not set yet, as while being copied: looking them up would recurse
            raise AttributeError(name)
        return getattr(self.current, name)


_CONTEXT_TOKENS = 16_384
"""The context of a model file without an option."""
_TOPOLOGY = Path("/sys/devices/system/cpu")
_running_servers: list[object] = []
"""Keeps servers alive: one that is garbage collected stops, and unloads its model."""


def _local_provider(file: str, options: ModelOptions = _NO_OPTIONS, tool_mode: ToolMode = "auto") -> Provider:
    """Load a GGUF file in this process and return a provider for it.

    Args:
        file: The model file.
        options: `context` and `threads` of the model, and the options of its requests.
        tool_mode: How the model calls tools.

    Raises:
        UsageError: The file or the package `xllamacpp` is missing, or the model cannot be loaded.
    """
    path = _find_model_file(file)
    return provider_for(f"{_start_server(path, options)}/v1#{path.stem}", options=options, tool_mode=tool_mode)


def _find_model_file(file: str) -> Path:
    """Return the path of a model file; raises `UsageError` if it or the package that loads it is missing."""
    if not (path := expand_home(file)).is_file():
        found = "is a directory" if path.is_dir() else "no such file"
        raise UsageError(f"--model local:{file}: {found}; give a model file in GGUF format")
    if find_spec("xllamacpp") is None:
        raise UsageError("a local model needs the package xllamacpp: " + install_command("'callwright[local,openai]'"))
    return path


def _start_server(path: Path, options: ModelOptions) -> str:
    """Start llama.cpp's server on loopback and return its address."""
    import xllamacpp  # type: ignore[import-not-found, unused-ignore] - optional

    library: Any = xllamacpp
    parameters = library.CommonParams()
    parameters.model.path = str(path)
    parameters.n_ctx = options.context or _CONTEXT_TOKENS
    parameters.n_parallel, parameters.warmup, parameters.verbosity = 1, False, -1
    parameters.cpuparams.n_threads = parameters.cpuparams_batch.n_threads = options.threads or physical_cores()
    try:
        with _silence_stderr():
            server = library.Server(parameters)
    except Exception as error:
        raise UsageError(f"--model local:{path}: cannot load it; is it a whole GGUF file? ({error})") from error
    _running_servers.append(server)
    return str(server.listening_address)


@contextmanager
def _silence_stderr() -> Generator[None, None, None]:
    """Discard what the library prints to stderr while it loads: it writes to the descriptor, not to `sys.stderr`."""
    sys.stderr.flush()
    saved = os.dup(2)
    null = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(null, 2)
        yield
    finally:
        os.dup2(saved, 2)
        os.close(saved)
        os.close(null)


def physical_cores(topology: Path = _TOPOLOGY) -> int:
    """Count the cores this process may use, without their second threads, which make a model slower."""
    usable = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else set(range(os.cpu_count() or 1))
    found: set[str] = set()
    for number in usable:
        try:
            found.add((topology / f"cpu{number}/topology/thread_siblings_list").read_text().strip())
        except (OSError, ValueError):
            found.add(str(number))  # not Linux, or hidden in a container
    return max(1, len(found))
