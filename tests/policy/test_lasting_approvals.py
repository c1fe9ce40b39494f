"""An approval for longer than once is offered where it is found again, and nowhere else."""

from dataclasses import replace
from pathlib import Path
from typing import Literal

import pytest

from callwright import Executor, Registry
from callwright.app.questions import question_fields, read_reply
from callwright.cli.approval_card import approval_menu
from callwright.cli.approval_dialog import dialog_text, read_choice
from callwright.cli.render.text import Palette
from callwright.core.calls import Answers, Approve, Completed, Interrupted, Question, ToolCall
from callwright.core.decisions import QuestionKind
from callwright.core.errors import UsageError
from callwright.policy import Grants, PathContext, rules_of, standard_policies
from callwright.policy.grants import can_last, propose_for
from callwright.system.paths import Workspace
from callwright.toolbox import Move, coding_tools

CALLS = {
    "mode": ("session always", "bash", {"command": "touch a"}),
    "fence, command": ("session", "bash", {"command": "touch ../a"}),
    "fence, file": ("session always", "write", {"path": "../a", "content": "", "overwrite": True}),
    "guard, command": ("", "bash", {"command": "touch .envrc"}),
    "guard, file": ("", "write", {"path": ".envrc", "content": "", "overwrite": True}),
    "secret": ("", "read", {"path": ".env"}),
    "ask rule": ("", "bash", {"command": "mkdir -p public"}),
}


class Desk:
    """A workspace with the tools and the policies of the command."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        (folder / ".env").write_text("A=1")
        workspace = Workspace(folder, reads="anywhere", outside="ask")
        rules = rules_of(ask=["Bash(mkdir *)"])
        policies = standard_policies(workspace, rules=rules, more=[Grants(PathContext.within(workspace))])
        self.executor = Executor(Registry(*coding_tools(workspace), Move(workspace)), policies)

    async def question(self, call: ToolCall) -> Question:
        (outcome,) = await self.executor.execute([call])
        assert isinstance(outcome, Interrupted)
        return outcome.questions[0]


@pytest.mark.parametrize("scope", ["session", "always"])
@pytest.mark.parametrize("case", CALLS)
async def test_what_is_offered_holds(tmp_path: Path, case: str, scope: Literal["session", "always"]) -> None:
    scopes, tool, arguments = CALLS[case]
    desk, call = Desk(tmp_path / "w"), ToolCall("1", tool, arguments)
    question = await desk.question(call)
    offered = can_last(question) if scope == "session" else bool(propose_for(question).rules)
    assert offered == (scope in scopes.split()), question.source
    await desk.executor.execute([call], answers=Answers({question.id: Approve(scope=scope)}))
    if offered:
        (again,) = await desk.executor.execute([call])
        assert isinstance(again, Completed)


@pytest.mark.parametrize("case", CALLS)
async def test_every_place_offers_the_same(tmp_path: Path, case: str) -> None:
    scopes, tool, arguments = CALLS[case]
    desk = Desk(tmp_path / "w")
    question, toolset = await desk.question(ToolCall("1", tool, arguments)), desk.executor.registry
    keys = [entry.key for entry in approval_menu(question, Palette(False)).entries]
    dialog = "\n".join(dialog_text(question, Palette(False)).rows)
    assert question_fields(question, "s", toolset)["scopes"] == ["once", *scopes.split()]
    for scope, key in (("session", "s"), ("always", "a")):
        offered = scope in scopes.split()
        assert (key in keys) == offered
        assert ({"session": "s for this session", "always": "a always, as:"}[scope] in dialog) == offered
        assert isinstance(read_choice(key, question), Approve if offered else str)
        if not offered:
            with pytest.raises(UsageError, match=r"scope|always is not offered"):
                read_reply(question, {"approved": True, "scope": scope}, toolset, "the page")


@pytest.mark.parametrize(("kind", "running"), [("approval", True), ("input", False), ("auth", False)])
def test_what_is_about_one_run_only_can_not_last(kind: QuestionKind, running: bool) -> None:
    question = Question("1", "deploy", {}, "", "Deploy?", source="mode default")
    assert can_last(question) and not can_last(replace(question, kind=kind, running=running))


async def test_folder_that_may_be_moved_can_not_be_written_to_unasked(tmp_path: Path) -> None:
    desk, move = Desk(tmp_path / "w"), ToolCall("1", "move", {"source": "src", "destination": "lib"})
    (tmp_path / "w" / "src").mkdir()
    question = await desk.question(move)
    assert can_last(question) and "everything in it" in propose_for(question).refusal
    (moved,) = await desk.executor.execute([move], answers=Answers({question.id: Approve(scope="always")}))
    assert isinstance(moved, Completed)
    for place in ("src/a", "lib/a"):
        await desk.question(ToolCall("2", "write", {"path": place, "content": ""}))
