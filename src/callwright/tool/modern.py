"""TypedDicts of the standard library in the form pydantic wants before Python 3.12."""

import sys
import typing
from types import GenericAlias, UnionType
from typing import Any, cast, get_args, get_origin, get_type_hints

import typing_extensions


def modern(annotation: object, above: tuple[object, ...] = ()) -> object:
    """The same annotation with every `typing.TypedDict` in it made anew by `typing_extensions`."""
    if sys.version_info >= (3, 12):
        return annotation
    if typing.is_typeddict(cast(Any, annotation)) and type(annotation).__module__ == "typing":
        if annotation in above:
            raise TypeError("a TypedDict that holds itself must come from typing_extensions before Python 3.12")
        return _rebuilt(annotation, (*above, annotation))
    parts = cast("tuple[object, ...]", getattr(annotation, "__args__", ()))
    newer = tuple(modern(part, above) for part in parts)
    if all(a is b for a, b in zip(parts, newer, strict=True)):
        return annotation
    if isinstance(annotation, UnionType):
        return typing.Union[newer]  # noqa: UP007 - made of parts known only now
    if isinstance(annotation, GenericAlias):
        return GenericAlias(cast(Any, annotation.__origin__), newer)
    return cast(Any, annotation).copy_with(newer)


def _rebuilt(annotation: Any, above: tuple[object, ...]) -> object:
    fields: dict[str, Any] = {}
    for name, hint in get_type_hints(annotation, include_extras=True).items():
        if get_origin(hint) in (typing.Required, typing.NotRequired):
            hint = get_args(hint)[0]
        inner = modern(hint, above)
        wrap = typing_extensions.Required if name in annotation.__required_keys__ else typing_extensions.NotRequired
        fields[name] = wrap[cast(Any, inner)]
    made: Any = typing_extensions.TypedDict(annotation.__name__, fields)  # type: ignore[misc] - fields known only now
    made.__doc__, made.__module__ = annotation.__doc__, annotation.__module__
    return made
