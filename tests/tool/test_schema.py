"""The JSON Schema of a tool: compact, deterministic, immutable, and faithful to every kind of annotation."""

import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, IntEnum, StrEnum
from typing import Annotated, Any, Literal, NamedTuple, NotRequired, Optional, Required, TypedDict, cast

import pytest
import typing_extensions
from pydantic import BaseModel, ConfigDict, Discriminator, Field, Tag

from callwright import (
    Annotations,
    Arguments,
    Effect,
    InvalidArguments,
    Registry,
    SchemaTool,
    ToolContext,
    ToolSpec,
    TypedTool,
    UsageError,
    tool,
)
from callwright.core.json import canonical, compact
from callwright.tool.function import FunctionTool
from callwright.tool.typed import describe


class ReadFileArgs(Arguments):
    path: str
    """File path relative to the project root."""


class ReadFile(TypedTool[ReadFileArgs]):
    spec = describe("read_file", "Read a file.")

    async def run(self, arguments: ReadFileArgs, context: ToolContext) -> str:
        return arguments.path


READ_FILE_SCHEMA = {
    "type": "object",
    "properties": {"path": {"type": "string", "description": "File path relative to the project root."}},
    "required": ["path"],
}


def _echo(arguments: Any) -> Any:
    return arguments


def _first(arguments: Any) -> Any:
    return arguments["a"]


def _popping(arguments: Any) -> Any:
    return arguments.pop("a")


def properties_of(made: FunctionTool) -> Any:
    return made.spec.input_schema["properties"]


def test_read_file_schema_is_exact() -> None:
    assert ReadFile.spec.input_schema == READ_FILE_SCHEMA

    @tool
    def read_file(path: str) -> str:
        """Read a file.

        Args:
            path: File path relative to the project root.
        """
        return path

    assert read_file.spec.input_schema == READ_FILE_SCHEMA
    assert compact(read_file.spec.input_schema) == compact(READ_FILE_SCHEMA)


class Unit(Enum):
    CELSIUS = "C"
    FAHRENHEIT = "F"


class Level(IntEnum):
    """How loud."""

    LOW = 1
    HIGH = 2


class Shade(StrEnum):
    DARK = "dark"


class Point(BaseModel):
    """A place."""

    x: int
    y: int = 0


@dataclass
class Box:
    corner: Point
    size: float = 1.0


class Options(TypedDict):
    depth: int
    hidden: NotRequired[bool]


class QuotedOptions(TypedDict):  # as all annotations are after `from __future__ import annotations`
    depth: "int"
    hidden: "NotRequired[bool]"


class QuotedChoices(TypedDict, total=False):
    depth: "Required[int]"
    hidden: "bool"


class Pair(NamedTuple):
    left: int
    right: str


class Node(BaseModel):
    value: int
    children: list["Node"] = []


class Circle(BaseModel):
    kind: Literal["circle"]
    radius: float


class Square(BaseModel):
    kind: Literal["square"]


CIRCLE = {
    "type": "object",
    "properties": {"kind": {"const": "circle", "type": "string"}, "radius": {"type": "number"}},
    "required": ["kind", "radius"],
}
SQUARE = {
    "type": "object",
    "properties": {"kind": {"const": "square", "type": "string"}},
    "required": ["kind"],
}
POINT = {
    "type": "object",
    "description": "A place.",
    "properties": {"x": {"type": "integer"}, "y": {"type": "integer", "default": 0}},
    "required": ["x"],
}


