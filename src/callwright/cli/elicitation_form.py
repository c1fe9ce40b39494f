"""Forms of MCP servers: their texts for a dialog, and the values of their fields.

The texts come from a server, so they are escaped and marked with a bar. A server's default never answers a yes/no
question.
"""

import json
import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from callwright.cli.approval_dialog import DialogText, wrap_rows
from callwright.cli.render.text import Palette, mark_text
from callwright.core.json import read_object

_CREDENTIAL = re.compile(
    r"pass ?(?:word|phrase|code|wd|key)|passwd|secret|token|api ?key|private ?key|credential|\bpin\b|\botp\b|one ?time"
    r"|\b2fa\b|verification code|cvv|\bcvc\b|card ?number|\bssn\b|social security|seed ?phrase|mnemonic|\biban\b"
)
_YES = ("y", "yes", "true")
_NO = ("n", "no", "false")
_YES_NO_WORDS = frozenset("y n yes no true false on off allow deny accept decline approve reject ok cancel".split())
_WARNING = "! this looks like a request for a credential: the server can keep and use what you send"


class InvalidValue(ValueError):
    """A value that does not fit its field."""


@dataclass(frozen=True, slots=True)
class Field:
    """One field of a form."""

    name: str
    schema: Mapping[str, Any]
    required: bool = False

    @property
    def kind(self) -> str:
        """The JSON type of the value."""
        return str(self.schema.get("type", "string"))

    @property
    def choices(self) -> tuple[str, ...]:
        """The only values that are allowed; none if any value is."""
        found = read_object(self.schema.get("items")) if self.kind == "array" else self.schema
        options = _sequence(found.get("oneOf")) or _sequence(found.get("anyOf"))
        listed = _sequence(found.get("enum")) or [read_object(option).get("const") for option in options]
        return tuple(str(value) for value in listed if value is not None)

    @property
    def decides(self) -> bool:
        """Whether it is a yes/no question, which only the user answers."""
        return self.kind == "boolean" or (
            0 < len(self.choices) <= 3 and all(value.casefold() in _YES_NO_WORDS for value in self.choices)
        )

    @property
    def default(self) -> object:
        """The value of an empty input; None if there is none. Never that of a yes/no field."""
        return None if self.decides else self.schema.get("default")

    @property
    def hint(self) -> str:
        """What may be typed."""
        parts = [{"boolean": "yes or no", "array": "values with commas between them"}.get(self.kind, self.kind)]
        parts += [f"one of {', '.join(map(mark_text, self.choices))}"] if self.choices else []
        parts += ["required" if self.required else "optional, Enter leaves it out"] if self.default is None else []
        if self.default is not None:
            parts.append(f"Enter sends {mark_text(json.dumps(self.default, ensure_ascii=False, default=str))}")
        return "; ".join(parts)

    def parse(self, text: str) -> object:
        """Return the value of an input; None leaves the field out.

        Raises:
            InvalidValue: The input does not fit the field.
        """
        given = text.strip()
        if not given:
            if self.default is None and self.required:
                raise InvalidValue(f"{mark_text(self.name)} is required: {self.hint}")
            return self.default
        if self.kind == "array":
            return [self._choose(each.strip()) for each in given.split(",")]
        return self._choose(given) if self.choices else self._convert(given)

    def _choose(self, given: str) -> str:
        if self.choices and given not in self.choices:
            raise InvalidValue(f"expected one of {', '.join(map(mark_text, self.choices))}")
        return given

    def _convert(self, given: str) -> object:
        try:
            match self.kind:
                case "boolean" if given.lower() in (*_YES, *_NO):
                    return given.lower() in _YES
                case "boolean":
                    raise InvalidValue("expected yes or no")
                case "integer":
                    return int(given)
                case "number":
                    return float(given)
                case _:
                    return given
        except InvalidValue:
            raise
        except ValueError:
            raise InvalidValue(f"expected {self.kind}, got {mark_text(given)}") from None


