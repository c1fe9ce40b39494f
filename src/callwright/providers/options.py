"""Options of a model that every API has under another name: temperature, effort, stop texts, token limits."""

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, Final, Literal, TypeAlias, cast, get_args

from callwright.core.errors import UsageError
from callwright.core.json import Json
from callwright.providers.base import ModelEvent, ModelRequest, Provider, ProviderWrapper, closing_events

Effort: TypeAlias = Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"]
EFFORTS: Final[tuple[str, ...]] = get_args(Effort)


@dataclass(frozen=True, slots=True)
class ModelOptions:
    """How a model answers.

    Args:
        temperature: How varied the answers are, from 0 to 2.
        max_tokens: The most tokens of one answer.
        effort: How much the model thinks before it answers.
        stop: Texts that end an answer.
        context: How many tokens the model can take in. A model file is loaded with so many; with any model, a
            conversation is compacted in time.
        threads: The threads of a model file; by default one per physical core.

    Raises:
        UsageError: A value has the wrong type or is out of range; the message names it.
    """

    temperature: float | None = None
    max_tokens: int | None = None
    effort: Effort | None = None
    stop: tuple[str, ...] = ()
    context: int | None = None
    threads: int | None = None

    def __post_init__(self) -> None:
        _check("temperature", self.temperature, _is_temperature(self.temperature), "a number from 0 to 2")
        for name in ("max_tokens", "context", "threads"):
            value = getattr(self, name)
            _check(name, value, type(value) is int and value > 0, "a whole number above 0")
        _check("effort", self.effort, self.effort in EFFORTS, f"one of {', '.join(EFFORTS)}")
        texts = self.stop if type(self.stop) is tuple else None
        valid = texts is not None and all(type(text) is str and text for text in texts)
        _check("stop", self.stop or None, valid, "a list of texts that are not empty")

    def merge(self, over: "ModelOptions") -> "ModelOptions":
        """Return these options with those that are set in `over` instead."""
        given = {each.name: getattr(over, each.name) for each in fields(over)}
        return replace(self, **{name: value for name, value in given.items() if value not in (None, ())})


def _is_temperature(value: object) -> bool:
    return type(value) in (int, float) and 0 <= cast("float", value) <= 2


def _check(name: str, value: object, valid: bool, expected: str) -> None:
    if value is not None and not valid:
        raise UsageError(f"{name} must be {expected}, got {value!r}")


class WithOptions(ProviderWrapper):
    """A provider whose requests have certain options, unless they have their own.

    Args:
        provider: The provider to send the requests to.
        options: What the requests have.

    Raises:
        UsageError: The API has no such option.
    """

    def __init__(self, provider: Provider, options: ModelOptions) -> None:
        super().__init__(provider)
        self._options = options
        translate = getattr(provider, "wire_options", None)
        self._fields: Mapping[str, Json] = {} if translate is None else translate(options)

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        """Send the request with the options; raises `ProviderError`."""
        limit = self._options.max_tokens or request.max_tokens
        changed = replace(request, max_tokens=limit, options={**self._fields, **request.options})
        async with closing_events(self._inner.stream(changed)) as events:
            async for event in events:
                yield event

    def __getattr__(self, name: str) -> Any:
        if name == "_inner":  # not set yet, as while being copied: looking it up would recurse
            raise AttributeError(name)
        return getattr(self._inner, name)


def set_fields(**values: "Json | tuple[str, ...]") -> dict[str, Json]:
    """Return the fields that have a value; a tuple becomes a list."""
    found = {name: list(value) if isinstance(value, tuple) else value for name, value in values.items()}
    return cast("dict[str, Json]", {name: value for name, value in found.items() if value not in (None, [])})


def limit_effort(options: ModelOptions, known: tuple[str, ...], model: str) -> str | None:
    """Return the effort if the model's API has it.

    Raises:
        UsageError: It has not; the message lists what it has.
    """
    if options.effort is not None and options.effort not in known:
        raise UsageError(f"{model} has no effort {options.effort!r}: use one of {', '.join(known)}")
    return options.effort