@pytest.mark.parametrize(
    ("annotation", "schema"),
    [
        (str, {"type": "string"}),
        (float, {"type": "number"}),
        (Any, {}),
        (list, {"type": "array", "items": {}}),
        (dict[str, Any], {"type": "object", "additionalProperties": True}),
        (Sequence[int], {"type": "array", "items": {"type": "integer"}}),
        (Mapping[str, bool], {"type": "object", "additionalProperties": {"type": "boolean"}}),
        (Literal["a", "b"], {"enum": ["a", "b"], "type": "string"}),
        (Literal["only"], {"const": "only", "type": "string"}),
        (Unit, {"enum": ["C", "F"], "type": "string"}),
        (Level, {"enum": [1, 2], "type": "integer", "description": "How loud."}),
        (Shade, {"enum": ["dark"], "type": "string"}),
        (Optional[int], {"anyOf": [{"type": "integer"}, {"type": "null"}]}),  # noqa: UP045 - the older spelling
        (None | int, {"anyOf": [{"type": "integer"}, {"type": "null"}]}),
        (int | str, {"anyOf": [{"type": "integer"}, {"type": "string"}]}),
        (Point, POINT),
        (list[Point], {"type": "array", "items": POINT}),
        (
            Box,
            {
                "type": "object",
                "properties": {"corner": POINT, "size": {"type": "number", "default": 1.0}},
                "required": ["corner"],
            },
        ),
        (
            Options,
            {
                "type": "object",
                "properties": {"depth": {"type": "integer"}, "hidden": {"type": "boolean"}},
                "required": ["depth"],
            },
        ),
        (
            QuotedOptions,
            {
                "type": "object",
                "properties": {"depth": {"type": "integer"}, "hidden": {"type": "boolean"}},
                "required": ["depth"],
            },
        ),
        (
            QuotedChoices,
            {
                "type": "object",
                "properties": {"depth": {"type": "integer"}, "hidden": {"type": "boolean"}},
                "required": ["depth"],
            },
        ),
        (Annotated[int, Field(ge=1, le=9)], {"type": "integer", "minimum": 1, "maximum": 9}),
        (Annotated[str, Field(description="A word.")], {"type": "string", "description": "A word."}),
        (Annotated[str, "A word."], {"type": "string", "description": "A word."}),
        (Annotated[str, "A note.", Field(description="A word.")], {"type": "string", "description": "A word."}),
        (Annotated[Circle | Square, Field(discriminator="kind")], {"oneOf": [CIRCLE, SQUARE]}),
    ],
)
def test_an_annotation_has_a_compact_schema(annotation: Any, schema: dict[str, Any]) -> None:
    def act(value: Any) -> None:
        """Act."""

    act.__annotations__["value"] = annotation
    assert properties_of(tool(act)) == {"value": schema}


def test_a_named_tuple_is_an_array_of_known_items() -> None:
    @tool
    def act(pair: Pair) -> str:
        """Act."""
        return f"{pair.left}{pair.right}"

    assert properties_of(act)["pair"]["type"] == "array"
    assert act.bind({"pair": [1, "a"]}).values == {"pair": Pair(1, "a")}


def test_only_recursive_models_keep_their_definition() -> None:
    @tool
    def act(tree: Node, other: Node, place: Point) -> str:
        """Act."""
        return f"{tree}{other}{place}"

    schema = act.spec.input_schema
    node: dict[str, Any] = {
        "type": "object",
        "properties": {
            "value": {"type": "integer"},
            "children": {"type": "array", "items": {"$ref": "#/$defs/Node"}, "default": []},
        },
        "required": ["value"],
    }
    assert schema["$defs"] == {"Node": node}
    assert properties_of(act) == {"tree": {"$ref": "#/$defs/Node"}, "other": {"$ref": "#/$defs/Node"}, "place": POINT}
    deep = {"value": 1, "children": [{"value": 2, "children": [{"value": 3}]}]}
    bound = act.bind({"tree": deep, "other": {"value": 0}, "place": {"x": 1}})
    assert bound.values["tree"].children[0].children[0].value == 3
    with pytest.raises(InvalidArguments, match=r"tree\.children\.0\.value: expected an integer, got \"x\""):
        act.bind({"tree": {"value": 1, "children": [{"value": "x"}]}, "other": {"value": 0}, "place": {"x": 1}})


def test_two_parameters_may_share_a_model() -> None:
    @tool
    def line(start: Point, end: Point, middle: Point | None = None) -> str:
        """Draw a line."""
        return f"{start}{end}{middle}"

    assert properties_of(line)["start"] == properties_of(line)["end"] == POINT
    assert line.bind({"start": {"x": 1}, "end": {"x": 2}}).values == {"start": Point(x=1), "end": Point(x=2)}


def test_defaults_are_listed_except_null() -> None:
    @tool
    def act(a: int = 5, b: str | None = None, c: bool = False, d: Unit = Unit.CELSIUS, e: str = "") -> str:
        """Act."""
        return f"{a}{b}{c}{d}{e}"

    defaults = {name: schema.get("default", "absent") for name, schema in properties_of(act).items()}
    assert defaults == {"a": 5, "b": "absent", "c": False, "d": "C", "e": ""}
    assert "required" not in act.spec.input_schema


