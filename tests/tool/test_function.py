"""`@tool` on functions of every kind, and what it refuses."""

import asyncio
import copy
import functools
import pickle
import threading
from collections import deque
from collections.abc import AsyncIterator, Callable, Generator, Iterator
from dataclasses import dataclass
from typing import Annotated, Any

import pytest
from pydantic import BaseModel, Field

from callwright import Annotations, Effect, Image, Limits, ReadPath, ToolContext, UsageError, tool
from callwright.tool.base import Invocation, Tool
from callwright.tool.function import FunctionTool


def define(source: str, **names: Any) -> Any:
    """Run a definition that a type checker would rightly refuse."""
    space: dict[str, Any] = {"tool": tool, "ToolContext": ToolContext, **names}
    exec(source, space)
    return space.get("f")


async def test_an_async_function_is_a_tool(context: ToolContext) -> None:
    @tool
    async def greet(name: str) -> str:
        """Greet a person."""
        return f"hello {name}"

    assert (greet.spec.name, greet.spec.description) == ("greet", "Greet a person.")
    assert isinstance(greet, Tool)
    invocation = greet.bind('{"name":"Ann"}')
    assert isinstance(invocation, Invocation)
    assert await invocation.run(context) == "hello Ann"


async def test_a_sync_function_runs_in_a_worker_thread(context: ToolContext) -> None:
    @tool
    def where() -> str:
        """Name the thread."""
        return threading.current_thread().name

    assert str(await where.bind("{}").run(context)).startswith("callwright-tool-")


def double(number: int) -> int:
    """Double a number."""
    return 2 * number


async def test_a_tool_can_be_copied_after_it_ran_in_a_thread(context: ToolContext) -> None:
    made = tool(double)
    assert await made.bind({"number": 1}).run(context) == 2
    for same in (copy.deepcopy(made), pickle.loads(pickle.dumps(made))):
        assert await same.bind({"number": 2}).run(context) == 4


async def test_an_inline_function_runs_on_the_loop_thread(context: ToolContext) -> None:
    @tool(isolation="inline")
    def where() -> str:
        """Name the thread."""
        return threading.current_thread().name

    assert await where.bind("{}").run(context) == threading.current_thread().name


def test_calling_a_tool_directly_calls_the_function() -> None:
    @tool
    def double(number: int) -> int:
        """Double a number."""
        return number * 2

    assert double(4) == 8
    assert double(number=5) == 10


class Counter:
    """Counts."""

    def __init__(self, start: int) -> None:
        self.count = start

    @tool
    def add(self, amount: int) -> int:
        """Add to the count."""
        self.count += amount
        return self.count

    @tool
    async def read(self) -> int:
        """Read the count."""
        return self.count

    @tool
    @staticmethod
    def double(number: int) -> int:
        """Double a number."""
        return number * 2


async def test_method_is_bound_to_its_instance(context: ToolContext) -> None:
    one, ten = Counter(1), Counter(10)
    assert await one.add.bind({"amount": 5}).run(context) == 6
    assert await ten.add.bind({"amount": 5}).run(context) == 15
    assert await ten.read.bind({}).run(context) == 15
    assert await ten.double.bind({"number": 4}).run(context) == 8
    assert "self" not in one.add.spec.input_schema["properties"]  # type: ignore[operator] - a mapping


def test_all_instances_of_a_class_share_one_spec() -> None:
    assert Counter(1).add.spec is Counter(2).add.spec is Counter.add.spec


def test_unbound_method_cannot_be_called() -> None:
    with pytest.raises(UsageError, match=r"Counter\.add is a method; take the tool from an instance"):
        Counter.add.bind({"amount": 1})


def test_type_checkers_accept_different_tools_in_one_collection_and_a_method_in_place_of_another() -> None:
    @tool
    def add(a: int, b: int = 2) -> int:
        """Add."""
        return a + b

    @tool(effect=Effect.READ)
    async def name(number: int) -> str:
        """Name a number."""
        return str(number)

    class Doubler(Counter):
        @tool
        def add(self, amount: int) -> int:
            """Add twice the amount."""
            self.count += 2 * amount
            return self.count

    def list_names(tools: list[FunctionTool]) -> list[str]:
        return [each.name for each in tools]

    tools = [add]
    tools.append(name)
    by_name = {"add": add}
    by_name["name"] = name
    assert list_names(tools) == list(by_name) == ["add", "name"]
    assert Doubler(1).add(amount=1) == 3


