"""Model files: loaded in this process and served by llama.cpp on loopback."""

import os
import sys
from collections.abc import Generator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from callwright.core.errors import UsageError
from callwright.providers.base import Provider
from callwright.providers.options import ModelOptions
from callwright.providers.resolve import ToolMode, provider_for

CONTEXT_TOKENS = 16_384
"""The context of a model file without an option."""
_DEFAULTS = ModelOptions()
_TOPOLOGY = Path("/sys/devices/system/cpu")
_running_servers: list[object] = []
"""Keeps servers alive: one that is garbage collected stops, and unloads its model."""


def local_provider(file: str, options: ModelOptions = _DEFAULTS, tool_mode: ToolMode = "auto") -> Provider:
    """Load a GGUF file in this process and return a provider for it.

    Args:
        file: The model file.
        options: `context` and `threads` of the model, and the options of its requests.
        tool_mode: How the model calls tools.

    Raises:
        UsageError: The file or the package `xllamacpp` is missing, or the model cannot be loaded.
    """
    path = Path(file).expanduser()
    if not path.is_file():
        raise UsageError(f"--model local:{file}: no such file; give a model file in GGUF format")
    if find_spec("xllamacpp") is None:
        raise UsageError("a local model needs the package xllamacpp: pip install 'callwright[local,openai]'")
    return provider_for(f"{_start_server(path, options)}/v1#{path.stem}", options=options, tool_mode=tool_mode)


def _start_server(path: Path, options: ModelOptions) -> str:
    """Start llama.cpp's server on loopback and return its address."""
    import xllamacpp  # type: ignore[import-not-found, unused-ignore] - optional

    library: Any = xllamacpp
    parameters = library.CommonParams()
    parameters.model.path = str(path)
    parameters.n_ctx = options.context or CONTEXT_TOKENS
    parameters.n_parallel, parameters.warmup, parameters.verbosity = 1, False, -1
    parameters.cpuparams.n_threads = parameters.cpuparams_batch.n_threads = options.threads or physical_cores()
    try:
        with _silence_stderr():
            server = library.Server(parameters)
    except Exception as error:
        raise UsageError(f"--model local:{path}: cannot load the model: {error}") from error
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