def test_defaults_may_come_through_field() -> None:
    @tool
    def act(
        a: int = Field(5, ge=1),
        b: Annotated[int, Field(default=6)] = 7,
        c: Annotated[list[int], Field(default_factory=list)] = Field(max_length=3),  # noqa: B008 - the subject
        d: str = Field(description="Needed."),
        e: Annotated[int, Field(8)] = 9,
    ) -> str:
        """Act."""
        c.append(1)
        return f"{a}{b}{c}{d}{e}"

    schema = act.spec.input_schema
    assert schema["required"] == ["d"]
    assert [properties_of(act)[name].get("default") for name in "abcde"] == [5, 7, None, None, 9]
    assert act.bind({"d": ""}).values == {"a": 5, "c": [], "d": ""}
    assert act.bind({"d": ""}).arguments == {"a": 5, "b": 7, "c": [], "d": "", "e": 9}


async def test_a_default_factory_is_called_for_every_call(context: ToolContext) -> None:
    def act(items: list[int] = Field(default_factory=list)) -> int:  # noqa: B008 - the subject
        """Act."""
        items.append(1)
        return len(items)

    made = tool(act)
    assert [await made.bind({}).run(context) for _ in range(3)] == [1, 1, 1]


async def test_field_default_is_filled_in(context: ToolContext) -> None:
    def act(value: Any) -> Any:
        """Act."""
        return value

    act.__annotations__["value"] = Annotated[int, Field(default=5)]
    made = tool(act)
    assert "required" not in made.spec.input_schema
    assert await made.bind({}).run(context) == 5


def test_description_precedence_is_field_docstring_class() -> None:
    @tool
    def act(a: Annotated[int, Field(description="From field.")], b: Point, c: int) -> str:
        """Act.

        Args:
            a: From docstring.
            b: From docstring.
        """
        return f"{a}{b}{c}"

    described = {name: schema.get("description") for name, schema in properties_of(act).items()}
    assert described == {"a": "From field.", "b": "From docstring.", "c": None}


GOOGLE = """Copy a file.

    Keeps the original.

    Args:
        source (str): Where it is,
            in the project.
        target: Where it goes.

    Returns:
        A message.
    """
NUMPY = """Copy a file.

    Keeps the original.

    Parameters
    ----------
    source : str
        Where it is,
        in the project.
    target : str
        Where it goes.

    Returns
    -------
    str
        A message.
    """
SPHINX = """Copy a file.

    Keeps the original.

    :param source: Where it is,
        in the project.
    :param target: Where it goes.
    :returns: A message.
    """


@pytest.mark.parametrize("docstring", [GOOGLE, NUMPY, SPHINX], ids=["google", "numpy", "sphinx"])
def test_every_docstring_style_describes_tool_and_parameters(docstring: str) -> None:
    def copy(source: str, target: str) -> str:
        return source + target

    copy.__doc__ = docstring
    made = tool(copy)
    assert made.spec.description == "Copy a file.\n\nKeeps the original."
    assert properties_of(made)["source"]["description"] == "Where it is, in the project."
    assert properties_of(made)["target"]["description"] == "Where it goes."


_WORDS = "Copy a file\nand keep it."
_GOOGLE_NOTES = f"{_WORDS}\n\nArgs:\n    source: Where it is.\n\nNote:\n    Never twice.\n\nExample:\n    copy('a')\n"
_GOOGLE_KEPT = "\n\nNote:\n    Never twice.\n\nExample:\n    copy('a')"
_NUMPY_NOTES = f"{_WORDS}\n\nParameters\n----------\nsource : str\n    Where it is.\n\nNotes\n-----\nNever twice.\n"
_NUMPY_OTHERS = (
    f"{_WORDS}\n\nOther Parameters\n----------------\nsource : str\n    Where it is.\n\n"
    "Warns\n-----\nUserWarning\n    If it is old.\n\nNotes\n-----\nNever twice.\n"
)
_SPHINX_NOTES = f"{_WORDS}\n\n:param source: Where it is.\n"


