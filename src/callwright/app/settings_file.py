"""One settings file: parsed, checked against the published JSON Schema, with line numbers in every message."""

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from typing import Any, Literal, TypeAlias, cast

from callwright.core.errors import ToolError, UsageError, describe_exception
from callwright.core.json import (
    DuplicateKey,
    FrozenDict,
    JsonObject,
    freeze,
    parse_strictly,
    read_object,
)
from callwright.core.json_positions import members_at, skip_space
from callwright.system.files import read_regular
from callwright.system.paths import expand_home


def line_of(text: str, path: Sequence[str | int]) -> int:
    """Return the line of the value at a path of keys and indexes in JSON text.

    If the path does not exist, the line of its longest existing part is returned.
    """
    return _position(text, path)[0]


def place_of(source: str, text: str, path: Sequence[str | int]) -> str:
    """Return where a value is, as `file:line:column`."""
    return ":".join(map(str, (source, *_position(text, path))))


def _position(text: str, path: Sequence[str | int]) -> tuple[int, int]:
    at = _find(text, skip_space(text, 0), path)
    return text.count("\n", 0, at) + 1, at - text.rfind("\n", 0, at)


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
_ALWAYS_COUNTED = frozenset(("deny", "ask", "disableBypassPermissionsMode"))
_BARRING = ("disabledMcpjsonServers",)
_UNEXPECTED = "Additional properties"
_IGNORED = "is not a known setting and is ignored"


@dataclass(frozen=True, slots=True)
class SettingsLayer:
    """The settings of one source."""

    scope: Scope
    source: str
    """The file, or the option that holds the settings."""
    content: JsonObject = _EMPTY
    problems: tuple[str, ...] = ()
    text: str = field(default="", repr=False, compare=False)
    """The original text, for line numbers."""
    foreign: bool = False
    """Whether it is a file of another agent, over which all of our own take precedence."""

    @property
    def in_repository(self) -> bool:
        """Whether the file lies in the project, where its authors may have put it."""
        return self.scope in ("project", "local")

    def at(self, *path: str | int) -> str:
        """Return the source and line of a value, as `file:line`."""
        return f"{self.source}:{self.line(path)}" if self.text else self.source

    def column(self, *path: str | int) -> str:
        """Return the column of a value, for the end of a message; empty if there is no text."""
        return f" (column {_position(self.text, path)[1]})" if self.text else ""

    def line(self, path: Sequence[str | int]) -> int:
        """Return the line of a value."""
        return line_of(self.text, path)

    def section(self, name: str) -> Mapping[str, Any]:
        """Return one object of the settings; empty if it is absent."""
        return cast("Mapping[str, Any]", self.content.get(name) or _EMPTY)

    def keep_restrictions(self) -> "SettingsLayer":
        """Return this layer with only what restricts permissions: deny and ask rules, and barred modes."""
        kept = {kind: rules for kind, rules in self.section("permissions").items() if kind in _ALWAYS_COUNTED}
        barred = {key: self.content[key] for key in _BARRING if key in self.content}
        return replace(self, content=freeze({**({"permissions": kept} if kept else {}), **barred}))


def read_layer(scope: Scope, file: Path) -> SettingsLayer | None:
    """Read a settings file; return None if it does not exist.

    Raises:
        UsageError: It cannot be read. Ignoring the file would lose its deny rules.
    """
    text = read_text(file)
    return None if text is None else parse_layer(scope, str(file), text)


def read_text(file: Path) -> str | None:
    """Return the text of a settings file; None if it does not exist.

    Only a regular file is read, up to a limit: a repository could make it a link to an endless device.

    Raises:
        UsageError: It cannot be read.
    """
    try:
        # resolved first: links are refused, and users do link their settings
        data = read_regular(Path(os.path.realpath(file)), _MOST_BYTES + 1)
        if len(data) > _MOST_BYTES:
            raise ValueError(f"more than {_MOST_BYTES} bytes")
        return data.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        raise UsageError(f"cannot read the settings in {file}: {error}; save it as UTF-8") from None
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError, ToolError) as error:
        raise UsageError(f"cannot read the settings in {file}: {describe_exception(error)}") from None


def read_named(option: str, name: str, advice: str = "") -> str:
    """Read the file that an option of the command line names.

    Raises:
        UsageError: It cannot be read, or is not UTF-8 text.
    """
    try:
        return expand_home(name).read_text("utf-8-sig")
    except (OSError, ValueError) as error:
        raise UsageError(f"{option} {name}: {describe_exception(error)}{advice}") from None


def parse_layer(scope: Scope, source: str, text: str, *, shown: str = "") -> SettingsLayer:
    """Parse settings from JSON text.

    Args:
        scope: Whose settings they are.
        source: The file, or the option that holds them.
        text: The JSON.
        shown: The text that messages show places in, if it is not the same.

    Raises:
        UsageError: The text is not valid JSON or does not match the schema; the message names the source and line.
    """
    try:
        return _check(scope, source, read_json(source, text), shown or text)
    except RecursionError:
        raise UsageError(f"{source}: the JSON is nested too deeply") from None


