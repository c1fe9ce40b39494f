"""The JSON Schema that Gemini reads in a function declaration (`parametersJsonSchema`)."""

from collections.abc import Sequence

from callwright.core.json import Json, JsonObject
from callwright.providers.schemas.inspect import (
    ANNOTATIONS,
    STRUCTURE,
    Schema,
    as_list,
    as_object,
    choices,
    definition_name,
    exclusive,
    fact,
    is_known,
    is_object,
    kinds_of,
    names_in,
    refers,
    resolve,
    told,
    without,
)
from callwright.providers.schemas.merge import dereferenced, folded, merged_all

_AS_THEY_ARE = ("format", "minItems", "maxItems", "minimum", "maximum")
_READ = STRUCTURE | {"items", "prefixItems", "description", "default", "exclusiveMinimum", "exclusiveMaximum"}
_LISTABLE = ("string", "integer", "number")
"""Kinds of value that Gemini takes in an enum."""


def gemini_schema(root: JsonObject) -> tuple[Schema, tuple[str, ...]]:
    """Rewrite an object schema in the keywords Gemini documents; what they cannot say is told, and noted.

    Everything valid stays valid. Where nothing is noted, everything invalid stays invalid too.
    """
    writer = _Writer(root)
    schema = writer.node(root, "arguments")
    schema.setdefault("properties", {})
    writer.open_cycles(schema)
    if writer.definitions:
        schema["$defs"] = writer.definitions
    return schema, tuple(writer.notes)


