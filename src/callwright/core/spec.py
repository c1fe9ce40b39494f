"""The specification of a tool: what models and policies see of it."""

from collections.abc import Mapping
from enum import IntEnum
from typing import cast

from callwright.core._fast import frozen
from callwright.core.errors import UsageError, check_kind, check_number
from callwright.core.json import FrozenDict, Json, JsonObject, freeze

_NAME_CHARS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.")
_NAME_LENGTH = 128
CLAUDE_CODE_NAMES: Mapping[str, Mapping[str, str]] = {
    "agent": {"subagent_type": "agent"},
    "skill": {"skill": "name", "args": "arguments"},
}
"""Arguments of two tools, by the names of Claude Code, which models were trained on and rules use; with our names."""


class Effect(IntEnum):
    """How much a call can change."""

    READ = 0
    WRITE = 1
    DESTROY = 2


@frozen
class Annotations:
    """A tool's claims about its behaviour. They prove nothing: policies decide.

    Raises:
        UsageError: The effect is not an `Effect`.
    """

    effect: Effect = Effect.WRITE
    idempotent: bool = False
    """May be repeated without further effect."""
    parallel: bool | None = None
    """May run beside any call (True) or none (False); None lets the accesses decide."""
    open_world: bool = False
    """Reaches beyond this machine."""
    needs_approval: bool = False
    """The user is asked in every mode."""
    streams: bool = False
    """Reports progress while it runs."""
    delegates: bool = False
    """Makes other calls, which policies judge by themselves; their effects are not part of `effect`."""

    def __post_init__(self) -> None:
        check_kind("the effect of annotations", self.effect, Effect, "write Annotations(Effect.READ), for example")

    @property
    def repeatable(self) -> bool:
        """Whether a call may be repeated when it is not known whether it was done."""
        return self.idempotent or (self.effect is Effect.READ and not self.delegates)


def annotate(effect: Effect | None, annotations: Annotations | None, *, about: str) -> Annotations:
    """Return the annotations of a tool that was given an effect, annotations, both or neither.

    Raises:
        UsageError: The effect is not an `Effect`, or differs from that of the annotations, or they are something else.
    """
    if annotations is not None:
        check_kind(
            f"the annotations of {about}", annotations, Annotations, "write Annotations(Effect.READ), for example"
        )
    if effect is None:
        return annotations or Annotations()
    if not isinstance(cast(object, effect), Effect):
        raise UsageError(f"{about}: effect must be an Effect such as Effect.READ, got {effect!r}")
    if annotations is not None and annotations.effect is not effect:
        raise UsageError(
            f"{about}: effect is {effect.name}, and annotations say {annotations.effect.name};"
            f" write annotations=Annotations(Effect.{effect.name}, …) alone"
        )
    return annotations or Annotations(effect)


@frozen
class Limits:
    """The limits of a tool.

    Raises:
        UsageError: A limit is not positive.
    """

    seconds: float = 60.0
    """The time of one attempt."""
    output_chars: int = 30_000
    """The length of the output; the rest is kept in a file."""
    concurrency: int | None = None
    """How many calls run at the same time; None for no limit."""

    def __post_init__(self) -> None:
        check_number("Limits.seconds", self.seconds, 0, above=True)
        check_number("Limits.output_chars", self.output_chars, 1, whole=True)
        if self.concurrency is not None:
            check_number("Limits.concurrency", self.concurrency, 1, whole=True)


def check_name(name: str) -> str:
    """Return the name if it is valid for a tool; raise `UsageError` otherwise."""
    if (
        not isinstance(cast(object, name), str)
        or not name
        or len(name) > _NAME_LENGTH
        or not _NAME_CHARS.issuperset(name)
    ):
        raise UsageError(
            f"tool name {name!r} is not valid: use 1 to {_NAME_LENGTH} letters, digits, '_', '-' or '.' (as in fs.read)"
        )
    return name


ACCESSES_FORM = 'write accesses=lambda arguments: [ReadPath(arguments["path"])], for example'


