"""Programs that wait for the user, or were killed: they go on, and no effect is repeated."""

import asyncio
import json
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from tests.codemode.victim import registry
from tests.forked import run_script

from callwright import (
    Agent,
    Answers,
    ApprovalRequired,
    Approve,
    Decline,
    Effect,
    Executor,
    Failed,
    Interrupted,
    Question,
    Registry,
    ToolCall,
    ToolContext,
    ToolFailed,
    Turn,
    tool,
)
from callwright.agent import Done, Paused
from callwright.codemode import CodeMode
from callwright.core.access import Access, Allow, Ask
from callwright.core.messages import ToolMessage
from callwright.hooks import Hook, PendingCall, Rewrite
from callwright.policy import AllowEverything, Policy
from callwright.policy.base import Subject
from callwright.policy.decide import Policies
from callwright.registry import Deferred
from callwright.sessions import MemoryStore, SqliteStore
from callwright.sessions.records import Kept, Said
from callwright.testing.fakes import ScriptedProvider

VICTIM = Path(__file__).with_name("victim.py")
CODE = """\
paid = []
for amount in (1, 2):
    price = await quote(amount=amount)
    paid.append(await pay(amount=amount))
print(paid)
"""
CALL = ToolCall("c", "run_code", {"code": CODE})


def effects(folder: Path) -> list[str]:
    return (folder / "effects").read_text().splitlines()


def agent_in(folder: Path, *script: Any, code: str = CODE) -> tuple[Agent, SqliteStore]:
    store = SqliteStore(folder / "s.db")
    return Agent(ScriptedProvider(*script), executor=Executor(CodeMode(registry(folder))), sessions=store), store


async def test_program_waits_at_each_question(tmp_path: Path) -> None:
    executor = Executor(CodeMode(registry(tmp_path)))
    (outcome,) = await executor.execute([CALL])
    assert isinstance(outcome, Interrupted) and effects(tmp_path) == ["quote 1"]
    (question,) = outcome.questions
    assert question.tool == "pay" and question.arguments == {"amount": 1} and question.within == "c"
    assert "> 4     paid.append(await pay(amount=amount))" in question.origin.splitlines()
    (outcome,) = await executor.execute([CALL], answers=Answers.approving(outcome.questions))
    assert isinstance(outcome, Interrupted) and effects(tmp_path) == ["quote 1", "pay 1", "quote 2"]
    (outcome,) = await executor.execute([CALL], answers=Answers.approving(outcome.questions))
    assert outcome.text == "['paid 1', 'paid 2']\n"
    assert effects(tmp_path) == ["quote 1", "pay 1", "quote 2", "pay 2"]


@pytest.mark.parametrize(
    ("code", "marked"),
    [
        ("# a\x0cb\u2028c\x85d\n\nawait pay(amount=1)\n# end", ["> 3 await pay(amount=1)"]),
        ("x = 'é'\r\nawait pay(amount=1)\r\n", ["> 2 await pay(amount=1)"]),
        ("x = 1\nexec('later = pay(amount=1)')\nawait later", []),
        ("#\n" * 40_000 + "await pay(amount=1)\n" + "#\n" * 40_000, ["> 40001 await pay(amount=1)"]),
        ("await pay(amount=1)  " + "#" * 100_000, [f"> 1 await pay(amount=1)  {'#' * 279}…"]),
    ],
)
async def test_question_marks_the_line_of_its_call(tmp_path: Path, code: str, marked: list[str]) -> None:
    (outcome,) = await Executor(CodeMode(registry(tmp_path))).execute([ToolCall("c", "run_code", {"code": code})])
    assert isinstance(outcome, Interrupted)
    lines = outcome.questions[0].origin.split("\n")
    assert [line for line in lines if line.startswith(">")] == marked and len(lines) < 60


async def test_answered_in_another_process(tmp_path: Path) -> None:
    agent, store = agent_in(tmp_path, [CALL])
    assert isinstance(await agent.run("pay", session="s"), Paused)
    store.close()
    for expected in ("paused", "done"):
        answered = await asyncio.to_thread(run_script, VICTIM, str(tmp_path), "answer")
        assert answered.stdout.strip() == expected, answered.stderr
    assert effects(tmp_path) == ["quote 1", "pay 1", "quote 2", "pay 2"]