class _Writer:
    def __init__(self, root: JsonObject) -> None:
        self.notes: list[str] = []
        self.definitions: dict[str, Schema] = {}
        self._root = root
        self._names: dict[str, str] = {}

    def node(self, schema: Json, path: str) -> Schema:
        if schema is False:
            self._note(path, "nothing fits it; that is checked on the call")
        given = self._without_all_of(as_object(schema), path)
        facts: list[str] = []
        written: Schema = {}
        for key in given:
            if key not in _READ and key not in _AS_THEY_ARE:
                facts += self._told(given, key, path)
        if given.get("default") is not None:
            facts.append(fact("default", given["default"]))
        self._kinds(given, written, facts, path)
        self._bounds(given, written, facts, path)
        self._parts(given, written, path)
        self._alternatives(given, written, path)
        text = told(given.get("description"), facts)
        return self._reference(given, written, text, path) if "$ref" in given else _described(written, text)

    def _kinds(self, given: JsonObject, written: Schema, facts: list[str], path: str) -> None:
        if "type" in given:
            written["type"] = given["type"]
        values = choices(given)
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
            self._note(path, "choices other than strings and numbers are told and checked on the call")
            facts.append(fact("one of", values))
            written.setdefault("type", kinds if len(kinds) > 1 else kinds[0])

    def _bounds(self, given: JsonObject, written: Schema, facts: list[str], path: str) -> None:
        written.update({key: given[key] for key in _AS_THEY_ARE if key in given})
        for key, plain, step in (("exclusiveMinimum", "minimum", 1), ("exclusiveMaximum", "maximum", -1)):
            bound = given.get(key)
            if isinstance(bound, bool) or not isinstance(bound, (int, float)):
                continue
            exact = kinds_of(given) == ["integer"] and float(bound).is_integer()
            if not exact:
                self._note(path, f"'{key}' is sent as {plain}; that the bound itself is out is checked on the call")
                facts.append(fact(key, bound))
            tighter = max if step > 0 else min
            nearest = int(bound) + step if exact else bound
            written[plain] = tighter(nearest, written[plain]) if plain in written else nearest

    def _parts(self, given: JsonObject, written: Schema, path: str) -> None:
        properties = as_object(given.get("properties"))
        if "properties" in given:
            written["properties"] = {
                name: self.node(value, f"{path}.{name}") for name, value in properties.items() if value is not False
            }
        if any(value is False for value in properties.values()):
            self._note(path, "that some properties may never be given is checked on the call")
        if "required" in given:
            written["required"] = names_in(given["required"])
        for key in ("additionalProperties", "items"):
            # what a pattern lets in is no longer known, so it must not be shut out either
            if key in given and not (key == "additionalProperties" and "patternProperties" in given):
                self._inside(given, key, written, path)
        if "prefixItems" in given:
            places = enumerate(as_list(given["prefixItems"]))
            written["prefixItems"] = [self.node(item, f"{path}[{place}]") for place, item in places]

    def _inside(self, given: JsonObject, key: str, written: Schema, path: str) -> None:
        value = given[key]
        if isinstance(value, bool):
            written[key] = value
        elif is_object(value):
            written[key] = self.node(value, f"{path}[]" if key == "items" else f"{path}{{}}")
        else:  # a list of schemas is how older drafts write prefixItems
            written["prefixItems"] = [self.node(item, f"{path}[{place}]") for place, item in enumerate(as_list(value))]

    def _alternatives(self, given: JsonObject, written: Schema, path: str) -> None:
        for key in ("anyOf", "oneOf"):
            branches = as_list(given.get(key))
            if not branches:
                continue
            if key == "oneOf" and not exclusive([dereferenced(branch, self._root) or {} for branch in branches]):
                self._note(path, "'oneOf' is sent as anyOf; that no second branch fits is checked on the call")
            if "anyOf" in written:
                self._note(path, f"'{key}' beside other alternatives is checked on the call")
                continue
            written["anyOf"] = [self.node(branch, f"{path}.{place}") for place, branch in enumerate(branches)]

    def _reference(self, given: JsonObject, written: Schema, text: str, path: str) -> Schema:
        reference = str(given["$ref"])
        target = resolve(self._root, reference)
        if target is None:
            self._note(path, f"{reference!r} leads out of the schema; what it says is checked on the call")
            return _described(written, text)
        pointer: Schema = {"$ref": f"#/$defs/{self._defined(reference, target)}"}
        if not written and not text:
            return pointer
        if "anyOf" in written:
            self._note(path, "alternatives beside a reference are checked on the call")
        return _described({**written, "anyOf": [pointer]}, text)  # Gemini allows nothing beside a $ref

    def _defined(self, reference: str, target: Json) -> str:
        if reference not in self._names:
            name = definition_name(reference, self._names.values())
            self._names[reference] = name
            self.definitions[name] = {}
            self.definitions[name] = self.node(target, name)
        return self._names[reference]

    def _without_all_of(self, schema: JsonObject, path: str) -> JsonObject:
        if "allOf" not in schema:
            return schema
        whole = folded(schema, self._root)
        if whole is not None:
            return self._without_all_of(whole, path)
        self._note(path, "'allOf' does not come down to one schema; only its first part is sent, all are checked")
        base = without(schema, "allOf")
        flat = [dereferenced(part, self._root) for part in as_list(schema["allOf"])]
        first = merged_all([base, *[part for part in flat if part is not None][:1]])
        return self._without_all_of(first if first is not None else base, path)

    def _told(self, given: JsonObject, key: str, path: str) -> list[str]:
        if key in ANNOTATIONS:
            return []
        if not is_known(key):
            self._note(path, f"'{key}' is no JSON Schema; left out")
            return []
        self._note(
            path, f"'{key}' is not among Gemini's keywords; it is told in the description and checked on the call"
        )
        return [] if refers(given[key]) else [fact(key, given[key])]

    def open_cycles(self, root: Schema) -> None:
        """Make optional what requires itself: Gemini follows a cycle only through properties that may be left out."""
        for path, node in [("arguments", root), *self.definitions.items()]:
            self._open_cycle(node, path)

    def _open_cycle(self, node: Schema, path: str) -> None:
        properties = as_object(node.get("properties"))
        cyclic = [name for name in names_in(node.get("required")) if self._cyclic(properties.get(name))]
        if cyclic:
            node["required"] = [name for name in node["required"] if name not in cyclic]
            self._note(
                path, f"{', '.join(cyclic)} contain their own kind; that they are required is checked on the call"
            )
        for child in _children(node):
            self._open_cycle(child, path)

    def _cyclic(self, schema: Json) -> bool:
        return any(name in self._reached([name], set()) for name in _references(as_object(schema)))

    def _reached(self, names: Sequence[str], seen: set[str]) -> set[str]:
        for name in names:
            for other in _references(self.definitions[name]):
                if other not in seen:
                    seen.add(other)
                    self._reached([other], seen)
        return seen

    def _note(self, path: str, text: str) -> None:
        note = f"{path}: {text}"
        if note not in self.notes:
            self.notes.append(note)


def _described(schema: Schema, text: str) -> Schema:
    return {**schema, "description": text} if text else schema


def _children(node: JsonObject) -> list[Schema]:
    found = [
        *as_object(node.get("properties")).values(),
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
