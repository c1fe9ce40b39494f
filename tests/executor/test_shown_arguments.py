"""The arguments that are shown, judged and approved are those that run."""

from collections.abc import Callable, Generator, Iterable, Sequence
from dataclasses import InitVar, dataclass, field
from decimal import Decimal
from enum import Enum
from math import inf
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
from pydantic import (
    AliasChoices,
    Base64Bytes,
    BaseModel,
    Field,
    Json,
    PlainSerializer,
    SecretStr,
    computed_field,
    field_serializer,
)

from callwright import (
    Answers,
    ApprovalRequired,
    Arguments,
    Completed,
    Effect,
    Executor,
    Failed,
    Interrupted,
    Outcome,
    Question,
    Registry,
    ToolCall,
    ToolContext,
    Turn,
    TypedTool,
    UsageError,
    tool,
)
from callwright.core.access import WritePath
from callwright.core.events import BatchBegan
from callwright.core.json import compact
from callwright.hooks import Hook, PendingCall, Rewrite, Verdict
from callwright.policy import ByMode, Grants, PathContext, Policies
from callwright.tool.function import FunctionTool
from callwright.tool.typed import describe


@tool(effect=Effect.DESTROY)
async def keep_only(ids: Iterable[int]) -> str:
    """Delete every record but these."""
    return str(list(ids))


@tool(effect=Effect.DESTROY)
async def rename_all(names: dict[str, Iterable[str]]) -> str:
    """Rename records."""
    return str({key: list(value) for key, value in names.items()})


@tool(effect=Effect.DESTROY)
async def login(password: SecretStr, user: str = "me") -> str:
    """Sign in."""
    return f"{user}:{password.get_secret_value()}"


class Credentials(Arguments):
    password: SecretStr


class Login(TypedTool[Credentials]):
    spec = describe("login", "Sign in.", effect=Effect.DESTROY)

    async def run(self, arguments: Credentials, context: ToolContext) -> str:
        return f"me:{arguments.password.get_secret_value()}"


def text_of(outcome: Outcome) -> str:
    assert isinstance(outcome, Completed), outcome
    return outcome.output.text


async def ask_and_approve(executor: Executor, asked: ToolCall, run: ToolCall, **approval: Any) -> Outcome:
    [outcome] = await executor.execute([asked])
    assert isinstance(outcome, Interrupted)
    answers = Answers()
    for question in outcome.questions:
        answers.approve(question, **approval)
    [outcome] = await executor.execute([run], answers=answers)
    return outcome


@pytest.mark.parametrize(
    ("call", "ran"),
    [
        (ToolCall("c", "keep_only", '{"ids":[1,2,3]}'), "[1, 2, 3]"),
        (ToolCall("c", "rename_all", '{"names":{"a":["x","y"]}}'), "{'a': ['x', 'y']}"),
    ],
)
async def test_an_iterable_reaches_the_tool_whole(call: ToolCall, ran: str) -> None:
    registry, seen = Registry(keep_only, rename_all), list[object]()
    watched = Executor(registry, ByMode("bypass"), observe=seen.append)
    for _ in range(2):  # the second call takes the fast path
        [outcome] = await watched.execute([call])
        assert text_of(outcome) == ran
    assert text_of(await ask_and_approve(Executor(registry, ByMode("default")), call, call)) == ran


async def test_items_of_an_iterable_are_validated() -> None:
    [outcome] = await Executor(Registry(keep_only), ByMode("bypass")).execute(
        [ToolCall("c", "keep_only", '{"ids":["x"]}')]
    )
    assert isinstance(outcome, Failed)
    assert "ids.0: expected an integer" in str(outcome.error)


class Many(BaseModel):
    items: Iterable[int]


class Part(BaseModel):
    metadata: Many


class Forced(BaseModel):
    path: str
    force: bool = Field(False, exclude=True)


class SometimesForced(BaseModel):
    force: bool = Field(False, exclude_if=bool)


@dataclass
class Prepared:
    path: str
    force: InitVar[bool] = False