async def test_declined_call_is_an_exception(tmp_path: Path) -> None:
    executor = Executor(CodeMode(registry(tmp_path)))
    (outcome,) = await executor.execute([CALL])
    assert isinstance(outcome, Interrupted)
    declined = Answers({question.id: Decline("too much") for question in outcome.questions})
    (outcome,) = await executor.execute([CALL], answers=declined)
    assert isinstance(outcome, Failed) and "PermissionError: declined: too much" in outcome.error.message
    assert effects(tmp_path) == ["quote 1"]


async def test_edited_arguments_are_told_also_after_a_restart(tmp_path: Path) -> None:
    agent, store = agent_in(tmp_path, [CALL])
    paused = await agent.run("go", session="s")
    edits: list[dict[str, Any] | None] = [{"amount": 7}, None, None]
    while isinstance(paused, Paused):
        (question,) = paused.questions
        agent, store = agent_in(tmp_path, "done")
        paused = await agent.resume("s", Answers().approve(question, arguments=edits.pop(0)))
    assert isinstance(paused, Done) and effects(tmp_path) == ["quote 1", "pay 7", "quote 2", "pay 2"]
    said = [record.message for record in await store.read("s") if isinstance(record, Said)]
    (outcome,) = next(message.outcomes for message in said if isinstance(message, ToolMessage))
    assert outcome.text.startswith("['paid 7', 'paid 2']\n")
    assert 'pay(): the arguments were changed by the user, it ran with {"amount":7}' in outcome.text


async def test_gathered_questions_are_asked_together(tmp_path: Path) -> None:
    asked: list[int] = []

    async def ask(questions: Sequence[Question]) -> Answers:
        asked.append(len(questions))
        return Answers.approving(questions)

    call = ToolCall("c", "run_code", {"code": "await asyncio.gather(*[pay(amount=n) for n in range(3)])"})
    agent = Agent(
        ScriptedProvider([call], "done"),
        executor=Executor(CodeMode(registry(tmp_path))),
        sessions=MemoryStore(),
        ask=ask,
    )
    assert isinstance(await agent.run("pay", session="s"), Done) and asked == [3]
    assert sorted(effects(tmp_path)) == ["pay 0", "pay 1", "pay 2"]


async def test_answer_counts_for_the_tool_that_was_shown(tmp_path: Path) -> None:
    @tool(effect=Effect.WRITE)
    async def pay(amount: int) -> str:
        """Pay."""
        return f"another tool has {amount}"

    tools, call = registry(tmp_path), ToolCall("c", "run_code", {"code": "await pay(amount=1)"})
    executor = Executor(CodeMode(tools))
    (waiting,) = await executor.execute([call])
    assert isinstance(waiting, Interrupted)
    tools.add(pay)
    (asked_again,) = await executor.execute([call], answers=Answers.approving(waiting.questions))
    fresh = Executor(CodeMode(Registry(pay)))
    turn = Turn(asked=waiting.questions)  # on record, for a process with another version of the tool
    (asked_elsewhere,) = await fresh.execute([call], answers=Answers.approving(waiting.questions), turn=turn)
    assert isinstance(asked_again, Interrupted) and isinstance(asked_elsewhere, Interrupted)


async def test_answer_counts_after_another_tool_was_added(tmp_path: Path) -> None:
    @tool(effect=Effect.READ)
    async def weather() -> str:
        """Tell the weather."""
        return "sun"

    tools, call = registry(tmp_path), ToolCall("c", "run_code", {"code": "await pay(amount=1)"})
    executor = Executor(CodeMode(tools))
    (waiting,) = await executor.execute([call])
    assert isinstance(waiting, Interrupted)
    tools.add(weather)
    (outcome,) = await executor.execute([call], answers=Answers.approving(waiting.questions))
    assert outcome.text == '"paid 1"' and effects(tmp_path) == ["pay 1"]


async def test_program_in_memory_goes_on_with_its_random_numbers(tmp_path: Path) -> None:
    code = "await quote(amount=0)\nawait pay(amount=random.randint(1, 10**9))"
    agent = Agent(
        ScriptedProvider([ToolCall("c", "run_code", {"code": code})], "done"),
        executor=Executor(CodeMode(registry(tmp_path))),
        sessions=MemoryStore(),
    )
    paused = await agent.run("pay", session="s")
    assert isinstance(paused, Paused)
    assert isinstance(await agent.resume("s", Answers.approving(paused.questions)), Done)
    assert effects(tmp_path) == ["quote 0", f"pay {paused.questions[0].arguments['amount']}"]


