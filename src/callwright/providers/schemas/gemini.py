"""The JSON Schema that Gemini reads: in a function declaration (`parametersJsonSchema`) and of the final answer."""

from collections.abc import Mapping, Sequence

from callwright.core.json import Json, JsonObject, read_object
from callwright.providers.schemas.inspect import (
    ANNOTATIONS,
    STRUCTURE,
    Schema,
    add_facts,
    are_exclusive,
    as_list,
    definition_name,
    describe_fact,
    drop_keyword,
    has_reference,
    is_known,
    kinds_of,
    list_choices,
    names_in,
    resolve,
)
from callwright.providers.schemas.merge import dereference, fold_all_of, merge_all

_AS_THEY_ARE = ("format", "minItems", "maxItems", "minimum", "maximum")
_READ = STRUCTURE | {"items", "prefixItems", "description", "default", "exclusiveMinimum", "exclusiveMaximum"}
_LISTABLE = ("string", "integer", "number")
"""Kinds of value that Gemini accepts in an enum."""


def gemini_schema(root: JsonObject) -> tuple[Schema, tuple[str, ...]]:
    """Rewrite an object schema in the keywords Gemini documents; the rest moves into descriptions, with a note.

    Everything valid stays valid. Without notes, everything invalid stays invalid too.
    """
    writer = _GeminiWriter(root)
    schema = writer.rewrite(root, "arguments")
    schema.setdefault("properties", {})
    return schema, tuple(writer.notes)


def gemini_answer_schema(schema: JsonObject) -> Schema:
    """Rewrite the schema of a final answer, which may be any value, in the same way."""
    return _GeminiWriter(schema).rewrite(schema, "answer")