class Mode(Enum):
    FAST = "fast"


class Corner(Enum):
    LEFT = (0, 0)


class Rate(Enum):
    LOW = Decimal("0.5")


class Share(Decimal, Enum):
    LOW = Decimal("0.5")


class Weight(float, Enum):
    LOW = 0.5


class Mark(Enum):
    NONE = object()
    A = "a"


class Task(BaseModel):
    action: Callable[[], None]


class Marked(BaseModel):
    mark: Mark = Mark.A


class Run(BaseModel):
    mode: Literal[Mode.FAST]


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        (Generator[int, None, None], "f: parameter 'x' is an Iterable, which can be read only once; write list"),
        (Iterable[Path], "f: parameter 'x' is an Iterable"),
        (Many, "f: parameter 'x': the field 'items' is an Iterable"),
        (list[Many], "f: parameter 'x': the field 'items' is an Iterable"),
        (Part, "f: parameter 'x': the field 'items' is an Iterable"),
        (Forced, "f: parameter 'x': the field 'force' is excluded, .*; remove exclude, or use SecretStr"),
        (Forced | None, "the field 'force' is excluded"),
        (SometimesForced, "the field 'force' is excluded"),
        (Prepared, "f: parameter 'x': the field 'force' is an InitVar, .*; make it a field"),
        (Literal[Mode.FAST], r"f: parameter 'x' is a Literal of Mode.FAST, .*; write class Mode\(str, Enum\)"),
        (Run | None, "f: parameter 'x': the field 'mode' is a Literal of Mode.FAST"),
        (Literal[b"x"], "f: parameter 'x' is a Literal of b'x', which is not read from JSON; write texts or numbers"),
        (Corner, "f: parameter 'x' is a Corner, whose values are not read from JSON; give it texts or numbers"),
        (type[int], "f: parameter 'x' is a class, which JSON cannot carry"),
        (Task, "f: parameter 'x': the type Task cannot be sent as JSON"),
    ],
)
def test_what_would_not_be_shown_is_refused(kind: Any, said: str) -> None:
    async def f(x: Any) -> None:
        """Do it."""

    f.__annotations__["x"] = kind
    with pytest.raises(UsageError, match=said):
        tool(f)


@pytest.mark.parametrize("kind", [Rate, Share, Literal[Share.LOW], Literal[Weight.LOW]])
@pytest.mark.parametrize("written", [0.5, "0.5"])
async def test_number_of_an_enum_is_read(kind: Any, written: float | str) -> None:
    async def f(x: Any) -> str:
        """Do it."""
        return x.name

    f.__annotations__["x"] = kind
    assert (await Executor(Registry(tool(effect=Effect.READ)(f))).run("f", {"x": written})).text == "LOW"


@pytest.mark.parametrize("kind", [Mark, Marked, list[Marked]])
def test_enum_with_a_value_that_json_cannot_carry_is_a_clear_error(kind: Any) -> None:
    async def f(x: Any) -> None:
        """Do it."""

    f.__annotations__["x"] = kind
    with pytest.raises(UsageError, match=r"f.*Unable to serialize unknown type"):
        _ = tool(f).spec


async def test_hook_keeps_json_that_was_written_as_text() -> None:
    class Raise(Hook):
        async def before(self, pending: PendingCall) -> Verdict:
            return Rewrite({**pending.arguments, "times": 2})

    @tool(effect=Effect.READ)
    async def add(numbers: Json[list[int]], times: int = 1) -> int:
        """Add."""
        return sum(numbers) * times

    outcome = await Executor(Registry(add), hooks=[Raise()]).run("add", {"numbers": "[1, 2]"})
    assert outcome.text == "6"


class Walk(BaseModel):
    mode: Literal[Mode.FAST] = Mode.FAST


async def test_literal_with_a_readable_value_or_a_default_is_accepted() -> None:
    @tool(effect=Effect.READ)
    async def go(x: Literal["slow", Mode.FAST], walk: Walk, y: Literal[Mode.FAST] = Mode.FAST) -> str:
        """Go."""
        return f"{x} {walk.mode} {y}"

    [outcome] = await Executor(Registry(go)).execute([ToolCall("c", "go", '{"x":"slow","walk":{}}')])
    assert text_of(outcome) == "slow Mode.FAST Mode.FAST"