@pytest.mark.parametrize(
    ("docstring", "notes"),
    [
        (_GOOGLE_NOTES, _GOOGLE_KEPT),
        (_GOOGLE_NOTES + "\nExceptions:\n    OSError: It is gone.\n", _GOOGLE_KEPT),
        (_NUMPY_NOTES, "\n\nNotes\n-----\nNever twice."),
        (_NUMPY_OTHERS, "\n\nNotes\n-----\nNever twice."),
        (_SPHINX_NOTES, ""),
    ],
    ids=["google", "google-exceptions", "numpy", "numpy-others", "sphinx"],
)
def test_notes_and_examples_of_a_docstring_reach_the_model_and_lines_stay_together(docstring: str, notes: str) -> None:
    def copy(source: str) -> str:
        return source

    copy.__doc__ = docstring
    assert tool(copy).spec.description == _WORDS + notes
    assert properties_of(tool(copy))["source"]["description"] == "Where it is."


def test_numpy_style_describes_several_parameters() -> None:
    @tool
    def add(x: int, y: int) -> int:
        """Add numbers.

        Parameters
        ----------
        x, y : int
            A number.
        """
        return x + y

    assert properties_of(add)["x"] == properties_of(add)["y"] == {"type": "integer", "description": "A number."}


class Odd(BaseModel):
    model_config = ConfigDict(populate_by_name=True)

    pattern: str = "x"
    title: str = "t"
    format: str | None = None
    default: int = 1
    ref: str = Field("r", alias="$ref")
    properties: dict[str, int] = {}


def test_properties_with_the_names_of_keywords_survive() -> None:
    @tool
    def direct(pattern: str, title: str, format: str, default: int, required: bool, enum: str, const: str) -> str:  # noqa: A002 - the subject
        """Act."""
        return f"{pattern}{title}{format}{default}{required}{enum}{const}"

    @tool
    def nested(odd: Odd, title: Annotated[str, Field(description="A title.")]) -> str:
        """Act."""
        return f"{odd}{title}"

    assert list(properties_of(direct)) == ["pattern", "title", "format", "default", "required", "enum", "const"]
    assert list(properties_of(nested)) == ["odd", "title"]
    assert list(properties_of(nested)["odd"]["properties"]) == [
        "pattern",
        "title",
        "format",
        "default",
        "$ref",
        "properties",
    ]
    assert "title" not in properties_of(nested)["odd"]


def test_no_title_and_no_schema_keyword_is_left() -> None:
    text = compact(ReadFile.spec.input_schema) + compact(tool(_busy).spec.input_schema)
    assert '"title"' not in text
    assert "$schema" not in text
    assert "$defs" not in text


def _busy(point: Point, box: Box, options: Options, unit: Unit, number: Annotated[int, Field(ge=1)] = 1) -> str:
    """Be busy."""
    return f"{point}{box}{options}{unit}{number}"


def test_schemas_are_immutable_and_cached() -> None:
    made = tool(_busy)
    schema: Any = made.spec.input_schema
    assert made.spec is made.spec
    for change in (
        lambda: schema.update(a=1),
        lambda: schema["properties"].pop("point"),
        lambda: schema["required"].append("x"),
        schema["properties"]["unit"]["enum"].sort,
        lambda: schema["properties"]["unit"].__setitem__("type", "x"),
    ):
        with pytest.raises(TypeError, match="immutable"):
            change()
    with pytest.raises(AttributeError):
        made.spec.name = "other"  # type: ignore[misc] - that it is refused is the point


def test_renaming_a_parameter_renames_it_in_the_schema() -> None:
    def before(path: str) -> None:
        """Act."""

    def after(file_path: str) -> None:
        """Act."""

    assert list(properties_of(tool(before))) == ["path"]
    assert list(properties_of(tool(after))) == ["file_path"]


SEEDED = """
from typing import Annotated, Literal
from pydantic import BaseModel, Field
from callwright import tool
from callwright.core.json import compact
class Inner(BaseModel):
    tags: set[str] = {"one", "two", "three", "four"}
class Tree(BaseModel):
    kind: Literal["a", "b"]
    below: list["Tree"] = []
@tool
def act(
    inner: Inner, tree: Tree, names: set[str] = {"x", "yy", "zzz"}, deep: Annotated[int | None, Field(ge=1)] = None
) -> dict[str, int]:
    "Act."
print(compact(act.spec.input_schema), compact(act.spec.output_schema))
"""


@pytest.mark.slow
def test_schemas_are_the_same_in_every_process() -> None:
    seen = {
        subprocess.run(
            [sys.executable, "-c", SEEDED], env={"PYTHONHASHSEED": seed}, capture_output=True, text=True, check=True
        ).stdout
        for seed in ("0", "1", "2")
    }
    assert len(seen) == 1


