"""What the model and the policies are told about a tool."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum

from callwright.core.errors import UsageError
from callwright.core.json import FrozenDict, Json, JsonObject, freeze

_NAME_CHARS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.")
_NAME_LENGTH = 128


class Effect(IntEnum):
    """How much a call can change."""

    READ = 0
    WRITE = 1
    DESTROY = 2


@dataclass(frozen=True, slots=True)
class Annotations:
    """What a tool says about itself. Claims, not proof: policies decide."""

    effect: Effect = Effect.WRITE
    idempotent: bool = False
    """Harmless to repeat."""
    parallel: bool | None = None
    """Harmless beside anything (True) or nothing (False); None lets the accesses decide."""
    open_world: bool = False
    """Reaches outside this machine."""
    needs_approval: bool = False
    """The default policy asks whatever the mode."""
    streams: bool = False
    """Reports progress while it runs."""


@dataclass(frozen=True, slots=True)
class Limits:
    """How long one attempt may take, how much it may say, how many may run at once."""

    seconds: float = 60.0
    output_chars: int = 30_000
    concurrency: int | None = None

    def __post_init__(self) -> None:
        if not self.seconds > 0:
            raise UsageError(f"Limits.seconds must be above 0, not {self.seconds!r}")
        if self.output_chars < 1:
            raise UsageError(f"Limits.output_chars must be at least 1, not {self.output_chars!r}")
        if self.concurrency is not None and self.concurrency < 1:
            raise UsageError(f"Limits.concurrency must be at least 1 or None, not {self.concurrency!r}")


def check_name(name: str) -> str:
    """Return a valid tool name as it is; the one place that says what valid means."""
    if not name or len(name) > _NAME_LENGTH or not _NAME_CHARS.issuperset(name):
        raise UsageError(
            f"tool name {name!r} is not valid: use 1 to {_NAME_LENGTH} letters, digits, '_', '-' or '.' (as in fs.read)"
        )
    return name


_NO_METADATA: Mapping[str, Json] = FrozenDict()
ELICITS = "elicits"
"""In the metadata of a tool whose questions are an MCP server's form for a person to fill in."""


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """The static, model-facing half of a tool."""

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
        if not self.name or not self.name.isprintable():  # other people's names are theirs; registries check ours
            raise UsageError(f"tool name {self.name!r} is empty or has characters nobody can see")
        if not self.description.strip():
            raise UsageError(f"tool {self.name!r} has no description; the model chooses tools by it")
        object.__setattr__(self, "input_schema", freeze(self.input_schema))
        if self.output_schema is not None:
            object.__setattr__(self, "output_schema", freeze(self.output_schema))
        if self.metadata is not _NO_METADATA:
            object.__setattr__(self, "metadata", freeze(self.metadata))

    @property
    def namespace(self) -> str:
        """What stands before the last dot: `fs` of `fs.read`."""
        return self.name.rpartition(".")[0]
