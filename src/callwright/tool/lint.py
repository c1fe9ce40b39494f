"""Checks tool definitions for what makes models use a tool badly."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import inf
from typing import Any, Literal, TypeAlias, cast

from callwright.core.json import follow_pointer
from callwright.core.spec import Effect, ToolSpec
from callwright.tool.base import Tool

LintCode: TypeAlias = Literal["DESCRIPTION", "PARAMETER", "NESTED", "ATOMIC", "EFFECT", "HINT"]
_LONGEST_DESCRIPTION = 1024
_SHORTEST_DESCRIPTION = 12
_DEEPEST = 3
_CHANGING = frozenset(
    "write delete remove run exec execute create update set put post send drop kill move rename edit install".split()
)
_WORDS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+")


@dataclass(frozen=True, slots=True)
class LintFinding:
    """One problem, with a code to filter by."""

    code: LintCode
    message: str


def lint_tool(tool: Tool | ToolSpec) -> list[LintFinding]:
    """Return the problems of a tool definition; an empty list means none was found."""
    spec = tool if isinstance(tool, ToolSpec) else tool.spec
    return [*_about_description(spec), *_about_name(spec), *_about_parameters(spec), *_about_hint(spec)]


def _about_description(spec: ToolSpec) -> Iterator[LintFinding]:
    length = len(spec.description.strip())
    if length < _SHORTEST_DESCRIPTION:
        yield LintFinding("DESCRIPTION", f"{spec.name}: the description is too short: {spec.description!r}")
    if length > _LONGEST_DESCRIPTION:
        yield LintFinding(
            "DESCRIPTION",
            f"{spec.name}: the description has {length} characters; above {_LONGEST_DESCRIPTION} it costs every turn",
        )


def _about_name(spec: ToolSpec) -> Iterator[LintFinding]:
    words = [word.lower() for word in _WORDS.findall(spec.name)]
    if "and" in words:
        yield LintFinding("ATOMIC", f"{spec.name}: a tool does one thing; split what 'and' joins")
    changing = sorted(_CHANGING.intersection(words))
    if spec.annotations.effect is Effect.READ and changing:
        yield LintFinding("EFFECT", f"{spec.name}: its effect is READ, but its name contains {changing[0]!r}")


def _about_parameters(spec: ToolSpec) -> Iterator[LintFinding]:
    for name in _find_undescribed(spec.input_schema, spec.input_schema, "", set()):
        yield LintFinding("PARAMETER", f"{spec.name}: parameter {name!r} has no description; the model will guess")
    depth = _depth(spec.input_schema, spec.input_schema, {})
    if depth > _DEEPEST:
        deep = "without end" if depth == inf else f"{depth:g} deep"
        yield LintFinding("NESTED", f"{spec.name}: arguments are nested {deep}; models get more than {_DEEPEST} wrong")


def _about_hint(spec: ToolSpec) -> Iterator[LintFinding]:
    words = spec.search_hint.split()
    if spec.search_hint and (not 3 <= len(words) <= 10 or spec.search_hint.endswith(".")):
        yield LintFinding(
            "HINT", f"{spec.name}: search_hint must have three to ten words and no period: {spec.search_hint!r}"
        )


def _find_undescribed(schema: Any, root: Mapping[str, Any], place: str, seen: set[str]) -> Iterator[str]:
    """Name the fields without a description, those of nested objects as `order.address`; references once."""
    if not isinstance(schema, Mapping):
        return
    node = cast("Mapping[str, Any]", schema)
    target = node.get("$ref")
    if isinstance(target, str) and target not in seen:
        seen.add(target)
        yield from _find_undescribed(follow_pointer(root, target.removeprefix("#")), root, place, seen)
    for name, field in node.get("properties", {}).items():
        if not isinstance(field, Mapping) or not cast("Mapping[str, Any]", field).get("description"):
            yield place + name
        yield from _find_undescribed(field, root, f"{place}{name}.", seen)
    inner = [node[key] for key in ("items", "additionalProperties") if key in node]
    inner += [part for key in ("anyOf", "oneOf", "allOf", "prefixItems") for part in node.get(key, ())]
    for part in inner:
        yield from _find_undescribed(part, root, place, seen)


def _depth(schema: Any, root: Mapping[str, Any], known: dict[str, float]) -> float:
    """Return how deeply objects and arrays are nested; infinite for a schema that refers to itself.

    `known` are the depths of what references lead to, infinite while one is being followed.
    """
    if not isinstance(schema, Mapping):
        return 0
    node = cast("Mapping[str, Any]", schema)
    target = node.get("$ref")
    if isinstance(target, str):
        if target not in known:
            known[target] = inf
            known[target] = _depth(follow_pointer(root, target.removeprefix("#")), root, known)
        return known[target]
    inner = [part for key in ("properties", "patternProperties") for part in node.get(key, {}).values()]
    inner += [node[key] for key in ("items", "additionalProperties") if key in node]
    here = 1 if inner or "prefixItems" in node else 0
    inner += [part for key in ("anyOf", "oneOf", "allOf", "prefixItems") for part in node.get(key, ())]
    return here + max((_depth(part, root, known) for part in inner), default=0)