def test_common_annotations_do_not_import_pydantic() -> None:
    program = (
        "import sys\nfrom typing import Literal\nfrom callwright import tool\n"
        "@tool\ndef f(a: str, b: int | None = None, c: Literal['x', 'y'] = 'x', d: list[str] | None = None, /): 'Do.'\n"
        "f.bind({'a': ''}); f.spec; print('pydantic' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


CALL_THEN_IMPORT_PYDANTIC = """
from callwright import tool
from callwright.tool import validators

@tool
def add(count: int) -> int:
    "Add one."
    return count + 1

print(add.bind('{"count": 41}').values, "pydantic_core" in sys.modules)
import pydantic, pydantic_core
assert all(getattr(pydantic_core, name) is getattr(validators, name) for name in NAMES), "two kinds of the same class"
assert pydantic_core._pydantic_core.ValidationError is validators.ValidationError

class Point(pydantic.BaseModel):
    x: int

try:
    Point.model_validate({"x": "much"})
except validators.ValidationError as error:
    print(error.error_count(), pydantic.TypeAdapter(Point).validate_python({"x": 1}))
"""
SAME_CLASSES = ("SchemaValidator", "ValidationError", "PydanticSerializationError")
NOT_ON_THE_PATH = """
import importlib.machinery
find = importlib.machinery.PathFinder.find_spec

class Bundled:
    find_spec = staticmethod(find)

class Elsewhere:
    @staticmethod
    def find_spec(name, path=None, target=None):
        return None if name == MISSING else find(name, path, target)

sys.meta_path.append(Bundled)
importlib.machinery.PathFinder.find_spec = Elsewhere.find_spec
"""


@pytest.mark.parametrize(
    ("before", "loaded"),
    [
        ("", False),
        ("import pydantic_core", True),
        ("MISSING = 'pydantic_core'" + NOT_ON_THE_PATH, True),
        ("MISSING = 'pydantic_core._pydantic_core'" + NOT_ON_THE_PATH, True),
    ],
    ids=["alone", "loaded before", "package elsewhere", "module elsewhere"],
)
def test_compiled_core_is_loaded_alone_where_possible_and_is_the_same_as_the_package_has(
    before: str, loaded: bool
) -> None:
    program = f"import sys\nNAMES = {SAME_CLASSES}\n{before}\n{CALL_THEN_IMPORT_PYDANTIC}"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.stdout.splitlines(), done.stderr) == ([f"{{'count': 41}} {loaded}", "1 x=1"], "")


def test_string_annotations_resolve_local_names() -> None:
    class Local(BaseModel):
        a: int

    def define(source: str) -> FunctionTool:
        space: dict[str, Any] = {"tool": tool}
        exec(f"from __future__ import annotations\nfrom typing import Optional\n{source}", space)
        return space["f"]

    made = define("@tool\ndef f(a: Optional[int], b: list[str] = []) -> dict[str, int]: 'Do.'")
    assert properties_of(made)["a"] == {"anyOf": [{"type": "integer"}, {"type": "null"}]}

    @tool
    def local(value: "Local", more: "list[Local] | None" = None, others: list["Local"] = []) -> str:  # noqa: B006 - never changed
        """Act."""
        return f"{value}{more}{others}"

    assert local.bind({"value": {"a": 1}}).values == {"value": Local(a=1), "others": []}


class Plain(BaseModel):
    a: int
    b: int = 0


class PlainTool(TypedTool[Plain]):
    spec = describe("plain", "Take plain arguments.", aliases=["simple"])

    async def run(self, arguments: Plain, context: ToolContext) -> object:
        return arguments


async def test_a_typed_tool_receives_its_typed_arguments(context: ToolContext) -> None:
    invocation = PlainTool().bind('{"a": 1}')
    assert await invocation.run(context) == Plain(a=1)
    assert invocation.arguments == {"a": 1, "b": 0}
    assert PlainTool.contract().spec is PlainTool().spec
    assert PlainTool().spec.name == "plain"


def test_typed_tool_refuses_unknown_fields_by_default() -> None:
    with pytest.raises(InvalidArguments, match="c: unknown field; known are a, b"):
        PlainTool().bind({"a": 1, "c": 2})


class Open(BaseModel):
    model_config = ConfigDict(extra="allow")
    a: int