def fields_of(arguments: Mapping[str, Any]) -> list[Field]:
    """Return the fields of a server's form."""
    schema = read_object(arguments.get("fields"))
    required = _sequence(schema.get("required"))
    return [
        Field(name, read_object(each), name in required) for name, each in read_object(schema.get("properties")).items()
    ]


def _sequence(value: object) -> Sequence[object]:
    return cast("Sequence[object]", value) if isinstance(value, (list, tuple)) else ()


def form_text(server: str, arguments: Mapping[str, Any], palette: Palette, width: int = 80) -> DialogText:
    """Return the rows of a server's question: who asks, its message, and all fields or the address.

    Args:
        server: The name of the server, as the user configured it.
        arguments: The message, and the form or the address.
        palette: The colours.
        width: The columns of the screen.
    """
    fields = fields_of(arguments)
    rows = _quote_lines(str(arguments.get("message", "")))
    rows += [f"open {mark_text(str(arguments['url']))}"] if arguments.get("url") else []
    for field in fields:
        rows += [f"{mark_text(field.name)}: {field.hint}", *_quote_lines(_description(field))]
    warning = _warning(arguments, fields)
    choices = "  y I have opened it · n no" if arguments.get("url") else "  y fill in the form · n no"
    deciding = [f"  {palette.paint(row, 'yellow')}" for row in wrap_rows(warning, max(width - 4, 20))]
    choices = choices if fields or arguments.get("url") else "  y yes · n no"
    heading = f"The MCP server {mark_text(server)} asks:"
    return _dialog(heading, [*rows, *warning], choices, palette, width, deciding)


def _dialog(
    heading: str, rows: Iterable[str], choices: str, palette: Palette, width: int, deciding: Sequence[str] = ()
) -> DialogText:
    body = [f"  {row}" for row in wrap_rows(rows, max(width - 4, 20))]
    return DialogText([palette.paint(heading, "bold", "yellow")], body, [*deciding], [choices])


def field_text(server: str, field: Field, place: str, palette: Palette, width: int = 80) -> DialogText:
    """Return the rows of the question for one field."""
    rows = [*_quote_lines(_description(field)), field.hint, *_warning({}, [field])]
    heading = f"{mark_text(server)} asks for {mark_text(field.name)} ({place})"
    return _dialog(heading[: max(width - 1, 20)], rows, "  Esc declines", palette, width)


def sending_text(server: str, content: Mapping[str, Any], palette: Palette, width: int = 80) -> DialogText:
    """Return the rows of the last question: exactly what would be sent."""
    values = [
        f"{mark_text(name)}: {mark_text(json.dumps(value, ensure_ascii=False))}" for name, value in content.items()
    ]
    heading = f"Send this to the MCP server {mark_text(server)}?"
    return _dialog(heading, values or ["nothing was filled in"], "  y send · n no", palette, width)


def _quote_lines(text: str) -> list[str]:
    """Mark each line of a server's text, so that it cannot look like a row of the dialog."""
    return [f"│ {mark_text(line)}" for line in text.split("\n")] if text else []


def _description(field: Field) -> str:
    return "\n".join(str(field.schema[key]) for key in ("title", "description") if field.schema.get(key))


def _warning(arguments: Mapping[str, Any], fields: Sequence[Field]) -> list[str]:
    texts = [str(arguments.get("message", "")), *(f"{field.name} {_description(field)}" for field in fields)]
    secret = any(field.schema.get("format") == "password" for field in fields)
    return [_WARNING] if secret or any(_CREDENTIAL.search(_plain(text)) for text in texts) else []


def _plain(text: str) -> str:
    """Return a text as it looks: without hidden characters, separators and other spellings of letters."""
    shown = "".join(character for character in unicodedata.normalize("NFKC", text) if character.isprintable())
    spaced = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", shown)
    return re.sub(r"[\s_.\-]+", " ", spaced).casefold()