async def test_declined_call_is_not_asked_about_again(tmp_path: Path) -> None:
    code = """
for amount in (1, 1, 2, 1):
    try:
        await pay(amount=amount)
    except PermissionError as error:
        print(amount, error)
"""
    call, asked = ToolCall("c", "run_code", {"code": code}), list[Any]()
    executor = Executor(CodeMode(registry(tmp_path)))
    (outcome,) = await executor.execute([call])
    while isinstance(outcome, Interrupted):
        asked += [question.arguments["amount"] for question in outcome.questions]
        declined = Answers({question.id: Decline("no") for question in outcome.questions})
        (outcome,) = await executor.execute([call], answers=declined)
    assert asked == [1, 2] and outcome.text == "1 declined: no\n1 declined: no\n2 declined: no\n1 declined: no\n"


@pytest.mark.parametrize("answer", [Approve(), Decline("no")])
async def test_question_of_a_running_call_is_answered(tmp_path: Path, answer: Approve | Decline) -> None:
    ran: list[tuple[int, bool]] = []

    @tool(effect=Effect.WRITE)
    async def send(count: int, context: ToolContext) -> str:
        """Send messages."""
        ran.append((count, context.answer is not None))
        if count > 1 and context.answer is None:
            raise ApprovalRequired("that is much")
        return f"sent {count}"

    async with SqliteStore(tmp_path / "s.db") as store:
        code = "print(await asyncio.gather(send(count=1), send(count=2)))"
        script = ScriptedProvider([ToolCall("c", "run_code", {"code": code})], "done")
        executor = Executor(CodeMode(Registry(send)), AllowEverything())
        agent = Agent(script, executor=executor, sessions=store)
        paused = await agent.run("send", session="s")
        assert isinstance(paused, Paused)
        await agent.resume("s", Answers({paused.questions[0].id: answer}))
        (outcome,) = [o for message in await agent.messages("s") for o in getattr(message, "outcomes", ())]
    if isinstance(answer, Approve):
        assert outcome.text == "['sent 1', 'sent 2']\n" and ran == [(1, False), (2, False), (2, True)]
    else:
        assert "PermissionError: declined: no" in outcome.text and ran == [(1, False), (2, False)]


@pytest.mark.parametrize("first", ["a question", "a date"])
async def test_repetition_takes_its_results_in_the_same_order(tmp_path: Path, first: str) -> None:
    @tool(effect=Effect.READ)
    async def look(item: str, context: ToolContext) -> str:
        """Look at something; asks about some while it runs."""
        if item in ("a", "last") and context.answer is None:
            raise ApprovalRequired("look at it?")
        return item

    code = """
async def one(item, amount):
    try:
        await look(item=item)
    except ValueError:
        pass
    return await pay(amount=amount)
print(await asyncio.gather(%s))
await look(item='last')
"""
    of = {"a question": "one('a', 1), one('b', 2)", "a date": "one('b', 1), one(datetime.date(2026, 1, 2), 2)"}
    tools = registry(tmp_path)
    tools.add(look)
    executor = Executor(CodeMode(tools), AllowEverything())
    call = ToolCall("c", "run_code", {"code": code % of[first]})
    (outcome,) = await executor.execute([call])
    while isinstance(outcome, Interrupted):
        (outcome,) = await executor.execute([call], answers=Answers.approving(outcome.questions))
    assert outcome.text == "['paid 1', 'paid 2']\n\"last\"" and effects(tmp_path) == ["pay 1", "pay 2"]


async def test_program_that_computes_for_long_is_repeated_in_order(tmp_path: Path) -> None:
    code = """
async def one(day, amount):
    try:
        await quote(amount=day)
    except ValueError:
        pass
    return await pay(amount=amount)
print(await asyncio.gather(one(3, 1), one(datetime.date(2026, 1, 2), 2)))
n = 0
while n < 1_000_000:
    n += 1
print(n)
"""
    executor = Executor(CodeMode(registry(tmp_path)), AllowEverything())
    outcome = await executor.run("run_code", {"code": code})
    assert outcome.text == "['paid 1', 'paid 2']\n1000000\n"
    assert effects(tmp_path) == ["quote 3", "pay 1", "pay 2"]


async def test_hook_that_changes_arguments_fits_the_record(tmp_path: Path) -> None:
    class Double(Hook):
        async def before(self, pending: PendingCall) -> Rewrite | None:
            amount = pending.arguments.get("amount")
            return Rewrite({"amount": amount * 2}) if isinstance(amount, int) else None

    executor = Executor(CodeMode(registry(tmp_path)), hooks=Double())
    (outcome,) = await executor.execute([CALL])
    while isinstance(outcome, Interrupted):
        (outcome,) = await executor.execute([CALL], answers=Answers.approving(outcome.questions))
    assert outcome.text == "['paid 2', 'paid 4']\n"
    assert effects(tmp_path) == ["quote 2", "pay 2", "quote 4", "pay 4"]