class OpenTool(TypedTool[Open]):
    spec = describe("open", "Take anything more.")


def test_model_with_extra_allow_keeps_its_setting() -> None:
    assert OpenTool().bind({"a": 1, "b": 2}).arguments == {"a": 1, "b": 2}


class Silent(BaseModel):
    a: int = 0
    inner: list["Silent"] = []


class SilentKeys(typing_extensions.TypedDict, total=False):
    a: int


@dataclass
class SilentData:
    a: int = 0


class Careless(BaseModel):
    model_config = ConfigDict(extra="ignore")
    a: int = 0


class Mixed(BaseModel):
    open: Open = Open(a=1)
    careless: Careless = Careless()
    silent: Annotated[Annotated[Silent, Tag("one")] | Annotated[SilentData, Tag("two")], Discriminator(lambda _: "one")]
    keys: SilentKeys = {}
    data: SilentData = SilentData()


class MixedTool(TypedTool[Mixed]):
    spec = describe("mixed", "Take anything more in one part.")


@pytest.mark.parametrize(
    ("given", "unknown"),
    [
        ({"b": 1}, "b"),
        ({"silent": {"b": 1}}, "silent.b"),
        ({"silent": {"inner": [{"b": 1}]}}, "silent.inner.0.b"),
        ({"keys": {"b": 1}}, "keys.b"),
        ({"data": {"b": 1}}, "data.b"),
        ({"open": {"a": 1, "b": 2}, "careless": {"b": 1}}, ""),
    ],
)
def test_model_with_extra_allow_opens_no_other(given: dict[str, Any], unknown: str) -> None:
    @tool
    def act(mixed: Mixed) -> str:
        """Act."""
        return str(mixed)

    whole = {"silent": {"inner": [{"a": 2}]}, **given}
    if unknown:
        with pytest.raises(InvalidArguments, match=f"arguments: {unknown}: unknown field"):
            MixedTool().bind(whole)
        with pytest.raises(InvalidArguments, match=f"mixed.{unknown}: unknown field"):
            act.bind({"mixed": whole})
    else:
        for made in (MixedTool().bind(whole).given, act.bind({"mixed": whole}).values["mixed"]):
            assert made.open.model_extra == {"b": 2} and made.silent == Silent(inner=[Silent(a=2)])


class Aliased(Arguments):
    path: str = Field(alias="filePath")
    count: int = Field(1, validation_alias="how_many")


class AliasedTool(TypedTool[Aliased]):
    spec = describe("aliased", "Take an alias.")


def test_an_argument_may_be_given_by_its_alias_or_its_name() -> None:
    assert AliasedTool().bind({"filePath": "x"}).given.path == "x"
    assert AliasedTool().bind({"path": "x", "how_many": 3}).given == Aliased.model_validate(
        {"filePath": "x", "how_many": 3}
    )
    invocation = AliasedTool().bind({"filePath": "x", "how_many": 3})
    assert AliasedTool().bind(invocation.arguments).arguments == invocation.arguments

    @tool
    def act(path: Annotated[str, Field(alias="filePath")]) -> str:
        """Act."""
        return path

    assert list(properties_of(act)) == ["path"]
    assert act.bind({"path": "x"}).values == act.bind({"filePath": "x"}).values == {"path": "x"}


def test_incomplete_typed_tool_raises_usage_error() -> None:
    class NoSpec(TypedTool[Plain]):
        pass

    class NoArguments(TypedTool):  # type: ignore[type-arg] - that it is refused is the point
        spec = describe("x", "Nothing.")

    class Listed(TypedTool[list[int]]):
        spec = describe("x", "A list.")

    with pytest.raises(UsageError, match="NoSpec has no spec"):
        NoSpec().bind({})
    with pytest.raises(UsageError, match=r"NoSpec object at .* has no spec; write spec = describe"):
        Registry(cast(Any, NoSpec()))
    with pytest.raises(UsageError, match=r"describe\('x'\): aliases must be several names"):
        describe("x", "Nothing.", aliases="cat")
    with pytest.raises(UsageError, match="expected a function as the accesses of x, got 'a'"):
        SchemaTool(ToolSpec("x", "Nothing.", {"type": "object"}), print, accesses=cast(Any, "a"))
    with pytest.raises(UsageError, match="NoArguments does not name its arguments"):
        NoArguments().bind({})
    with pytest.raises(UsageError, match="Listed: arguments must be an object"):
        Listed().bind({})
    with pytest.raises(UsageError, match=r"Sync\.run must be async"):
        type("Sync", (TypedTool,), {"run": lambda self, arguments, context: None})  # type: ignore[no-untyped-def] - refused