def check_aliases(aliases: object, *, about: str) -> None:
    """Refuse a string where several aliases are expected: each of its letters would be one.

    Raises:
        UsageError: It is a string.
    """
    if isinstance(aliases, str):
        raise UsageError(f"{about}: aliases must be several names, as in aliases=[{aliases!r}]")


_NO_METADATA: Mapping[str, Json] = FrozenDict()
ELICITS = "elicits"
"""Metadata key of a tool whose questions are an MCP server's elicitation form."""
REPOSITORY = "repository"
"""Metadata key of a tool whose MCP server a project's files configure: the user's allow rules do not cover it."""
SHADOWS = "shadows"
"""Metadata key of a tool whose MCP server takes the name of one of the user's, or one that looks like it."""
UNCONFINED = "unconfined"
"""Metadata key of a tool that runs commands without a sandbox, so that no command is allowed for being confined."""

_FIELD_KINDS: tuple[tuple[str, type, str], ...] = (
    ("annotations", Annotations, "write Annotations(Effect.READ)"),
    ("limits", Limits, "write Limits(seconds=10)"),
    ("group", str, "write a text"),
    ("search_hint", str, "write a text"),
    ("origin", str, "write a text"),
)


@frozen
class ToolSpec:
    """The description of a tool for models and policies.

    Args:
        name: Unique in a registry.
        description: What the tool does; the model chooses tools by it.
        input_schema: JSON Schema of the arguments.
        output_schema: JSON Schema of the structured output, if there is one.
        annotations: Claims about effect, idempotency and concurrency.
        limits: Time, output length and concurrency.
        aliases: Other names under which the model may call it.
        group: The kind of tool, for rules and display.
        deferred: Shown to the model only after a tool search found it.
        search_hint: Words for the tool search that the description lacks.
        origin: Where the tool comes from: `local`, a server's name.
        metadata: Anything else, as JSON.

    Raises:
        UsageError: The name or the description is empty or no text, the name has unprintable characters, the schema
            is no mapping, or another field is of the wrong kind.
    """

    name: str
    description: str
    input_schema: JsonObject
    output_schema: JsonObject | None = None
    annotations: Annotations = Annotations()
    limits: Limits = Limits()
    aliases: tuple[str, ...] = ()
    group: str = ""
    deferred: bool = False
    search_hint: str = ""
    origin: str = "local"
    metadata: Mapping[str, Json] = _NO_METADATA

    def __post_init__(self) -> None:
        check_kind("name", self.name, str, "write ToolSpec(name, description, input_schema)")
        if not self.name or not self.name.isprintable():  # servers may use other names; registries check ours
            raise UsageError(f"tool name {self.name!r} is empty or has unprintable characters")
        check_kind("description", self.description, str, f"say what the tool {self.name!r} does")
        check_kind("input_schema", self.input_schema, Mapping, 'write {"type": "object", "properties": {…}}')
        if not self.description.strip():
            raise UsageError(f"tool {self.name!r} has no description; the model chooses tools by it")
        self._check_kinds()
        object.__setattr__(self, "input_schema", freeze(self.input_schema))
        if self.output_schema is not None:
            self._check_kind("output_schema", Mapping, "write a JSON Schema, or None")
            object.__setattr__(self, "output_schema", freeze(self.output_schema))
        if self.metadata is not _NO_METADATA:
            self._check_kind("metadata", Mapping, "write a dict")
            object.__setattr__(self, "metadata", freeze(self.metadata))

    def _check_kinds(self) -> None:
        for name, kind, advice in _FIELD_KINDS:
            if not isinstance(getattr(self, name), kind):
                self._check_kind(name, kind, advice)
        if isinstance(cast(object, self.aliases), str):
            check_aliases(self.aliases, about=f"the tool {self.name!r}")

    def _check_kind(self, name: str, kind: type, advice: str) -> None:
        check_kind(f"{name} of the tool {self.name!r}", getattr(self, name), kind, advice)

    @property
    def namespace(self) -> str:
        """The part before the last dot: `fs` of `fs.read`."""
        return self.name.rpartition(".")[0]