def test_a_typed_tool_with_an_excluded_field_is_refused() -> None:
    class Hidden(Arguments):
        force: bool = Field(False, exclude=True)

    class Remove(TypedTool[Hidden]):
        spec = describe("remove", "Remove.")

    with pytest.raises(UsageError, match="Remove: the field 'force' is excluded"):
        _ = Remove.spec


@pytest.mark.parametrize("made", [login, Login()])
async def test_an_approval_is_for_the_secret_of_its_call(made: FunctionTool | Login) -> None:
    executor = Executor(Registry(made), ByMode("default"))
    call, other = ToolCall("c", "login", '{"password":"A"}'), ToolCall("c", "login", '{"password":"B"}')
    [asked] = await executor.execute([call])
    assert isinstance(asked, Interrupted)
    assert "A" not in str(asked.questions[0].arguments.values())
    assert isinstance(await ask_and_approve(executor, call, other), Interrupted)
    assert text_of(await ask_and_approve(executor, call, ToolCall("c", "login", {"password": "A"}))) == "me:A"


async def test_an_approval_for_the_session_is_for_one_secret() -> None:
    executor = Executor(Registry(login), Policies(ByMode("default"), Grants(PathContext("/w", "/home/ann"))))
    call = ToolCall("c", "login", '{"password":"A"}')
    assert text_of(await ask_and_approve(executor, call, call, scope="session")) == "me:A"
    [again, other] = await executor.execute([call, ToolCall("d", "login", '{"password":"B"}')])
    assert isinstance(other, Interrupted)
    assert isinstance(again, Interrupted)
    assert not again.questions


async def test_a_question_of_a_running_tool_is_for_the_secret_of_its_call() -> None:
    @tool(effect=Effect.READ)
    async def unlock(pin: SecretStr, context: ToolContext) -> str:
        """Unlock."""
        if context.answer is None:
            raise ApprovalRequired("really unlock?")
        return pin.get_secret_value()

    executor = Executor(Registry(unlock))
    call = ToolCall("c", "unlock", '{"pin":"1"}')
    assert isinstance(await ask_and_approve(executor, call, ToolCall("c", "unlock", '{"pin":"2"}')), Interrupted)
    assert text_of(await ask_and_approve(executor, call, call)) == "1"


class Masked(BaseModel):
    path: str

    @field_serializer("path")
    def _mask(self, path: str) -> str:
        return "somewhere"


