"""Other frameworks' tools as ours: what is taken over of them, and what they are taken to do."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from callwright.core.content import Output, Part, Text
from callwright.core.json import Json, JsonObject, canonical
from callwright.core.spec import Annotations, Effect, Limits, ToolSpec
from callwright.tool.handwritten import Handler, SchemaTool

UNKNOWN = Annotations(Effect.DESTROY, open_world=True)
"""What a tool is taken to do while nobody says better: it may destroy and reach anything, so the default mode asks."""
Claims: TypeAlias = Annotations | Callable[[str], Annotations]
"""What imported tools do: the same for all of them, or asked by name."""


@dataclass(frozen=True, slots=True)
class Foreign:
    """What another framework says about a tool of its own."""

    name: str
    description: str | None
    schema: JsonObject
    origin: str
    needs_approval: bool = False
    limits: Limits = field(default_factory=Limits)


def imported(foreign: Foreign, claims: Claims, handler: Handler) -> SchemaTool:
    """A tool of ours that runs another framework's; its schema is kept to the letter."""
    annotations = claims if isinstance(claims, Annotations) else claims(foreign.name)
    if foreign.needs_approval:  # whatever else is claimed, its author wanted a person asked
        annotations = replace(annotations, needs_approval=True)
    spec = ToolSpec(
        foreign.name,
        foreign.description or f"{foreign.name}, a tool from {foreign.origin}",
        foreign.schema,
        annotations=annotations,
        limits=foreign.limits,
        group=foreign.origin,
        origin=foreign.origin,
    )
    return SchemaTool(spec, handler)


def output_of(parts: list[Part], structured: object = None) -> Output:
    """Parts as an output; structured data that is not JSON stays behind."""
    texts = [part.text for part in parts if isinstance(part, Text)]
    content = "\n".join(texts) if len(texts) == len(parts) else tuple(parts)
    return Output(content, _json(structured))


def _json(value: object) -> Json:
    try:
        canonical(value)
    except (TypeError, ValueError):
        return None
    return value  # type: ignore[return-value] - it could be written as JSON