def test_function_with_self_is_not_a_method() -> None:
    with pytest.raises(UsageError, match="'self' has no annotation"):
        define("@tool\ndef f(self, x: int):\n    'Do it.'")


class Greeter:
    """Greets people."""

    def __init__(self, word: str) -> None:
        self.word = word

    async def __call__(self, name: str) -> str:
        """Greet a person by name.

        Args:
            name: Who.
        """
        return f"{self.word} {name}"


async def test_an_object_that_can_be_called_is_a_tool(context: ToolContext) -> None:
    greeter = tool(Greeter("hi"))
    assert greeter.spec.name == "greeter"
    assert greeter.spec.description == "Greet a person by name."
    assert await greeter.bind({"name": "Bo"}).run(context) == "hi Bo"


async def test_arguments_bound_by_partial_are_hidden(context: ToolContext) -> None:
    def fetch(token: str, path: str, host: str = "example.org") -> str:
        """Fetch a path."""
        return f"{host}{path} with {token}"

    fetching = tool(functools.partial(fetch, token="secret", host="localhost"))
    assert fetching.spec.name == "fetch"
    assert fetching.spec.description == "Fetch a path."
    assert list(fetching.spec.input_schema["properties"]) == ["path"]  # type: ignore[arg-type] - a mapping
    assert "secret" not in str(fetching.spec)
    assert await fetching.bind({"path": "/x"}).run(context) == "localhost/x with secret"


async def test_a_partial_by_position_keeps_the_other_parameters(context: ToolContext) -> None:
    async def power(base: int, exponent: int) -> int:
        """Raise to a power."""
        return base**exponent

    assert await tool(functools.partial(power, 2)).bind({"exponent": 5}).run(context) == 32


