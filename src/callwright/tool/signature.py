"""Reads a function's signature and docstring (Google, NumPy or Sphinx style) into the shape of a tool."""

import inspect
import re
import types
from collections import deque
from collections.abc import Callable, Mapping
from functools import partial
from inspect import cleandoc
from typing import Annotated, Any, ForwardRef, Literal, Union, Unpack, cast, get_args, get_origin, get_type_hints

from callwright.core._fast import field, slotted
from callwright.core.errors import UsageError
from callwright.tool.base import ToolContext

_SECTIONS = (
    *("Args", "Arguments", "Parameters", "Params", "Other Parameters", "Attributes", "Receives"),
    *("Returns", "Yields", "Raises", "Exceptions", "Except", "Warns"),
)
_SECTION = rf":(?:param|type|returns?|rtype|raises)\b|(?:{'|'.join(_SECTIONS)})\s*:?\s*\n"


def has_description(text: str | None) -> bool:
    """Whether a docstring describes the tool itself, not only its parameters."""
    begun = (text or "").lstrip()
    if not begun.startswith((":", *_SECTIONS)):  # most do not, and compiling the pattern takes longer than defining one
        return bool(begun)
    return re.match(_SECTION, begun) is None


def read_docstring(text: str | None) -> tuple[str, Mapping[str, str]]:
    """Split a docstring into the description of the tool and those of its parameters."""
    if not text:
        return "", {}
    cleaned = cleandoc(text)
    if "\n" not in cleaned:  # the parser costs more than defining the tool, and one line has nothing to parse
        return cleaned, {}
    from docstring_parser import DocstringStyle, parse

    parsed = parse(cleaned)
    described: dict[str, str] = {}
    for item in parsed.params:
        words = " ".join((item.description or "").split())
        # NumPy style may describe several parameters at once: `x, y : int`
        described |= {name.strip().lstrip("*"): words for name in item.arg_name.split(",") if words}
    if parsed.style in (DocstringStyle.GOOGLE, DocstringStyle.NUMPYDOC):
        return _cut_sections(cleaned, underlined=parsed.style is DocstringStyle.NUMPYDOC), described
    between = "\n\n" if parsed.blank_after_short_description else "\n"
    return between.join(part for part in (parsed.short_description, parsed.long_description) if part), described


def _cut_sections(text: str, *, underlined: bool) -> str:
    """Return a docstring without its sections on parameters, results and errors; notes and examples are for the model.

    Args:
        text: The docstring, without its indentation.
        underlined: Whether sections have a line of dashes under their title, as in NumPy style, and not a colon.
    """
    kept, cut = list[str](), False
    lines = text.splitlines()
    for line, below in zip(lines, (*lines[1:], ""), strict=True):
        title = line.rstrip()
        if underlined and below.startswith("---"):
            cut = title in _SECTIONS
        elif not underlined and not line[:1].isspace() and title:
            cut = title.endswith(":") and title[:-1] in _SECTIONS
        if not cut:
            kept.append(line)
    return re.sub(r"\n{3,}", "\n\n", "\n".join(kept)).strip()


MISSING = inspect.Parameter.empty
_WRAPPED = {inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD}
"""What a function that passes everything on to another one has."""


@slotted
class Parameter:
    """One argument of a function tool."""

    name: str
    annotation: object
    default: object = MISSING
    factory: Callable[[], object] | None = None
    filled: bool = False
    """Whether the parser fills in the default, because the function cannot."""
    aliases: tuple[str, ...] = ()

    @property
    def required(self) -> bool:
        return self.default is MISSING and self.factory is None


@slotted
class FunctionShape:
    """A function's arguments, its context parameter and its return annotation."""

    function: str
    parameters: list[Parameter] = field(default_factory=list[Parameter])
    positional: tuple[str, ...] = ()
    """Names of positional-only parameters, in order; the context may be among them."""
    context: str = ""
    method: bool = False
    """Whether it is defined in a class and must be bound to an instance."""
    returns: object = MISSING


def innermost(function: Callable[..., object]) -> Any:
    """Return the function as written in source: without partials, and `__call__` of a callable object."""
    target: Any = function
    while isinstance(target, partial):
        target = cast("partial[Any]", target).func
    target = inspect.unwrap(target)
    return target if inspect.isroutine(target) else type(target).__call__


def read_signature(function: Callable[..., object]) -> FunctionShape:
    """Read the signature of a function.

    Raises:
        UsageError: A model could not fill in a parameter.
    """
    target = innermost(function)
    name = getattr(target, "__qualname__", type(function).__qualname__)
    hints = _hints(target, name)
    shape = FunctionShape(name, returns=hints.get("return", MISSING))
    fixed, parameters = _find_bound_names(function), _parameters(function)
    if {parameter.kind for parameter in parameters} >= _WRAPPED:
        reason = "*args and **kwargs cannot be described to a model"
        raise UsageError(f"{name}: {reason}; if it wraps a function, decorate it with functools.wraps, else name them")
    for at, parameter in enumerate(parameters):
        if at == 0 and parameter.name in ("self", "cls") and parameter.name not in hints and _in_class(name):
            shape.method = True
        elif parameter.name not in fixed:
            _add(shape, parameter, hints)
    return shape