async def test_repetition_does_not_sleep_again(tmp_path: Path) -> None:
    code = "await asyncio.sleep(59)\nprint('awake')"
    digest = sha256(b"asyncio.sleep\x0059.0").hexdigest()[:32]
    notes: list[Any] = [
        {"program": sha256(code.encode()).hexdigest(), "now": "2026-01-01T00:00:00+00:00", "seed": 1},
        {"call": 0, "digest": digest, "returned": None},
    ]

    async def keep(path: str, note: object, wait: bool) -> None:
        raise AssertionError(f"kept again: {note}")

    call = ToolCall("c", "run_code", {"code": code})
    async with asyncio.timeout(40):
        (outcome,) = await Executor(CodeMode(registry(tmp_path))).execute(
            [call], turn=Turn(keep=keep, kept={"c": notes})
        )
    assert outcome.text == "awake\n"


@pytest.mark.parametrize("change", ["program", "digest", "shape"])
async def test_foreign_record_is_refused(tmp_path: Path, change: str) -> None:
    agent, store = agent_in(tmp_path, [CALL])
    paused = await agent.run("pay", session="s")
    assert isinstance(paused, Paused)
    notes: list[Any] = [record.note for record in await store.read("s") if isinstance(record, Kept)]
    if change == "program":
        notes[0] = {**notes[0], "program": "0" * 64}
    elif change == "digest":
        notes[1] = {**notes[1], "digest": "0" * 32}
    else:
        notes[1] = {"call": "x"}
    executor = Executor(CodeMode(registry(tmp_path)))

    async def keep(path: str, note: object, wait: bool) -> None:
        pass

    (outcome,) = await executor.execute([CALL], turn=Turn(keep=keep, kept={"c": notes}))
    assert isinstance(outcome, Failed) and "does not fit" in outcome.error.message
    assert "stay done" in outcome.error.message
    assert effects(tmp_path) == ["quote 1"]
    store.close()


async def test_call_without_a_result_on_record_is_not_made_again(tmp_path: Path) -> None:
    code = """
try:
    await pay(amount=1)
except RuntimeError as error:
    print(error)
print(await quote(amount=2))
"""
    call, executor = (
        ToolCall("c", "run_code", {"code": code}),
        Executor(CodeMode(registry(tmp_path)), AllowEverything()),
    )
    notes: list[Any] = []

    async def keep(path: str, note: object, wait: bool) -> None:
        notes.append(note)

    await executor.execute([call], turn=Turn(keep=keep))
    begun = [note.get("function") for note in notes].index("pay")
    (outcome,) = await executor.execute([call], turn=Turn(keep=keep, kept={"c": notes[: begun + 1]}))
    assert effects(tmp_path) == ["pay 1", "quote 2", "quote 2"]
    assert "may have had an effect" in outcome.text and outcome.text.endswith("\n2\n")


@pytest.mark.parametrize("restarted", [False, True])
async def test_call_that_failed_may_be_made_again(restarted: bool) -> None:
    made: list[str] = []

    @tool(effect=Effect.WRITE)
    async def send() -> str:
        """Send the receipt."""
        made.append("send")
        if len(made) == 1:
            raise ToolFailed("busy")
        return "sent"

    code = "try:\n    await send()\nexcept Exception as error:\n    print(error)\nprint(await send())"
    call, executor = ToolCall("c", "run_code", {"code": code}), Executor(CodeMode(Registry(send)), AllowEverything())
    notes: list[Any] = []

    async def keep(path: str, note: object, wait: bool) -> None:
        notes.append(note)

    (outcome,) = await executor.execute([call], turn=Turn(keep=keep))
    if restarted:
        failed = next(place for place, note in enumerate(notes) if "raised" in note)
        (outcome,) = await executor.execute([call], turn=Turn(keep=keep, kept={"c": notes[: failed + 1]}))
    assert outcome.text == "busy\nsent\n" and len(made) == (3 if restarted else 2)