def passing(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    async def wrapper(*arguments: Any, **named: Any) -> Any:
        return function(*arguments, **named)

    return wrapper


async def test_an_async_wrapper_around_a_sync_function_is_awaited(context: ToolContext) -> None:
    @tool
    @passing
    def double(number: int) -> int:
        """Double a number."""
        return number * 2

    assert await double.bind({"number": 3}).run(context) == 6


async def test_a_sync_wrapper_around_an_async_function_is_awaited(context: ToolContext) -> None:
    async def double(number: int) -> int:
        """Double a number."""
        await asyncio.sleep(0)
        return number * 2

    @functools.wraps(double)
    def wrapper(*arguments: Any, **named: Any) -> Any:
        return double(*arguments, **named)

    assert await tool(wrapper).bind({"number": 3}).run(context) == 6


async def test_the_context_is_injected_and_absent_from_the_schema(context: ToolContext) -> None:
    @tool
    async def who(name: str, context: ToolContext) -> str:
        """Say who calls."""
        return f"{name} in {context.call_id}"

    assert list(who.spec.input_schema["properties"]) == ["name"]  # type: ignore[arg-type] - a mapping
    assert await who.bind({"name": "Al"}).run(context) == "Al in call-1"


async def test_context_does_not_expose_the_loop(context: ToolContext) -> None:
    shown = {name for name in dir(context) if not name.startswith("_")}
    known = (
        "call call_id session_id turn_id attempt deadline depth parent idempotency_key state cancelled answer question"
    )
    assert shown == {*known.split(), "report", "execute", "confinement", "keep", "kept", "path"}


async def test_the_context_may_be_optional_or_positional_only(context: ToolContext) -> None:
    @tool
    def first(context: ToolContext, /, name: str) -> str:
        """Say who calls."""
        return f"{name} in {context.call_id}"

    @tool
    def second(name: str, context: ToolContext | None = None) -> str:
        """Say who calls."""
        return f"{name} in {context.call_id}" if context else "no context"

    assert await first.bind({"name": "Al"}).run(context) == "Al in call-1"
    assert await second.bind({"name": "Al"}).run(context) == "Al in call-1"


async def test_positional_only_and_keyword_only_parameters_are_filled(context: ToolContext) -> None:
    @tool
    def mix(a: int, b: int = 20, /, c: int = 300, *, d: int = 4000) -> list[int]:
        """Mix numbers."""
        return [a, b, c, d]

    assert await mix.bind({"a": 1}).run(context) == [1, 20, 300, 4000]
    assert await mix.bind({"a": 1, "b": 2, "d": 4}).run(context) == [1, 2, 300, 4]


async def test_positional_gap_is_filled_with_the_default(context: ToolContext) -> None:
    @tool
    def mix(a: int = 10, b: int = 20, /) -> list[int]:
        """Mix numbers."""
        return [a, b]

    assert await mix.bind({"b": 2}).run(context) == [10, 2]


async def test_an_invocation_can_be_run_again(context: ToolContext) -> None:
    @tool
    def show(a: int, /, b: int) -> list[int]:
        """Show numbers."""
        return [a, b]

    invocation = show.bind({"a": 1, "b": 2})
    assert await invocation.run(context) == await invocation.run(context) == [1, 2]


def test_arguments_have_their_defaults_filled_in() -> None:
    @tool
    def list_files(path: str, depth: int = 2, *, hidden: bool = False) -> str:
        """List files."""
        return f"{path}{depth}{hidden}"

    assert list_files.bind('{"path": "."}').arguments == {"path": ".", "depth": 2, "hidden": False}


class Search(BaseModel):
    words: list[str] = []


@dataclass
class Page:
    number: int = 1


@dataclass(frozen=True)
class Range:
    pages: tuple[Page, ...] = (Page(),)


async def test_no_call_changes_the_defaults_of_the_next(context: ToolContext) -> None:
    @tool
    def look(
        search: Search = Search(),  # noqa: B008 - the case under test
        page: Page = Page(),  # noqa: B008 - as above
        pages: Range = Range(),  # noqa: B008 - as above
        seen: deque[int] = deque(),  # noqa: B006 - as above
        pair: tuple[list[int], int] = ([], 1),
        filled: Annotated[Page, Field(default=Page(5))] = Page(5),  # noqa: B008 - as above
        field: Page = Field(default=Page(7)),  # noqa: B008 - as above
    ) -> list[object]:
        """Look at pages."""
        search.words.append("a")
        page.number = pages.pages[0].number = filled.number = field.number = 9
        seen.append(1)
        pair[0].append(1)
        return [search, page, pages, seen, pair, filled, field]

    shown = look.bind({}).arguments
    await look.bind({}).run(context)
    assert look.bind({}).arguments == shown
    assert look.bind({}).values == {
        "search": Search(),
        "page": Page(),
        "pages": Range((Page(),)),
        "seen": deque(),
        "pair": ([], 1),
        "filled": Page(5),
        "field": Page(7),
    }


async def test_default_that_cannot_change_stays_the_same_object(context: ToolContext) -> None:
    nothing = Range(())

    @tool
    def look(pages: Range = nothing) -> bool:
        """Look at pages."""
        return pages is nothing

    assert await look.bind({}).run(context)


def test_a_tool_binds_the_arguments_it_reports() -> None:
    @tool
    def list_files(path: str, depth: int | None = None) -> str:
        """List files."""
        return f"{path}{depth}"

    bound = list_files.bind('{"path": "."}')
    assert list_files.bind(bound.arguments).arguments == bound.arguments


def test_accesses_are_declared_from_the_final_arguments() -> None:
    @tool(effect=Effect.READ, accesses=lambda arguments: [ReadPath(str(arguments["path"]))])
    def read(path: str = "README.md") -> str:
        """Read a file."""
        return path

    assert read.bind({}).accesses() == (ReadPath("README.md"),)
    assert tool(read.function).bind({}).accesses() == ()


async def test_generator_reports_progress(context: ToolContext, reports: list[object]) -> None:
    @tool
    def climb(steps: int) -> Iterator[int]:
        """Climb steps."""
        yield from range(1, steps + 1)

    assert await climb.bind({"steps": 3}).run(context) == 3
    assert reports == [1, 2]
    assert climb.spec.output_schema == {"type": "integer"}


async def test_generator_return_value_wins_over_yields(context: ToolContext, reports: list[object]) -> None:
    @tool
    def climb() -> Generator[str, None, list[int]]:
        """Climb."""
        yield "one"
        yield "two"
        return [1, 2]

    assert await climb.bind({}).run(context) == [1, 2]
    assert reports == ["one", "two"]
    assert climb.spec.output_schema == {"type": "array", "items": {"type": "integer"}}


async def test_async_generator_reports_progress(context: ToolContext, reports: list[object]) -> None:
    @tool
    async def climb(steps: int) -> AsyncIterator[dict[str, int]]:
        """Climb steps."""
        for step in range(steps):
            yield {"step": step}

    assert await climb.bind({"steps": 3}).run(context) == {"step": 2}
    assert reports == [{"step": 0}, {"step": 1}]
    assert climb.spec.output_schema == {"type": "object", "additionalProperties": {"type": "integer"}}
    assert await climb.bind({"steps": 0}).run(context) is None


async def test_a_cancelled_async_generator_is_closed(context: ToolContext) -> None:
    closed = asyncio.Event()
    begun = asyncio.Event()

    @tool
    async def wait() -> AsyncIterator[str]:
        """Wait."""
        try:
            yield "begun"
            begun.set()
            await asyncio.sleep(60)
            yield "done"
        finally:
            closed.set()

    task = asyncio.ensure_future(wait.bind({}).run(context))
    await begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert closed.is_set()


def test_traits_reach_the_spec() -> None:
    @tool(
        name="fs.read",
        description="Read a text file.",
        effect=Effect.READ,
        seconds=5,
        aliases=["cat"],
        group="file",
        deferred=True,
        search_hint="show file contents",
        metadata={"cost": 1},
    )
    def read(path: str) -> str:
        """Ignored."""
        return path

    spec = read.spec
    assert (spec.name, spec.namespace, spec.description) == ("fs.read", "fs", "Read a text file.")
    assert spec.annotations == Annotations(Effect.READ)
    assert spec.limits == Limits(seconds=5)
    assert (spec.aliases, spec.group, spec.deferred, spec.search_hint) == (("cat",), "file", True, "show file contents")
    assert spec.metadata == {"cost": 1}


def test_default_effect_is_write() -> None:
    @tool
    def act() -> None:
        """Act."""

    assert act.spec.annotations == Annotations(Effect.WRITE)
    assert act.spec.aliases == ()


@pytest.mark.parametrize(
    ("source", "said"),
    [
        (
            "def f(*paths: str): 'Do it.'",
            r"f: parameter '\*paths: str' cannot be described .* write paths: list\[str\]",
        ),
        ("def f(**rest: str): 'Do it.'", r"f: parameter '\*\*rest: str' .* write rest: dict\[str, str\] instead"),
        ("def f(*sizes: 'int | None'): 'Do it.'", r"write sizes: list\[int \| None\] instead"),
        ("def f(**rest: float): 'Do it.'", r"write rest: dict\[str, float\] instead"),
        ("def f(*paths): 'Do it.'", r"write paths: list\[str\] instead"),
        (
            "from typing import TypedDict, Unpack\nclass Size(TypedDict):\n    width: int\n"
            "def f(**size: Unpack[Size]): 'Do it.'",
            "write size: Size instead",
        ),
        (
            "def f(*args, **kwargs): 'Do it.'",
            r"f: \*args and \*\*kwargs cannot .* decorate it with functools\.wraps, else",
        ),
        (
            "import functools\ndef g(a: int): 'Do it.'\nf = functools.partial(g, b=1)",
            r"partial\(.*, b=1\) has arguments that its function does not take; leave them out",
        ),
        (
            "import socket\ndef f(x: Annotated[socket.socket, 'a socket']): 'Do it.'",
            "f: parameter 'x': the type socket cannot be sent as JSON",
        ),
        (
            "import socket\ndef f(x: list[socket.socket]): 'Do it.'",
            r"f: parameter 'x': the type list\[[\w.]*socket\] cannot be sent as JSON",
        ),
        (
            "def f(x: Annotated[str, Field(pattern='(?=a)b')]): 'Do it.'",
            "f: parameter 'x': its constraints are not valid: look-around.* is not supported",
        ),
        ("def f(path): 'Do it.'", "f: parameter 'path' has no annotation; write path: str"),
        (
            "import socket\ndef f(x: socket.socket): 'Do it.'",
            "f: parameter 'x': the type socket cannot be sent as JSON",
        ),
        (
            "from collections.abc import Callable\ndef f(x: Callable[[int], int]): 'Do it.'",
            "f: parameter 'x': the type .*Callable.* cannot be sent as JSON",
        ),
        ("def f(x: 'Nowhere'): 'Do it.'", "f: annotation 'Nowhere' is not defined where the tool is; import it there"),
        ("def f(x: 'list['): 'Do it.'", "f: an annotation cannot be read"),
        ("def f(one: ToolContext, x: int, two: ToolContext): 'Do it.'", "f: 'one' and 'two' are both the context"),
        (
            "def f(x: Annotated[int, Field(alias='y')], y: int = 0): 'Do it.'",
            "f: parameter 'x' has the alias 'y', which means another parameter",
        ),
        (
            "def f(x: Annotated[int, Field(alias='z')], y: Annotated[int, Field(alias='z')]): 'Do it.'",
            "f: parameter 'y' has the alias 'z', which means another parameter",
        ),
        ("def f(x: int): pass", "f: no description; write a docstring"),
        ("def f(x: int): '   '", "f: no description"),
        ("def f(x: int):\n    '''\n    Args:\n        x: A number.\n    '''", "f: no description"),
        ("def f(x: int):\n    ''':param x: A number.'''", "f: no description"),
    ],
)
def test_unsupported_parameters_are_refused(source: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        tool(define(source, Annotated=Annotated, Field=Field))


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"descripton": "x"}, "has no option 'descripton'; the options are .*description.*effect"),
        ({"aliases": "cat"}, r"aliases must be several names, as in aliases=\['cat'\]"),
        ({"aliases": ["not a name"]}, "'not a name' is not valid"),
        ({"name": "a b"}, "'a b' is not valid"),
        ({"effect": "READ"}, "effect must be an Effect"),
        ({"idempotent": True}, r"has no option 'idempotent'; write annotations=Annotations\(effect, idempotent=…\)"),
        (
            {"effect": Effect.DESTROY, "annotations": Annotations(idempotent=True)},
            r"effect is DESTROY, and annotations say WRITE; write annotations=Annotations\(Effect.DESTROY, …\) alone",
        ),
        ({"annotations": {}}, "expected Annotations as the annotations of @tool, got {}; write Annotations"),
        ({"effect": Effect.READ, "annotations": Annotations}, "expected Annotations as the annotations of @tool, got "),
        ({"isolation": "container"}, "isolation must be one of thread, process, inline, not 'container'"),
        ({"seconds": 0}, "seconds must be above 0"),
        ({"name": 5}, "tool name 5 is not valid"),
        (
            {"limits": 5},
            r"expected Limits as the limits of @tool, got 5; write limits=Limits\(seconds=10\), or seconds",
        ),
        ({"accesses": ["a"]}, r"expected a function as the accesses of @tool, got \['a'\]; write accesses=lambda"),
    ],
)
def test_a_wrong_option_is_refused_at_definition(options: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        tool(**options)(define("def f(x: int): 'Do it.'"))


@pytest.mark.parametrize("thing", [5, "read", Greeter, len, lambda: None])
def test_functions_without_description_are_refused(thing: Any) -> None:
    with pytest.raises(UsageError):
        tool(thing)


@pytest.mark.parametrize(
    ("thing", "said"),
    [
        ("read", r"got 'read'; write @tool\(name='read'\)$"),
        (
            define("f = classmethod(len)"),
            r"got <classmethod.*>; leave @tool out, and after the class write tool\(Class\.method\)$",
        ),
        (Greeter, "got <class .*>; decorate one of its methods, or derive it from TypedTool$"),
    ],
)
def test_what_is_not_a_function_is_refused_with_a_fix(thing: Any, said: str) -> None:
    with pytest.raises(UsageError, match=f"@tool needs a function, {said}"):
        tool(thing)


def test_a_tool_is_not_made_a_tool_twice() -> None:
    with pytest.raises(UsageError, match="needs a function, got <tool f>, which is a tool already"):
        tool(tool(define("def f(x: int): 'Do it.'")))


def test_parts_and_text_have_no_output_schema() -> None:
    for returns in ("str", "None", "bytes", "str | None", "Image", "list[Image]", "list[Image | str]", "Image | None"):
        made: FunctionTool = tool(define(f"def f() -> {returns}: 'Do it.'", Image=Image))
        assert made.spec.output_schema is None, returns


def test_data_has_an_output_schema() -> None:
    expected = {
        "dict[str, int]": {"type": "object", "additionalProperties": {"type": "integer"}},
        "list[str]": {"type": "array", "items": {"type": "string"}},
        "int": {"type": "integer"},
        "int | float": {"anyOf": [{"type": "integer"}, {"type": "number"}]},
    }
    for returns, schema in expected.items():
        assert tool(define(f"def f() -> {returns}: 'Do it.'")).spec.output_schema == schema


@dataclass
class NotGiven:
    """A marker."""


@dataclass
class Guarded:
    """What cannot be copied."""

    lock: Any


async def test_marker_and_what_cannot_be_copied_stay_the_same_object(context: ToolContext) -> None:
    marker, guarded = NotGiven(), Guarded(threading.Lock())

    @tool
    async def show(mark: NotGiven | int = marker, guard: Annotated[Guarded, "a lock"] = guarded) -> list[bool]:
        """Tell whether these are the defaults."""
        return [mark is marker, guard is guarded]

    assert await show.bind("{}").run(context) == [True, True]