def _add(shape: FunctionShape, parameter: inspect.Parameter, hints: Mapping[str, object]) -> None:
    name = parameter.name
    _refuse_variadic(shape.function, parameter, hints.get(name, MISSING))
    if name not in hints:
        raise UsageError(f"{shape.function}: parameter {name!r} has no annotation; write {name}: str")
    positional = parameter.kind is inspect.Parameter.POSITIONAL_ONLY
    if positional:
        shape.positional = (*shape.positional, name)
    if _is_context(hints[name]):
        if shape.context:
            raise UsageError(f"{shape.function}: {shape.context!r} and {name!r} are both the context; keep one of them")
        shape.context = name
        return
    # a gap between positional arguments can only be closed by filling in the default
    filled = positional and parameter.default is not MISSING
    filled = filled or is_mutable(parameter.default)  # else one call would change it for the next
    shape.parameters.append(Parameter(name, hints[name], parameter.default, filled=filled))


_UNCHANGING = frozenset({str, int, float, bool, bytes, type, type(None)})  # MISSING is a type


def is_mutable(default: object) -> bool:
    """Whether a default can be changed by the function that gets it: a list, a dataclass, a tuple with one in it.

    A dataclass without fields has nothing to change: it says that no value was given, and functions compare it.
    """
    kind = type(default)
    if kind in _UNCHANGING:
        return False
    if isinstance(default, tuple):
        return any(map(is_mutable, cast("tuple[object, ...]", default)))
    if isinstance(default, (list, dict, set, deque)) or hasattr(kind, "__pydantic_fields__"):
        return True
    fields: Mapping[str, object] | None = getattr(kind, "__dataclass_fields__", None)
    if not fields:
        return False
    frozen: bool = cast("Any", kind).__dataclass_params__.frozen
    return not frozen or any(is_mutable(getattr(default, name, None)) for name in fields)


def _is_context(annotation: object) -> bool:
    if type(annotation) is type:  # most annotations, and the quickest answer
        return annotation is ToolContext
    if get_origin(annotation) is Annotated:
        return _is_context(get_args(annotation)[0])
    return get_origin(annotation) in (Union, types.UnionType) and ToolContext in get_args(annotation)


def _in_class(name: str) -> bool:
    outside = name.rpartition(".")[0]
    return bool(outside) and not outside.endswith("<locals>")


def _find_bound_names(function: Callable[..., object]) -> set[str]:
    """Return the names that `functools.partial` has bound; they are hidden from the model."""
    settled: set[str] = set()
    while isinstance(function, partial):
        settled |= function.keywords.keys()
        function = function.func
    return settled


def _parameters(function: Callable[..., object]) -> list[inspect.Parameter]:
    try:
        return list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError) as error:
        if isinstance(function, partial):
            raise UsageError(f"{function!r} has arguments that its function does not take; leave them out") from error
        raise UsageError(f"{function!r} has no readable signature; wrap it in a function with annotations") from error


def _hints(target: Any, name: str) -> Mapping[str, object]:
    plain = cast("dict[str, object]", getattr(target, "__annotations__", {}))
    if not any(_is_unresolved(value) for value in plain.values()):
        return plain  # nothing to resolve, and resolving costs more than the rest
    try:
        try:
            return get_type_hints(target, include_extras=True)
        except NameError:  # perhaps a name that is local to where the tool is defined
            return get_type_hints(target, localns=_surroundings(), include_extras=True)
    except NameError as error:
        raise UsageError(
            f"{name}: annotation {error.name!r} is not defined where the tool is; import it there"
        ) from error
    except (SyntaxError, TypeError, AttributeError) as error:
        raise UsageError(f"{name}: an annotation cannot be read: {error}") from error


def _is_unresolved(annotation: object) -> bool:
    if type(annotation) is type:  # most annotations, and the quickest answer
        return False
    if isinstance(annotation, (str, ForwardRef)):
        return True
    if getattr(annotation, "__origin__", None) is Literal:
        return False
    return any(_is_unresolved(part) for part in getattr(annotation, "__args__", ()))


def _surroundings() -> dict[str, Any]:
    """Return the local names where the tool is defined: of the class body and the function around it."""
    frame = inspect.currentframe()
    while frame is not None and str(frame.f_globals.get("__name__", "")).startswith("callwright.tool."):
        frame = frame.f_back
    names: dict[str, Any] = {}
    while frame is not None:
        names = {**frame.f_locals, **names}
        if "__qualname__" not in frame.f_locals:
            break
        frame = frame.f_back
    return names


def _refuse_variadic(name: str, parameter: inspect.Parameter, annotation: object) -> None:
    kind = "str" if annotation is MISSING else inspect.formatannotation(annotation)
    if parameter.kind is inspect.Parameter.VAR_POSITIONAL:
        fix = f"write {parameter.name}: list[{kind}]"
    elif get_origin(annotation) is Unpack:
        fix = f"write {parameter.name}: {get_args(annotation)[0].__name__}"
    elif parameter.kind is inspect.Parameter.VAR_KEYWORD:
        fix = f"write {parameter.name}: dict[str, {kind}]"
    else:
        return
    raise UsageError(f"{name}: parameter '{parameter}' cannot be described to a model; {fix} instead")
