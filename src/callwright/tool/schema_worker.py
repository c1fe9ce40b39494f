"""Checks one value against one schema: a script that `ForeignSchema` runs as a process of its own.

The job comes in on standard input as `[schema, value]`; the answer is a list of `[path, message]`, or a text that says
why the schema is not valid. The path of jsonschema_rs is the first argument.
"""

import sys
from contextlib import suppress

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NoReturn

PATTERN_LIMITS = {"backtrack_limit": 10_000, "size_limit": 1 << 20, "dfa_size_limit": 1 << 20}
"""Limits of one pattern: steps back, and bytes of its compiled form."""
_MEMORY_BYTES = 512 << 20
_SHOWN_ERRORS = 8
_PLACE_CHARS = 200


def main() -> None:
    """Answer one job."""
    import json  # by the process only: tools take the validator from here

    with suppress(ModuleNotFoundError, OSError, ValueError):  # not every system has this limit
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (_MEMORY_BYTES, _MEMORY_BYTES))
    sys.path.append(sys.argv[1])
    schema, value = json.load(sys.stdin)
    json.dump(_check(schema, value), sys.stdout)


def _check(schema: "Any", value: "Any") -> "list[tuple[list[Any], str]] | str":
    try:
        validator = make_validator(schema)
    except ValueError as error:
        return str(error)
    if validator.is_valid(value):
        return []
    found: list[tuple[list[Any], str]] = []
    for error in validator.iter_errors(value):
        found.append((list(error.instance_path), str(error.message)[:2_000]))
        if len(found) == _SHOWN_ERRORS:
            break
    return found


def make_validator(schema: "Any", *, bounded: bool = True) -> "Any":
    """Return a validator.

    Args:
        schema: The schema.
        bounded: Whether its patterns have limits, because another program wrote it.

    Raises:
        ValueError: It is not a valid JSON Schema; the message is one line, with the place of the fault.
    """
    import jsonschema_rs

    options: Any = {"pattern_options": jsonschema_rs.FancyRegexOptions(**PATTERN_LIMITS)} if bounded else {}
    try:
        return jsonschema_rs.validator_for(schema, retriever=_retrieve_nothing, **options)
    except (ValueError, jsonschema_rs.ValidationError, jsonschema_rs.ReferencingError) as error:
        place = ".".join(map(str, getattr(error, "instance_path", ())))[:_PLACE_CHARS]
        raise ValueError(": ".join(filter(None, (place, str(error).splitlines()[0])))) from error


def _retrieve_nothing(uri: str) -> "NoReturn":
    raise ValueError(f"schemas are not fetched, so the reference {uri} leads nowhere; put it under $defs")


if __name__ == "__main__":
    main()