def _check(scope: Scope, source: str, content: object, shown: str) -> SettingsLayer:
    # all of them at once, so that a user corrects the file in one go
    faults = [f"{source}:{_describe_fault(shown, path, message)}" for path, message in _faults(content)]
    if faults:
        raise UsageError("; ".join(faults))
    settings = cast("dict[str, Any]", content)
    unknown_keys = list(_unknown_keys(settings))
    for path, _ in unknown_keys:
        if (meant := find_misspelt(path)) is not None:
            where = f"{source}:{line_of(shown, path)}"
            raise UsageError(
                f"{where}: {'.'.join(path)!r} is not known, and what it holds would be lost; write {meant!r}"
            )
    unknown = (f"{source}:{line_of(shown, path)}: {_describe_unknown_key(path, known)}" for path, known in unknown_keys)
    return SettingsLayer(scope, source, freeze(_normalise(settings)), tuple(unknown), shown)


def _describe_fault(text: str, path: Sequence[str | int], message: str) -> str:
    line, column = _position(text, path)
    return f"{line}: {message} (column {column})"


def read_json(source: str, text: str) -> object:
    """Parse JSON text in which no key stands twice.

    Raises:
        UsageError: It is not valid; the message names the source, line and column.
    """
    try:
        return parse_strictly(text)
    except DuplicateKey as error:  # one of two lists of deny rules would be lost silently
        raise UsageError(f"{source}: duplicate key {error.key!r} in one object; merge the two") from None
    except json.JSONDecodeError as error:
        where = f"{source}:{error.lineno}: not valid JSON: {error.msg} at column {error.colno}"
        raise UsageError(f"{where}{_advise_syntax(text, error.pos)}") from None
    except RecursionError:
        raise UsageError(f"{source}: the JSON is nested too deeply") from None
    except ValueError as error:
        raise UsageError(f"{source}: not valid JSON: {error}") from None


def _advise_syntax(text: str, place: int) -> str:
    """Return what to do about JSON that cannot be read at a place; empty if that is not known."""
    before, after = text[:place].rstrip(), text[place:].lstrip()
    if after.startswith(","):  # where Python 3.13 and later report it
        before, after = f"{before},", after[1:].lstrip()
    if not text.strip():
        return "; it is empty, write {}"
    if after.startswith(("//", "/*", "#")):
        return "; JSON has no comments, remove it"
    if before.endswith(",") and after.startswith(("}", "]")):
        return "; remove the last comma"
    return ""