async def test_a_typed_tool_inherits_arguments_and_spec(context: ToolContext) -> None:
    class Louder(PlainTool):
        async def run(self, arguments: Plain, context: ToolContext) -> object:
            return arguments.a * 100

    assert await Louder().bind({"a": 1}).run(context) == 100
    assert Louder().spec == PlainTool().spec


def test_hand_written_schema_is_unchanged() -> None:
    schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Kept",
        "type": "object",
        "properties": {"a": {"oneOf": [{"$ref": "#/$defs/n"}, {"type": "null"}]}, "b": {"pattern": "^x"}},
        "$defs": {"n": {"type": "integer", "multipleOf": 2}},
    }
    made = SchemaTool(ToolSpec("act", "Act.", schema), _echo)
    assert made.spec.input_schema == schema
    assert canonical(made.spec.input_schema) == canonical(schema)
    assert made.bind({"a": 4}).arguments == {"a": 4}
    for bad in ({"a": 3}, {"a": "4"}, {"b": "y"}):
        with pytest.raises(InvalidArguments):
            made.bind(bad)


def test_fault_of_a_schema_is_named_with_its_place() -> None:
    spec = ToolSpec("act", "Act.", {"type": "object", "properties": {"x": {"type": "strng"}}})
    with pytest.raises(
        UsageError, match=r'act: input_schema is not a JSON Schema: properties\.x\.type: "strng" is not'
    ):
        SchemaTool(spec, print)


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "strange"},
        {"$ref": "#/$defs/nowhere"},
        {"$ref": "http://127.0.0.1:9/x.json"},
        {"$ref": "file:///etc/hostname"},
        {"properties": {"a": {"pattern": "("}}},
    ],
)
def test_invalid_or_remote_schema_is_refused(schema: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match="act: input_schema is not a JSON Schema"):
        SchemaTool(ToolSpec("act", "Act.", schema), _echo)


@pytest.mark.parametrize("signature", ["", "a, b, c", "**named", "*, arguments"])
def test_handler_with_wrong_parameters_is_refused(signature: str) -> None:
    handler = eval(f"lambda {signature}: None")
    with pytest.raises(UsageError, match=r"write \(arguments\) or \(arguments, context\)"):
        SchemaTool(ToolSpec("act", "Act.", {"type": "object"}), handler)


def test_derived_spec_equals_a_hand_written_one() -> None:
    @tool(effect=Effect.READ, metadata={"team": "files"})
    def find(word: str) -> str:
        """Find a word.

        Args:
            word: What to look for.
        """
        return word

    schema = {
        "type": "object",
        "properties": {"word": {"type": "string", "description": "What to look for."}},
        "required": ["word"],
    }
    written = ToolSpec("find", "Find a word.", schema, annotations=Annotations(Effect.READ), metadata={"team": "files"})
    assert find.spec == written


def test_schema_tool_of_a_plain_mapping_is_refused() -> None:
    given: Any = {"name": "act"}
    with pytest.raises(UsageError, match=r"expected ToolSpec as spec, got .*; write SchemaTool\(ToolSpec\("):
        SchemaTool(given, given)


async def test_schema_tool_runs_every_kind_of_handler(context: ToolContext, reports: list[object]) -> None:
    spec = ToolSpec("act", "Act.", {"type": "object"})

    async def later(arguments: Any, context: ToolContext) -> str:
        return f"{arguments['a']} in {context.call_id}"

    def climb(arguments: Any) -> Any:
        yield 1
        yield arguments["a"]

    assert await SchemaTool(spec, _first).bind({"a": 1}).run(context) == 1
    assert await SchemaTool(spec, later).bind({"a": 1}).run(context) == "1 in call-1"
    assert await SchemaTool(spec, climb).bind({"a": 2}).run(context) == 2
    assert reports == [1]


async def test_handler_cannot_change_the_call_arguments(context: ToolContext) -> None:
    made = SchemaTool(ToolSpec("act", "Act.", {"type": "object"}), _popping)
    invocation = made.bind({"a": [1]})
    assert await invocation.run(context) == await invocation.run(context) == [1]
    assert invocation.arguments == {"a": [1]}
