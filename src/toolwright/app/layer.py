"""One settings file: read, checked against the published schema, complained about by line."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from typing import Any, Literal, TypeAlias, cast

from toolwright.app.position import line_of
from toolwright.core.errors import UsageError
from toolwright.core.json import FrozenDict, JsonObject, freeze

Scope: TypeAlias = Literal["user", "project", "local", "command line"]
SCHEMA_FILE = Path(__file__).with_name("settings.schema.json")
_EMPTY: JsonObject = FrozenDict()
_FOREIGN = "is not a setting of ours and is left alone"


@dataclass(frozen=True, slots=True)
class Layer:
    """What one place says, and who may have written it."""

    scope: Scope
    source: str
    """The file, or the option it was given with."""
    content: JsonObject = _EMPTY
    problems: tuple[str, ...] = ()

    @property
    def of_repository(self) -> bool:
        """Whoever wrote the repository wrote this: it may restrict, but grants nothing before the folder is trusted."""
        return self.scope in ("project", "local")

    def section(self, name: str) -> Mapping[str, Any]:
        """One object of the settings; empty where there is none."""
        return cast("Mapping[str, Any]", self.content.get(name) or _EMPTY)

    def restricting(self) -> "Layer":
        """Only what takes permissions away: deny and ask rules."""
        kept = {kind: rules for kind, rules in self.section("permissions").items() if kind in ("deny", "ask")}
        return Layer(self.scope, self.source, freeze({"permissions": kept}) if kept else _EMPTY, self.problems)


def read_layer(scope: Scope, file: Path) -> Layer | None:
    """Read a settings file; None if there is none. What cannot be read is a `UsageError`: no protection is lost."""
    try:
        text = file.read_text("utf-8-sig")
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError) as error:
        raise UsageError(f"the settings in {file} cannot be read: {error}") from None
    return parse_layer(scope, str(file), text)


def parse_layer(scope: Scope, source: str, text: str) -> Layer:
    """Read settings from text; every complaint names the source and the line."""
    try:
        content: object = json.loads(text)
    except json.JSONDecodeError as error:
        raise UsageError(f"{source}:{error.lineno}: not valid JSON: {error.msg} at column {error.colno}") from None
    faults = [f"{source}:{line_of(text, path)}: {message}" for path, message in _faults(content)]
    if faults:
        raise UsageError("; ".join(faults))
    settings = cast("dict[str, Any]", content)
    unknown = (f"{source}:{line_of(text, (key,))}: {_unknown(key)}" for key in settings if key not in _known())
    return Layer(scope, source, freeze(settings), tuple(unknown))


def _faults(content: object) -> Iterator[tuple[Sequence[str | int], str]]:
    for error in _validator().iter_errors(content):
        path: list[str | int] = list(error.instance_path)
        yield path, f"{'.'.join(map(str, path)) or 'the settings'}: {error.message}"


def _unknown(key: str) -> str:
    near = get_close_matches(key, _known(), n=1)
    return f"{key!r} {_FOREIGN}" + (f"; did you mean {near[0]!r}?" if near else "")


@cache
def _schema() -> dict[str, Any]:
    return json.loads(SCHEMA_FILE.read_text("utf-8"))


def _known() -> Sequence[str]:
    return list(_schema()["properties"])


@cache
def _validator() -> Any:
    import jsonschema_rs  # loaded when there are settings to be checked, not before

    return jsonschema_rs.validator_for(_schema())