def _normalise(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Translate settings in the format of other agents."""
    sandbox = settings.get("sandbox")
    if not isinstance(sandbox, Mapping):
        return dict(settings)
    given = cast("Mapping[str, Any]", sandbox)
    if "mode" in given or "enabled" not in given:
        return dict(settings)
    return {**settings, "sandbox": {**given, "mode": "prefer" if given["enabled"] is True else "off"}}


_FOLDERS = (("permissions", "additionalDirectories"), ("sandbox", "writable"), ("sandbox", "readable"))
"""Settings that are lists of folders."""


def _faults(content: object) -> Iterator[tuple[Sequence[str | int], str]]:
    yield from _environment_faults(read_object(read_object(content).get("env")))
    yield from _folder_faults(read_object(content))
    try:
        errors: list[Any] = list(_validator().iter_errors(content))
    except UnicodeEncodeError:
        yield (), "the settings: a key has half of a surrogate pair; rename it"
        return
    for error in errors:
        path: list[str | int] = list(error.instance_path)
        unexpected = list(_describe_unexpected(content, path)) if _UNEXPECTED in error.message else []
        yield from unexpected or [(path, f"{'.'.join(map(str, path)) or 'the settings'}: {_explain(error)}")]


def _environment_faults(variables: Mapping[str, Any]) -> Iterator[tuple[Sequence[str], str]]:
    """Yield each variable that no process can be given; the system would refuse it with a traceback."""
    for name, value in variables.items():
        if not name or "=" in name or not _can_be_passed(name):
            yield (
                ("env", name),
                f"env: {name!r} is not a name of an environment variable: it must not be empty, and have no '=',"
                " NUL or half of a surrogate pair; rename it",
            )
        elif isinstance(value, str) and not _can_be_passed(value):
            yield ("env", name), f"env.{name}: the value has a NUL or half of a surrogate pair; remove it"


def _folder_faults(settings: Mapping[str, Any]) -> Iterator[tuple[Sequence[str | int], str]]:
    """Yield each name that no folder can have; the system would refuse it with a traceback too."""
    for section, key in _FOLDERS:
        given: object = read_object(settings.get(section)).get(key)
        for place, name in enumerate(cast("list[object]", given) if isinstance(given, list) else ()):
            if isinstance(name, str) and not _can_be_passed(name):
                fault = f"{section}.{key}: {name!r} has a NUL or half of a surrogate pair; remove it"
                yield (section, key, place), fault


def _can_be_passed(text: str) -> bool:
    return "\0" not in text and not any("\ud800" <= character <= "\udfff" for character in text)


def _explain(error: Any) -> str:
    """Return what is wrong; for a value that may be of several forms, why it is none of them."""
    if options := getattr(error.kind, "options", None):  # its own message names two of many
        return f"{error.message.partition(' is not one of ')[0]} is not one of {', '.join(map(json.dumps, options))}"
    forms = [found[0] for found in getattr(error.kind, "context", ()) if found]
    return " and ".join(dict.fromkeys(_explain(each) for each in forms)) if forms else error.message


def _describe_unexpected(content: object, path: Sequence[str | int]) -> Iterator[tuple[Sequence[str | int], str]]:
    """Yield each key that an object may not have, with its value and the keys that it may have."""
    here, schema = content, _schema()
    for step in path:
        if not isinstance(here, Mapping) or step not in schema.get("properties", {}):
            return
        here, schema = cast("Mapping[str | int, Any]", here)[step], schema["properties"][step]
    for key, value in cast("Mapping[str, Any]", here).items() if isinstance(here, Mapping) else ():
        known = list(schema.get("properties", {}))
        if key not in known:
            near = get_close_matches(key, known, n=1)
            advice = f"did you mean {near[0]}?" if near else f"known are {', '.join(known)}"
            yield (
                [*path, key],
                f"{'.'.join(map(str, [*path, key]))}: unknown, with the value {json.dumps(value)}; {advice}",
            )


_GUARDS = ("permissions", "hooks", "disableAllHooks")
_WALLS = ("mode", "excludedCommands")


def find_misspelt(path: Sequence[str]) -> str | None:
    """Return the setting that an unknown key means, if rules, hooks or a sandbox under the wrong name would be lost."""
    key = path[-1].strip().casefold()
    if len(path) == 1:
        return f"permissions.{key}" if key in ("deny", "ask") else _find_near(key, _GUARDS)
    if path[0] == "sandbox":
        return _find_near(key, _WALLS)
    if path[0] != "permissions":
        return None
    from callwright.policy.rules.loading import find_misspelt_list  # for unknown keys only

    return find_misspelt_list(key)


def _find_near(key: str, names: Sequence[str]) -> str | None:
    near = get_close_matches(key, [name.casefold() for name in names], n=1, cutoff=0.8)
    return next((name for name in names if near and name.casefold() == near[0]), None)


def _unknown_keys(settings: Mapping[str, Any]) -> Iterator[tuple[Sequence[str], Sequence[str]]]:
    """Yield the path of every unknown key, with the known keys of the same object."""
    known = _schema()["properties"]
    for key, value in settings.items():
        if key not in known:
            yield (key,), list(known)
        for inner in _unknown_inner_keys(known.get(key, {}), value):
            yield (key, inner), list(_inner_properties(known[key]))


def is_known(section: str, key: str = "") -> bool:
    """Whether there is a setting of this name, and a key of it."""
    known = _schema()["properties"]
    return section in known and not (key and any(_unknown_inner_keys(known[section], {key: None})))


def _unknown_inner_keys(schema: Mapping[str, Any], value: Any) -> Iterator[str]:
    known = _inner_properties(schema)
    if known and isinstance(value, Mapping):
        yield from (key for key in cast("Mapping[str, Any]", value) if key not in known)


def _inner_properties(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the keys of a section, also of one that may be a word in place of an object; empty if it takes any."""
    return schema.get("properties") or schema.get("then", {}).get("properties", {})


def _describe_unknown_key(path: Sequence[str], known: Sequence[str]) -> str:
    # unknown keys are only reported, because files written for other agents must load
    inner = _find_sections(path[-1]) if len(path) == 1 else []
    near = inner or get_close_matches(path[-1], known, n=1)
    return f"{'.'.join(path)!r} {_IGNORED}" + (f"; did you mean {near[0]!r}?" if near else "")


def _find_sections(key: str) -> list[str]:
    """Return where a key belongs that stands outside of its section, such as `permissions.allow`."""
    sections = _schema()["properties"].items()
    return [f"{name}.{key}" for name, schema in sections if key in _inner_properties(schema)]


@cache
def _schema() -> dict[str, Any]:
    return json.loads(SCHEMA_FILE.read_text("utf-8"))


@cache
def _validator() -> Any:
    import jsonschema_rs  # a run without settings files does not need it

    return jsonschema_rs.validator_for(_schema())
