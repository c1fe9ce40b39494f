"""Estimates how much work a JSON Schema makes, so that a small schema of a server cannot keep us busy for minutes.

A chain of `anyOf` or `allOf` with two references to the next link doubles the work with every link: 20 links in one
kilobyte are a million evaluations. Counting them is cheap, because the count of each part is computed once. Long lists
of objects in `enum`, and patterns that look around or back, count for more than one.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeAlias, cast

from callwright.core._fast import frozen
from callwright.core.errors import UsageError
from callwright.core.json import compact, follow_pointer

Schema: TypeAlias = Mapping[str, Any]

MOST_EVALUATIONS = 200_000
"""How many subschemas may be evaluated to validate one value with everything inside it."""
_MOST_EXPANSION = 10_000
"""How many subschemas may apply to one value itself."""
_MOST_PARTS = 50_000
_MOST_DEPTH = 200
_LINEAR_SIZE = 100
_MOST_CHARS = 1_000_000
_MOST_PATTERNS = 200
_MOST_PATTERN_CHARS = 20_000
_PLAIN_CHARS = 20_000
# keywords that apply several subschemas, patterns or long comparisons to one value
_MULTIPLYING = re.compile(
    r'"(?:\$ref|\$dynamicRef|\$recursiveRef|unevaluated\w+|anyOf|oneOf|allOf|not|if|dependent\w+|dependencies|const'
    r'|pattern|patternProperties|propertyNames|contains|format":"regex)"|"enum":\[[^\]]{0,20000}[\[{]'
)
# look-around, references to groups and counted repetitions cannot be matched in one pass, or not in a small one
_SLOW_PATTERN = re.compile(r"\(\?(?:[=!]|<[=!]|>)|\\[1-9]|\\k<|[*+?}]\+|\{\d*,?\d{3,}\}")
_SLOW_STEPS, _PATTERN_CHARS = 300, 64
_BRANCHES = ("not", "if", "then", "else")
_BRANCH_MAPS = ("dependentSchemas", "dependencies")
_EACH_FIELD = ("additionalProperties", "unevaluatedProperties", "propertyNames")
_EACH_ITEM = ("items", "additionalItems", "unevaluatedItems", "contains")


@frozen
class _Part:
    """A subschema as far as it leads to other subschemas."""

    branches: tuple[Schema, ...]
    """Those that apply to the same value; twice if keywords for the rest of a value look at them again."""
    properties: Mapping[str, Schema]
    items: tuple[Schema, ...]
    """Those for the first items, by position."""
    each_field: tuple[Schema, ...]
    each_item: tuple[Schema, ...]

    visits: tuple[int, int]
    """How often a field and an item of the value may be visited."""
    compared: int
    """How many values `enum`, `const` and `required` compare an object or array with."""
    patterns: tuple[int, int]
    """The steps that patterns take for each part of a text, and those for each name of a field."""

    def weigh(self, value: object) -> int:
        """Return the evaluations that the part itself takes, without other parts."""
        if isinstance(value, str):
            return 1 + self.patterns[0] * (1 + len(value) // _PATTERN_CHARS)
        if not isinstance(value, (dict, list)):
            return 1
        steps = self.patterns[1] if isinstance(value, dict) else 0
        names = cast("dict[str, object]", value) if steps else ()
        return 1 + self.compared + sum(steps * (1 + len(name) // _PATTERN_CHARS) for name in names)

    @property
    def plain(self) -> bool:
        """Whether nothing in it takes more than a step."""
        return self.compared <= _LINEAR_SIZE and max(self.patterns) < _SLOW_STEPS


_COMPARING = ("enum", "const", "required", "dependentRequired")
_LEAF = _Part((), {}, (), (), (), (0, 0), 0, (0, 0))
_LEADING = frozenset(
    [
        *(*_BRANCHES, *_BRANCH_MAPS, *_EACH_FIELD, *_EACH_ITEM, *_COMPARING),
        *("anyOf", "oneOf", "allOf", "$ref", "$dynamicRef", "$recursiveRef"),
        *("properties", "patternProperties", "prefixItems", "pattern", "format"),
    ]
)


class SchemaCost:
    """Counts the evaluations of one schema.

    Args:
        schema: The schema, as plain dicts and lists.
        about: What the schema belongs to, for messages.

    Raises:
        UsageError: The schema is too large or too deep, refers to itself without end, or expands too far.
    """

    def __init__(self, schema: Schema, *, about: str) -> None:
        self._root = schema
        self._about = about
        self._anchors: dict[str, Schema] = {}
        self._parts: dict[int, _Part] = {}
        try:
            text = compact(schema)
        except RecursionError:
            raise UsageError(f"{about}: its schema is nested too deeply") from None
        if len(text) > _MOST_CHARS:
            raise UsageError(f"{about}: its schema has {len(text):,} characters; at most {_MOST_CHARS:,} are accepted")
        self.has_alternatives = '"anyOf"' in text or '"oneOf"' in text
        """Whether there is an `anyOf` or `oneOf`, which collects the errors of all its branches."""
        self.linear = len(text) <= _PLAIN_CHARS and not _MULTIPLYING.search(text)
        """Whether the work grows with the size of the value alone, so that nothing needs to be counted."""
        if not self.linear:
            self._check()

    def _check(self) -> None:
        walked = list(self._walk())
        self._check_patterns(walked)
        expanded: dict[int, tuple[int, int, int]] = {}
        largest = fields = items = 0
        for part in walked:
            if _LEADING.isdisjoint(part):
                continue
            size, by_field, by_item = self._expand(part, expanded, 0)
            largest, fields, items = max(largest, size), max(fields, by_field), max(items, by_item)
        if largest > _MOST_EXPANSION:
            raise UsageError(f"{self._about}: its schema expands to more than {_MOST_EXPANSION:,} parts for one value")
        plain = all(part.plain for part in self._parts.values())
        self.linear = plain and largest <= _LINEAR_SIZE and max(fields, items) <= 1

    def _check_patterns(self, walked: Sequence[Schema]) -> None:
        patterns = [pattern for schema in walked for pattern in _patterns_of(schema)]
        if len(patterns) > _MOST_PATTERNS or sum(map(len, patterns)) > _MOST_PATTERN_CHARS:
            raise UsageError(f"{self._about}: its schema has more than {_MOST_PATTERNS} patterns, or too long ones")

    def count(self, value: object, *, most: int) -> int:
        """Return how many evaluations a value takes, or any number above `most` once it is clear that it takes more."""
        return self._count(self._root, value, 0, {}, most)

    def _count(self, schema: Schema, value: object, depth: int, known: dict[tuple[int, int], int], most: int) -> int:
        key = (id(schema), id(value))
        if key in known:
            return known[key]
        if depth > 2 * _MOST_DEPTH or len(known) > most:
            return most + 1
        known[key] = 0
        part = self._part(schema)
        total = part.weigh(value)
        for inner, below in ((branch, value) for branch in part.branches):
            total += self._count(inner, below, depth + 1, known, most)
        for inner, below in _children(part, value):
            if total > most:
                break
            total += self._count(inner, below, depth + 1, known, most)
        known[key] = min(total, most + 1)
        return known[key]

    def _part(self, schema: Schema) -> _Part:
        found = self._parts.get(id(schema))
        if found is None:
            found = self._parts[id(schema)] = self._read(schema)
        return found

    def _read(self, schema: Schema) -> _Part:
        if _LEADING.isdisjoint(schema):
            return _LEAF
        alternatives = [part for key in ("anyOf", "oneOf") for part in _schemas(schema.get(key))]
        branches = [*alternatives, *_schemas(schema.get("allOf")), *_schemas([schema.get(key) for key in _BRANCHES])]
        for key in _BRANCH_MAPS:
            branches += _schemas(_values(schema.get(key)))
        for key in ("$ref", "$dynamicRef", "$recursiveRef"):
            if isinstance(reference := schema.get(key), str) and (target := self._resolve(reference)) is not None:
                branches.append(target)
        if "unevaluatedProperties" in schema or "unevaluatedItems" in schema:
            branches *= 2
        named = schema.get("properties")
        fields: Mapping[str, object] = cast("Schema", named) if isinstance(named, Mapping) else {}
        properties = {name: cast("Schema", part) for name, part in fields.items() if isinstance(part, Mapping)}
        first = [*_schemas(schema.get("prefixItems")), *_schemas(schema.get("items"))]
        each_field = [*_schemas(_values(schema.get("patternProperties")))]
        each_field += _schemas([schema.get(key) for key in _EACH_FIELD])
        each_item = _schemas([schema.get(key) for key in _EACH_ITEM])
        # a field is one of the named or one of the additional, an item one of the first or one of the others
        additional, others = (isinstance(schema.get(key), Mapping) for key in ("additionalProperties", "items"))
        visits = (
            len(each_field) + (bool(properties) and not additional),
            len(each_item) + (bool(first) and not others),
        )
        compared = sum(count_nodes(schema[key]) for key in _COMPARING if key in schema)
        on_text = sum(_pattern_steps(pattern) for pattern in _patterns_of(schema, names=False))
        on_names = sum(map(_pattern_steps, _strings(schema.get("patternProperties"))))
        names = schema.get("propertyNames")
        on_names += sum(map(_pattern_steps, _patterns_of(cast("Schema", names)))) if isinstance(names, Mapping) else 0
        return _Part(
            *(tuple(branches), properties, tuple(first), tuple(each_field), tuple(each_item)),
            visits,
            compared,
            (on_text, on_names),
        )

    def _expand(self, schema: Schema, known: dict[int, tuple[int, int, int]], depth: int) -> tuple[int, int, int]:
        """Count the subschemas that apply to one value through every path, and their visits to its fields and items."""
        if depth > _MOST_DEPTH:
            raise UsageError(f"{self._about}: its schema is nested more than {_MOST_DEPTH} levels deep")
        key = id(schema)
        if key in known:
            if known[key][0] < 0:
                raise UsageError(f"{self._about}: its schema refers to itself without end")
            return known[key]
        known[key] = (-1, 0, 0)
        part = self._part(schema)
        counts = [(1, *part.visits), *(self._expand(branch, known, depth + 1) for branch in part.branches)]
        size, fields, items = (min(sum(column), _MOST_EXPANSION + 1) for column in zip(*counts, strict=True))
        known[key] = size, fields, items
        return known[key]

    def _walk(self) -> Iterator[Schema]:
        """Yield every object of the schema that may be a subschema, and note the anchors."""
        pending: list[tuple[object, int]] = [(self._root, 0)]
        parts = 0
        while pending:
            part, depth = pending.pop()
            parts += 1
            if parts > _MOST_PARTS or depth > 2 * _MOST_DEPTH:
                raise UsageError(f"{self._about}: its schema has too many parts or is nested too deeply")
            if isinstance(part, Mapping):
                schema = cast("Schema", part)
                for name in ("$anchor", "$dynamicAnchor", "$id", "id"):
                    if isinstance(anchor := schema.get(name), str):
                        self._anchors.setdefault(anchor.lstrip("#"), schema)
                pending += [(inner, depth + 1) for inner in schema.values() if not isinstance(inner, str)]
                yield schema
            elif isinstance(part, (list, tuple)):
                pending += [(inner, depth + 1) for inner in cast("Sequence[object]", part)]

    def _resolve(self, reference: str) -> Schema | None:
        base, _, fragment = reference.partition("#")
        if base and base not in self._anchors and not any("/" in name or "." in name for name in self._anchors):
            return None  # another document, which is not fetched
        if fragment and not fragment.startswith("/"):
            return self._anchors.get(fragment)
        found = follow_pointer(self._anchors.get(base, self._root) if base else self._root, fragment)
        return cast("Schema", found) if isinstance(found, Mapping) else None


def _children(part: _Part, value: object) -> Iterator[tuple[Schema, object]]:
    """Yield the subschemas for the fields or items of a value, with those."""
    if isinstance(value, dict):
        fields = cast("dict[str, object]", value)
        for name, inner in fields.items():
            if name in part.properties:
                yield part.properties[name], inner
            yield from ((schema, inner) for schema in part.each_field)
    elif isinstance(value, list):
        items = cast("list[object]", value)
        yield from zip(part.items, items, strict=False)
        for schema in part.each_item:
            yield from ((schema, inner) for inner in items)


def _patterns_of(schema: Schema, *, names: bool = True) -> list[str]:
    own = [schema.get("pattern")] if schema.get("format") != "regex" else [schema.get("pattern"), "(?=regex)"]
    found = [pattern for pattern in own if isinstance(pattern, str)]
    return [*found, *_strings(schema.get("patternProperties"))] if names else found


def _pattern_steps(pattern: str) -> int:
    return _SLOW_STEPS if _SLOW_PATTERN.search(pattern) else 1


def _strings(given: object) -> list[str]:
    return [str(name) for name in cast("Mapping[str, object]", given)] if isinstance(given, Mapping) else []


def count_nodes(value: object, *, most: int = _MOST_PARTS) -> int:
    """Count the values in a JSON value, without recursion; stops above `most`."""
    pending, nodes = [value], 0
    while pending and nodes <= most:
        part = pending.pop()
        nodes += 1
        if isinstance(part, Mapping):
            pending += cast("Mapping[str, object]", part).values()
        elif isinstance(part, (list, tuple)):
            pending += cast("Sequence[object]", part)
    return nodes


def _values(given: object) -> list[object]:
    return list(cast("Mapping[str, object]", given).values()) if isinstance(given, Mapping) else []


def _schemas(given: object) -> list[Schema]:
    if not isinstance(given, (list, tuple)):
        return []
    return [cast("Schema", part) for part in cast("Sequence[object]", given) if isinstance(part, Mapping)]