class Failing(BaseModel):
    path: Annotated[str, PlainSerializer(lambda value: 1 // 0)]


async def test_a_changed_form_of_an_argument_is_approved_for_its_value() -> None:
    @tool(effect=Effect.DESTROY)
    async def remove(where: Masked) -> str:
        """Remove."""
        return where.path

    executor = Executor(Registry(remove), ByMode("default"))
    call = ToolCall("c", "remove", '{"where":{"path":"a"}}')
    assert isinstance(
        await ask_and_approve(executor, call, ToolCall("c", "remove", '{"where":{"path":"/"}}')), Interrupted
    )
    assert text_of(await ask_and_approve(executor, call, call)) == "a"


class Box(BaseModel):
    side: int

    @computed_field
    @property
    def area(self) -> int:
        return self.side**2


async def test_computed_fields_that_are_shown_are_left_out_of_an_edit() -> None:
    @tool(effect=Effect.READ)
    async def pack(box: Box, note: str = "") -> str:
        """Pack a box."""
        return f"{box.side} {box.area} {note}"

    class Widen(Hook):
        async def before(self, pending: PendingCall) -> Rewrite:
            assert pending.arguments["box"] == {"side": 2, "area": 4}
            return Rewrite({"box": {"side": 3, "area": 4}, "note": "wide"})

    executor = Executor(Registry(pack), hooks=[Widen()])
    [outcome] = await executor.execute([ToolCall("c", "pack", '{"box":{"side":2}}')])
    assert text_of(outcome) == "3 9 wide"


class Parcel(BaseModel):
    side: int = Field(serialization_alias="sideLength")


@dataclass
class Crate:
    side: int
    label: str = field(init=False, default="crate")


async def test_names_and_values_for_output_alone_do_not_fail_a_hook_that_gives_them_back() -> None:
    @tool(effect=Effect.READ)
    async def stow(parcel: Parcel, crate: Crate, note: str = "") -> str:
        """Stow a parcel in a crate."""
        return f"{parcel.side} {crate} {note}"

    class Note(Hook):
        async def before(self, pending: PendingCall) -> Rewrite:
            return Rewrite({**pending.arguments, "note": "careful"})

    given = {"parcel": {"side": 2}, "crate": {"side": 3}}
    [outcome] = await Executor(Registry(stow), hooks=[Note()]).execute([ToolCall("c", "stow", given)])
    assert text_of(outcome) == "2 Crate(side=3, label='crate') careful"


async def test_bytes_that_are_no_text_are_shown_as_they_are_written() -> None:
    @tool(effect=Effect.READ)
    async def store(data: Base64Bytes, parts: list[Base64Bytes], name: str, seal: Base64Bytes = b"\xff") -> str:
        """Store bytes."""
        return f"{data!r} {parts!r} {name} {seal!r}"

    given = {"data": "/w==", "parts": ["/w=="], "name": "n"}
    assert store.bind(given).arguments == {**given, "seal": "/w=="}
    (outcome,) = await Executor(Registry(store)).execute([ToolCall("1", "store", given)])
    assert isinstance(outcome, Completed) and outcome.text == "b'\\xff' [b'\\xff'] n b'\\xff'"


async def test_arguments_that_cannot_be_shown_fail_their_call() -> None:
    ran: list[str] = []

    @tool(effect=Effect.READ)
    async def look(where: Failing) -> str:
        """Look."""
        ran.append(where.path)
        return where.path

    @tool(effect=Effect.READ)
    async def send(data: bytes = b"\xff") -> str:
        """Send."""
        ran.append("send")
        return "sent"

    seen: list[object] = []
    executor = Executor(Registry(look, send), observe=seen.append)
    for call in [ToolCall("c", "look", '{"where":{"path":"a"}}'), ToolCall("d", "send", "{}")] * 2:
        [outcome] = await executor.execute([call])
        assert isinstance(outcome, Failed)
        assert not outcome.started
    assert not ran
    assert sum(isinstance(event, BatchBegan) for event in seen) == 4


class Counting(Hook):
    """Changes one argument, and leaves the others as they are shown."""

    def before(self, pending: PendingCall) -> Rewrite | None:
        return Rewrite({**pending.arguments, "count": 2}) if pending.arguments["count"] == 1 else None


_ANYWHERE: Any = object()


async def test_a_default_that_json_cannot_carry_stays_the_default_after_an_edit() -> None:
    @tool(effect=Effect.READ)
    async def find(
        count: int, where: str = _ANYWHERE, seconds: float = inf, span: tuple[float, int] = (-inf, 1), page: float = 1.5
    ) -> str:
        """Find."""
        return f"{count} {where is _ANYWHERE} {seconds} {span} {page}"

    properties: Any = find.spec.input_schema["properties"]
    assert [name for name, part in properties.items() if "default" in part] == ["page"]
    assert find.bind({"count": 1}).arguments == {"count": 1, "page": 1.5}
    executor = Executor(Registry(find), hooks=[Counting()])
    (outcome,) = await executor.execute([ToolCall("1", "find", {"count": 1})])
    assert text_of(outcome) == "2 True inf (-inf, 1) 1.5"


class Waiting(BaseModel):
    seconds: float = inf


@dataclass
class Pausing:
    seconds: float = inf


class Wait(TypedTool[Waiting]):
    spec = describe("wait", "Wait.")

    async def run(self, arguments: Waiting, context: ToolContext) -> str:
        return str(arguments.seconds)


@tool
async def pause(how: Waiting, then: Pausing) -> Waiting:
    """Wait a while."""
    return Waiting(seconds=how.seconds + then.seconds)


@pytest.mark.parametrize(
    ("made", "given", "shown"),
    [
        (Wait(), {}, {"seconds": None}),
        (pause, {"how": {}, "then": {}}, {"how": {"seconds": None}, "then": {"seconds": None}}),
    ],
)
async def test_a_tool_with_infinite_defaults_can_be_offered_and_approved(
    made: Wait | FunctionTool, given: dict[str, Any], shown: dict[str, Any]
) -> None:
    assert compact([made.spec.input_schema, made.spec.output_schema])  # as a request holds it
    assert made.bind(given).arguments == shown
    call = ToolCall("1", made.spec.name, given)
    assert isinstance(await ask_and_approve(Executor(Registry(made), ByMode("default")), call, call), Completed)


def test_paths_and_addresses_conceal_nothing() -> None:
    @tool
    async def read(path: Path, others: list[Path] | None = None) -> str:
        """Read."""
        return ""

    assert not read.contract.concealed


class Letter(BaseModel):
    to: str = Field(alias="receiver", validation_alias=AliasChoices("receiver", "recipient"))
    stamp: str = Field(serialization_alias="stamp")
    weight: int = Field(validation_alias="grams", serialization_alias="weight")


class SendLetter(TypedTool[Letter]):
    spec = describe("send_letter", "Send a letter.")

    async def run(self, arguments: Letter, context: ToolContext) -> str:
        return arguments.to


def test_fields_that_are_shown_under_a_name_that_is_accepted_conceal_nothing() -> None:
    @tool
    async def send(letter: Letter) -> str:
        """Send a letter."""
        return letter.to

    assert not send.contract.concealed and not SendLetter.contract().concealed
    shown = {"receiver": "Ann", "stamp": "blue", "weight": 20}
    written = {"recipient": "Ann", "stamp": "blue", "grams": 20}
    assert send.bind({"letter": written}).arguments == send.bind({"letter": shown}).arguments == {"letter": shown}
    again = SendLetter().bind(SendLetter().bind(written).arguments).arguments
    assert again == SendLetter().bind(shown).arguments


class Signing(Hook):
    """Adds a line to what is written, unless it is there."""

    def before(self, pending: PendingCall) -> Rewrite | None:
        text = str(pending.arguments["text"])
        return None if "signed" in text else Rewrite({**pending.arguments, "text": f"{text}, signed"})


@pytest.mark.parametrize("now", [True, False])
@pytest.mark.parametrize(
    ("edit", "shown"), [("mine", ["model, signed", "mine, signed"]), ("signed", ["model, signed"])]
)
async def test_hook_that_changes_an_edit_is_shown(now: bool, edit: str, shown: list[str]) -> None:
    """The edit touches the same file as the call, so the answer would cover it; but the hook changes it."""
    seen: list[str] = []

    @tool(accesses=lambda arguments: [WritePath(str(arguments["path"]))])
    async def write(path: str, text: str) -> str:
        """Write a file."""
        return text

    async def answer(questions: Sequence[Question]) -> Answers:
        (question,) = questions
        seen.append(str(question.arguments["text"]))
        return Answers().approve(question, arguments={"path": "/a", "text": edit} if len(seen) == 1 else None)

    executor, call = (
        Executor(Registry(write), hooks=[Signing()]),
        ToolCall("1", "write", {"path": "/a", "text": "model"}),
    )
    answers = Answers()
    [outcome] = await executor.execute([call], turn=Turn(ask=answer) if now else Turn())
    while isinstance(outcome, Interrupted):
        answers = Answers({**dict(answers), **dict(await answer(outcome.questions))})
        [outcome] = await executor.execute([call], answers=answers)
    assert text_of(outcome).partition("\n")[0] == shown[-1].replace("model, ", "")
    assert seen == shown
