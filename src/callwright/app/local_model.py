"""`local:FILE`: a model file run in this process, by llama.cpp behind its own server on loopback."""

import os
import sys
from collections.abc import Generator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from callwright.core.errors import UsageError
from callwright.providers.base import Provider
from callwright.providers.names import provider_for

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
