"""One settings file: read, checked against the published schema, complained about by line.

Finds the line a value stands on in JSON text, so that a complaint can point at it.
"""

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from functools import cache, partial
from pathlib import Path
from typing import Any, Literal, TypeAlias, cast

from callwright.core.errors import ToolError, UsageError, plainly
from callwright.core.json import FrozenDict, JsonObject, freeze, members_at, skip_space
from callwright.system.files import open_regular, read_all


def line_of(text: str, path: Sequence[str | int]) -> int:
    """The line of the value at a path of keys and places; where the path ends early, of the last part that is there."""
    return text.count("\n", 0, _find(text, skip_space(text, 0), path)) + 1


def _find(text: str, at: int, path: Sequence[str | int]) -> int:
    if not path:
        return at
    for member in members_at(text, at):
        if member.name == path[0]:
            found = _find(text, member.value, path[1:])
            return member.begin if found == member.value else found
    return at


Scope: TypeAlias = Literal["user", "project", "local", "command line", "managed"]
SCHEMA_FILE = Path(__file__).with_name("settings.schema.json")
_MOST_BYTES = 1 << 20
_EMPTY: JsonObject = FrozenDict()
_ALWAYS_HEARD = frozenset(("deny", "ask", "disableBypassPermissionsMode"))
_FOREIGN = "is not a setting of ours and is left alone"


@dataclass(frozen=True, slots=True)
class Layer:
    """What one place says, and who may have written it."""

    scope: Scope
    source: str
    """The file, or the option it was given with."""
    content: JsonObject = _EMPTY
    problems: tuple[str, ...] = ()
    text: str = field(default="", repr=False, compare=False)
    """As it was written, so that lines can be named."""

    def at(self, *path: str | int) -> str:
        """Name the place of a value: the file and the line it stands on."""
        return f"{self.source}:{self.line(path)}" if self.text else self.source

    def line(self, path: Sequence[str | int]) -> int:
        """The line a value stands on."""
        return line_of(self.text, path)

    def section(self, name: str) -> Mapping[str, Any]:
        """One object of the settings; empty where there is none."""
        return cast("Mapping[str, Any]", self.content.get(name) or _EMPTY)

    def restricting(self) -> "Layer":
        """Only what takes permissions away: deny and ask rules, and a mode that is barred."""
        kept = {kind: rules for kind, rules in self.section("permissions").items() if kind in _ALWAYS_HEARD}
        return replace(self, content=freeze({"permissions": kept}) if kept else _EMPTY)


def read_layer(scope: Scope, file: Path) -> Layer | None:
    """Read a settings file; None if there is none. What cannot be read is a `UsageError`: no protection is lost."""
    try:
        text = _text(file)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError, ToolError) as error:
        raise UsageError(f"the settings in {file} cannot be read: {plainly(error)}") from None
    return parse_layer(scope, str(file), text)


def _text(file: Path) -> str:
    """What a file holds; a repository can make it a link to a device that never ends."""
    descriptor = open_regular(Path(os.path.realpath(file)))
    try:
        data = read_all(descriptor, _MOST_BYTES + 1)
    finally:
        os.close(descriptor)
    if len(data) > _MOST_BYTES:
        raise ValueError(f"it has more than {_MOST_BYTES} bytes")
    return data.decode("utf-8-sig").replace("\r\n", "\n")


def parse_layer(scope: Scope, source: str, text: str) -> Layer:
    """Read settings from text; every complaint names the source and the line."""
    try:
        return _parsed(scope, source, text)
    except RecursionError:
        raise UsageError(f"{source}: it is nested too deeply") from None


def _parsed(scope: Scope, source: str, text: str) -> Layer:
    try:
        content: object = json.loads(text, object_pairs_hook=partial(_distinct, source))
    except json.JSONDecodeError as error:
        raise UsageError(f"{source}:{error.lineno}: not valid JSON: {error.msg} at column {error.colno}") from None
    faults = [f"{source}:{line_of(text, path)}: {message}" for path, message in _faults(content)]
    if faults:
        raise UsageError("; ".join(faults))
    settings = cast("dict[str, Any]", content)
    unknown = (f"{source}:{line_of(text, path)}: {_unknown(path, known)}" for path, known in _strangers(settings))
    return Layer(scope, source, freeze(_plain(settings)), tuple(unknown), text)


def _distinct(source: str, pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    """An object whose keys are each given once: of two lists of deny rules one would be lost in silence."""
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise UsageError(f"{source}: {twice!r} is given twice in one object; put both into one")
    return found


def _plain(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings with other agents' way to say something turned into ours."""
    sandbox = settings.get("sandbox")
    if not isinstance(sandbox, Mapping):
        return dict(settings)
    enabled = cast("Mapping[str, Any]", sandbox).get("enabled") is True
    return {**settings, "sandbox": "prefer" if enabled else "off"}


def _faults(content: object) -> Iterator[tuple[Sequence[str | int], str]]:
    for error in _validator().iter_errors(content):
        path: list[str | int] = list(error.instance_path)
        yield path, f"{'.'.join(map(str, path)) or 'the settings'}: {error.message}"


def _strangers(settings: Mapping[str, Any]) -> Iterator[tuple[Sequence[str], Sequence[str]]]:
    """Keys nobody reads, with those that are read in their place."""
    known = _schema()["properties"]
    for key, value in settings.items():
        if key not in known:
            yield (key,), list(known)
        for inner in _named_inside(known.get(key, {}), value):
            yield (key, inner), list(known[key]["properties"])


def _named_inside(schema: Mapping[str, Any], value: Any) -> Iterator[str]:
    if "properties" in schema and isinstance(value, Mapping):
        yield from (key for key in cast("Mapping[str, Any]", value) if key not in schema["properties"])


def _unknown(path: Sequence[str], known: Sequence[str]) -> str:
    near = get_close_matches(path[-1], known, n=1)
    return f"{'.'.join(path)!r} {_FOREIGN}" + (f"; did you mean {near[0]!r}?" if near else "")


@cache
def _schema() -> dict[str, Any]:
    return json.loads(SCHEMA_FILE.read_text("utf-8"))


@cache
def _validator() -> Any:
    import jsonschema_rs  # loaded when there are settings to be checked, not before

    return jsonschema_rs.validator_for(_schema())