class _GeminiWriter:
    """Rewrites one schema and collects definitions and notes."""

    def __init__(self, root: JsonObject) -> None:
        self.notes: list[str] = []
        self.definitions: dict[str, Schema] = {}
        self._root = root
        self._names: dict[str, str] = {}

    def rewrite(self, schema: JsonObject, path: str) -> Schema:
        written = self._rewrite(schema, path)
        self._open_cycles(written, path)
        return {**written, "$defs": self.definitions} if self.definitions else written

    def _rewrite(self, schema: Json, path: str) -> Schema:
        if schema is False:
            self._note(path, "no value fits; that is checked at call time")
        given = self._fold_all_of(read_object(schema), path)
        facts: list[str] = []
        written: Schema = {}
        for key in given:
            if key not in _READ and key not in _AS_THEY_ARE:
                facts += self._describe_keyword(given, key, path)
        if given.get("default") is not None:
            facts.append(describe_fact("default", given["default"]))
        self._write_kinds(given, written, facts, path)
        self._write_bounds(given, written, facts, path)
        self._write_parts(given, written, path)
        self._write_alternatives(given, written, path)
        text = add_facts(given.get("description"), facts)
        return self._write_reference(given, written, text, path) if "$ref" in given else _add_description(written, text)

    def _write_kinds(self, given: JsonObject, written: Schema, facts: list[str], path: str) -> None:
        if "type" in given:
            written["type"] = given["type"]
        values = list_choices(given)
        if values is None:
            return
        kinds = kinds_of({"enum": values})
        alone = len(kinds) == 1 and given.get("type", kinds[0]) == kinds[0]
        if all(kind in _LISTABLE for kind in kinds):
            written["enum"] = values
        elif alone and (kinds == ["null"] or (kinds == ["boolean"] and True in values and False in values)):
            written["type"] = kinds[0]
        elif all(kind in (*_LISTABLE, "null") for kind in kinds):
            listed = [value for value in values if value is not None]
            written["anyOf"] = [{"enum": listed}, {"type": "null"}] if listed else [{"type": "null"}]
        else:
            self._note(
                path,
                "choices other than strings and numbers are moved to the description and checked at call time",
            )
            facts.append(describe_fact("one of", values))
            written.setdefault("type", kinds if len(kinds) > 1 else kinds[0])

    def _write_bounds(self, given: JsonObject, written: Schema, facts: list[str], path: str) -> None:
        written.update({key: given[key] for key in _AS_THEY_ARE if key in given})
        for key, plain, step in (("exclusiveMinimum", "minimum", 1), ("exclusiveMaximum", "maximum", -1)):
            bound = given.get(key)
            if isinstance(bound, bool) or not isinstance(bound, (int, float)):
                continue
            # for integers an exclusive bound has an exact inclusive equivalent
            exact = kinds_of(given) == ["integer"] and float(bound).is_integer()
            if not exact:
                self._note(
                    path,
                    f"'{key}' is sent as {plain}; that the bound itself is excluded is checked at call time",
                )
                facts.append(describe_fact(key, bound))
            tighter = max if step > 0 else min
            nearest = int(bound) + step if exact else bound
            written[plain] = tighter(nearest, written[plain]) if plain in written else nearest

    def _write_parts(self, given: JsonObject, written: Schema, path: str) -> None:
        properties = read_object(given.get("properties"))
        if "properties" in given:
            written["properties"] = {
                name: self._rewrite(value, f"{path}.{name}") for name, value in properties.items() if value is not False
            }
        if any(value is False for value in properties.values()):
            self._note(path, "that some properties are forbidden is checked at call time")
        if "required" in given:
            written["required"] = names_in(given["required"])
        for key in ("additionalProperties", "items"):
            # patternProperties are not sent, so what they allow must not be excluded
            if key in given and not (key == "additionalProperties" and "patternProperties" in given):
                self._write_inside(given, key, written, path)
        if "prefixItems" in given:
            places = enumerate(as_list(given["prefixItems"]))
            written["prefixItems"] = [self._rewrite(item, f"{path}[{place}]") for place, item in places]

    def _write_inside(self, given: JsonObject, key: str, written: Schema, path: str) -> None:
        value = given[key]
        if isinstance(value, bool):
            written[key] = value
        elif isinstance(value, Mapping):
            written[key] = self._rewrite(value, f"{path}[]" if key == "items" else f"{path}{{}}")
        else:  # older drafts write prefixItems as a list of schemas
            written["prefixItems"] = [
                self._rewrite(item, f"{path}[{place}]") for place, item in enumerate(as_list(value))
            ]

    def _write_alternatives(self, given: JsonObject, written: Schema, path: str) -> None:
        for key in ("anyOf", "oneOf"):
            branches = as_list(given.get(key))
            if not branches:
                continue
            if key == "oneOf" and not are_exclusive([dereference(branch, self._root) or {} for branch in branches]):
                self._note(path, "'oneOf' is sent as anyOf; that no second branch fits is checked at call time")
            if "anyOf" in written:
                self._note(path, f"'{key}' beside other alternatives is checked at call time")
                continue
            written["anyOf"] = [self._rewrite(branch, f"{path}.{place}") for place, branch in enumerate(branches)]

    def _write_reference(self, given: JsonObject, written: Schema, text: str, path: str) -> Schema:
        reference = str(given["$ref"])
        target = resolve(self._root, reference)
        if target is None:
            self._note(path, f"{reference!r} cannot be resolved inside the schema; it is checked at call time")
            return _add_description(written, text)
        pointer: Schema = {"$ref": f"#/$defs/{self._define(reference, target)}"}
        if not written and not text:
            return pointer
        if "anyOf" in written:
            self._note(path, "alternatives beside a reference are checked at call time")
        return _add_description({**written, "anyOf": [pointer]}, text)  # Gemini allows nothing beside a $ref

    def _define(self, reference: str, target: Json) -> str:
        if reference not in self._names:
            name = definition_name(reference, self._names.values())
            self._names[reference] = name
            self.definitions[name] = {}  # ends the recursion of a definition that refers to itself
            self.definitions[name] = self._rewrite(target, name)
        return self._names[reference]

    def _fold_all_of(self, schema: JsonObject, path: str) -> JsonObject:
        if "allOf" not in schema:
            return schema
        whole = fold_all_of(schema, self._root)
        if whole is not None:
            return self._fold_all_of(whole, path)
        self._note(
            path,
            "'allOf' cannot be merged into one schema; only its first part is sent, all are checked at call time",
        )
        base = drop_keyword(schema, "allOf")
        flat = [dereference(part, self._root) for part in as_list(schema["allOf"])]
        first = merge_all([base, *[part for part in flat if part is not None][:1]])
        return self._fold_all_of(first if first is not None else base, path)

    def _describe_keyword(self, given: JsonObject, key: str, path: str) -> list[str]:
        if key in ANNOTATIONS:
            return []
        if not is_known(key):
            self._note(path, f"'{key}' is not a JSON Schema keyword; left out")
            return []
        self._note(path, f"Gemini does not support '{key}'; it is moved to the description and checked at call time")
        return [] if has_reference(given[key]) else [describe_fact(key, given[key])]

    def _open_cycles(self, root: Schema, path: str) -> None:
        """Make recursive properties optional: Gemini accepts a cycle only through properties that may be left out."""
        for place, node in [(path, root), *self.definitions.items()]:
            self._open_cycle(node, place)

    def _open_cycle(self, node: Schema, path: str) -> None:
        properties = read_object(node.get("properties"))
        cyclic = [name for name in names_in(node.get("required")) if self._is_cyclic(properties.get(name))]
        if cyclic:
            node["required"] = [name for name in node["required"] if name not in cyclic]
            self._note(path, f"{', '.join(cyclic)} are recursive; that they are required is checked at call time")
        for child in _children(node):
            self._open_cycle(child, path)

    def _is_cyclic(self, schema: Json) -> bool:
        return any(name in self._find_reachable([name], set()) for name in _references(read_object(schema)))

    def _find_reachable(self, names: Sequence[str], seen: set[str]) -> set[str]:
        for name in names:
            for other in _references(self.definitions[name]):
                if other not in seen:
                    seen.add(other)
                    self._find_reachable([other], seen)
        return seen

    def _note(self, path: str, text: str) -> None:
        note = f"{path}: {text}"
        if note not in self.notes:
            self.notes.append(note)


def _add_description(schema: Schema, text: str) -> Schema:
    return {**schema, "description": text} if text else schema


def _children(node: JsonObject) -> list[Schema]:
    found = [
        *read_object(node.get("properties")).values(),
        *as_list(node.get("anyOf")),
        *as_list(node.get("prefixItems")),
    ]
    found += [node.get("items"), node.get("additionalProperties")]
    return [child for child in found if isinstance(child, dict)]


def _references(node: JsonObject) -> list[str]:
    found = [str(node["$ref"]).removeprefix("#/$defs/")] if "$ref" in node else []
    for child in _children(node):
        found += _references(child)
    return found