@pytest.mark.parametrize("change", ["removed", "fewer parameters"])
async def test_program_whose_tool_changed_does_nothing_twice(change: str) -> None:
    made: list[str] = []

    @tool(effect=Effect.WRITE)
    async def card(amount: int) -> str:
        """Pay by card."""
        made.append(f"card {amount}")
        return "by card"

    @tool(effect=Effect.WRITE)
    async def cash(amount: int) -> str:
        """Pay in cash."""
        made.append(f"cash {amount}")
        return "in cash"

    @tool(effect=Effect.WRITE)
    async def send(context: ToolContext) -> str:
        """Send the receipt; asks while it runs."""
        if context.answer is None:
            raise ApprovalRequired("send it?")
        return "sent"

    code = """
try:
    how = await card(5)
except Exception:
    how = await cash(5)
print(how, await send())
"""
    tools, call = Registry(card, cash, send), ToolCall("c", "run_code", {"code": code})
    executor = Executor(CodeMode(tools), AllowEverything())
    (waiting,) = await executor.execute([call])
    assert isinstance(waiting, Interrupted) and made == ["card 5"]
    tools.remove("card")
    if change == "fewer parameters":

        @tool(effect=Effect.WRITE, name="card")
        async def other() -> str:
            """Pay by card."""
            return "by card"

        tools.add(other)
    (outcome,) = await executor.execute([call], answers=Answers.approving(waiting.questions))
    assert made == ["card 5"] and isinstance(outcome, Failed) and "stay done" in outcome.error.message
    assert ("called card, which does not exist" in outcome.error.message) == (change == "removed")


@pytest.mark.parametrize("durable", [False, True])
@pytest.mark.parametrize(
    "second", [ToolCall("b", "publish", {}), ToolCall("b", "run_code", {"code": "await publish()"})]
)
async def test_later_call_waits_with_the_program(tmp_path: Path, second: ToolCall, durable: bool) -> None:
    made: list[str] = []

    @tool(effect=Effect.WRITE)
    async def publish() -> str:
        """Publish what is paid."""
        made.append(f"published after {effects(tmp_path)}")
        return "published"

    class AskToPay(Policy):
        def judge(self, access: Access, subject: Subject) -> Allow | Ask:
            return Ask("sure?") if subject.spec.name == "pay" else Allow()

    tools = registry(tmp_path)
    tools.add(publish)
    script = ScriptedProvider([ToolCall("a", "run_code", {"code": "await pay(amount=1)"}), second], "done")
    executor = Executor(CodeMode(tools, keep=["publish"]), Policies(AskToPay()))
    async with SqliteStore(tmp_path / "s.db") as store:
        agent = Agent(script, executor=executor, sessions=store if durable else MemoryStore())
        paused = await agent.run("go", session="s")
        assert isinstance(paused, Paused) and not made and not (tmp_path / "effects").exists()
        assert isinstance(await agent.resume("s", Answers.approving(paused.questions)), Done)
    assert effects(tmp_path) == ["pay 1"] and made == ["published after ['pay 1']"]


async def test_deferred_tools_are_found_inside_a_program(tmp_path: Path) -> None:
    @tool(effect=Effect.READ, deferred=True)
    async def weather(city: str) -> str:
        """Current weather of a city."""
        return f"sun in {city}"

    mode = CodeMode(Deferred(Registry(weather)))
    assert "tool_search" in mode.snapshot().tools["run_code"].spec.description
    code = "found = await tool_search(query='weather')\nprint('weather' in found)\nawait weather(city='Bonn')"
    outcome = await Executor(mode).run("run_code", {"code": code})
    assert outcome.text == 'True\n"sun in Bonn"'


@pytest.mark.parametrize("kills", [2, pytest.param(60, marks=pytest.mark.slow)])
def test_killed_programs_repeat_no_effect(tmp_path: Path, kills: int) -> None:
    done = 0
    for number in range(kills):
        folder = tmp_path / str(number)
        folder.mkdir()
        delay = 0.0005 * (number % 40)
        killed = run_script(VICTIM, str(folder), "kill", str(delay))
        assert killed.returncode in (-9, 0), killed.stderr
        resumed = run_script(VICTIM, str(folder), "resume")
        assert resumed.returncode == 0, resumed.stderr
        paid = (folder / "effects").read_text().split() if (folder / "effects").exists() else []
        assert len(paid) == len(set(paid)), f"an effect was repeated: {paid}"
        told = json.loads(resumed.stdout)
        # every payment is either reported as made, or as one whose fate is not known
        assert set(told["made"]) | set(told["unknown"]) == set(range(told["tried"])), told
        assert {str(number) for number in told["made"]} <= set(paid), told
        assert set(paid) <= {str(number) for number in (*told["made"], *told["unknown"])}, told
        done += killed.returncode == -9
    assert done > kills // 4
