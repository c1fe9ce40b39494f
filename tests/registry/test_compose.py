"""Prefixed, renamed, filtered and combined toolsets."""

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest

from callwright import (
    Annotations,
    Effect,
    Executor,
    InvalidArguments,
    Limits,
    Registry,
    SchemaTool,
    ToolCall,
    ToolSpec,
    Turn,
    UsageError,
    tool,
)
from callwright.core.access import ReadPath
from callwright.policy import AllowEverything
from callwright.registry import combined, filtered, prefixed, renamed, withheld
from callwright.registry.catalog import Catalog, Toolset
from callwright.registry.compose import RenamedTool, SlimTool
from callwright.system.paths import Workspace
from callwright.tool.base import State, Tool
from callwright.tool.function import FunctionTool
from callwright.toolbox import Bash, Edit, Read


def _echo(arguments: object) -> object:
    return arguments


def make(name: str, *aliases: str, deferred: bool = False) -> FunctionTool:
    @tool(name=name, aliases=aliases, deferred=deferred, effect=Effect.READ)
    async def act(path: str = ".") -> str:
        """Act on a path."""
        return f"{name} {path}"

    return act


def names(toolset: Toolset) -> list[str]:
    return sorted(toolset.snapshot().tools)


def test_prefix_applies_to_names_and_aliases() -> None:
    source = Registry(make("search", "find"), make("read"))
    view = prefixed(source, "github_")
    assert names(view) == ["github_read", "github_search"]
    assert view.snapshot().get("github_find") is view.snapshot().get("github_search")
    assert view.snapshot().get("search") is None
    assert [spec.name for spec in view.snapshot().definitions] == ["github_read", "github_search"]


def test_renaming_keeps_other_tools_identical() -> None:
    read, write = make("read"), make("write")
    view = renamed(Registry(read, write), {"read": "show"})
    assert names(view) == ["show", "write"]
    assert view.snapshot().get("write") is write


def test_names_can_be_swapped() -> None:
    catalog = renamed(Registry(make("a"), make("b")), {"a": "b", "b": "a"}).snapshot()
    assert [catalog.tools[name].inner.name for name in "ab"] == ["b", "a"]  # type: ignore[attr-defined] - renamed


def test_renamed_tool_never_displaces_another() -> None:
    b = make("b")
    for source in (Registry(make("a"), b), Registry(b, make("a"))):
        assert renamed(source, {"a": "b"}).snapshot().get("b") is b


def test_filter_keeps_accepted_tools() -> None:
    view = filtered(Registry(make("read"), make("write")), lambda spec: spec.name != "write")
    assert names(view) == ["read"]
    assert view.snapshot().get("write") is None


def test_first_source_wins_a_clash() -> None:
    local, remote = make("read"), make("read")
    assert combined(Registry(local), Registry(remote, make("more"))).snapshot().get("read") is local
    assert combined(Registry(remote), Registry(local)).snapshot().get("read") is remote


def test_later_source_cannot_take_an_alias() -> None:
    local = make("delete_file", "remove_file")
    view = combined(Registry(local), Registry(make("remove_file"), make("other", "delete_file")))
    assert names(view) == ["delete_file", "other"]
    assert view.snapshot().get("remove_file") is view.snapshot().get("delete_file") is local


def test_views_follow_their_sources() -> None:
    local, remote = Registry(make("read")), Registry(make("search"))
    view = combined(local, prefixed(filtered(remote, lambda spec: spec.name != "hidden"), "gh_"))
    seen = view.changes
    assert names(view) == ["gh_search", "read"]
    remote.add(make("issue")).add(make("hidden"))
    local.remove("read")
    assert names(view) == ["gh_issue", "gh_search"]
    assert view.changes > seen


def test_view_snapshot_is_cached_until_change() -> None:
    source = Registry(make("a"))
    view = combined(prefixed(source, "x_"), source)
    before = view.snapshot()
    assert view.snapshot() is before
    assert view.snapshot().definitions is before.definitions
    source.add(make("b"))
    assert view.snapshot() is not before
    assert sorted(before.tools) == ["a", "x_a"]


def test_views_keep_revealed_tools() -> None:
    source = Registry(make("a"), make("late", deferred=True))
    view = combined(filtered(prefixed(source, "x_"), lambda _: True), Registry(make("b")))
    assert [spec.name for spec in view.snapshot().definitions] == ["b", "x_a"]
    source.reveal("late")
    assert [spec.name for spec in view.snapshot().definitions] == ["b", "x_a", "x_late"]


def test_combining_nothing_is_empty() -> None:
    assert len(combined().snapshot()) == 0


@pytest.mark.parametrize("prefix", ["git hub_", "é_", "x" * 128])
def test_invalid_prefix_is_refused(prefix: str) -> None:
    with pytest.raises(UsageError, match=f"the prefix '{prefix}' cannot start the name of a tool: .* is not valid"):
        prefixed(Registry(), prefix)


@pytest.mark.parametrize("wrong", [[Registry()], None, make("a")])
def test_source_that_is_no_toolset_is_refused(wrong: Any) -> None:
    views: list[Callable[[Any], Toolset]] = [
        combined,
        lambda each: prefixed(each, "a_"),
        lambda each: filtered(each, bool),
    ]
    for view in views:
        with pytest.raises(UsageError, match=r"expected a toolset, got .*; pass a Registry or another toolset"):
            view(wrong)


def test_invalid_new_name_is_refused() -> None:
    with pytest.raises(UsageError, match="is not valid"):
        renamed(Registry(), {"a": "not a name"})


def test_one_new_name_for_two_tools_is_refused() -> None:
    with pytest.raises(UsageError, match="'a' and 'c' would both be renamed to 'x'"):
        renamed(Registry(make("a"), make("c")), {"a": "x", "b": "y", "c": "x"})


def test_former_name_of_a_tool_may_have_the_same_new_name() -> None:
    assert names(renamed(Registry(make("a")), {"former": "x", "a": "x"})) == ["x"]


def test_too_long_prefixed_name_is_cut() -> None:
    source = Registry(make("a" * 127), make("a" * 126 + "b"), make("short"))
    view = prefixed(source, "server_")
    assert len(names(view)) == 3
    assert all(len(name) <= 128 for name in names(view))
    assert "server_short" in names(view)


def test_invalid_server_name_keeps_other_tools() -> None:
    class Server:
        changes = 0

        def __init__(self) -> None:
            foreign = SchemaTool(ToolSpec("Find things!", "Find things.", {}), _echo)
            self._catalog = Catalog({"Find things!": foreign, "read": make("read")})

        def snapshot(self) -> Catalog:
            return self._catalog

    catalog = combined(Registry(make("read")), prefixed(Server(), "srv_")).snapshot()
    assert sorted(catalog.tools) == ["read", "srv_Find things!", "srv_read"]
    assert catalog.get("srv_Find_things_") is catalog.get("srv_Find things!") is not None


DETAILED = ToolSpec(
    "inner",
    "Do something special.",
    {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]},
    output_schema={"type": "object"},
    annotations=Annotations(Effect.READ, idempotent=True, parallel=False, open_world=True, needs_approval=True),
    limits=Limits(1.5, 77, 2),
    aliases=("old",),
    group="mcp:x",
    deferred=True,
    search_hint="some words here",
    origin="server",
    metadata={"a": 1},
)


def test_renamed_tool_delegates_to_inner() -> None:
    inner = SchemaTool(DETAILED, _echo, accesses=lambda arguments: [ReadPath(str(arguments["path"]))])
    outer = RenamedTool(inner, "outer", ("alias",))
    assert isinstance(outer, Tool)
    for name in ToolSpec.__match_args__:
        expected = {"name": "outer", "aliases": ("alias",)}.get(name, getattr(DETAILED, name))
        assert getattr(outer.spec, name) == expected, name
    assert outer.spec is outer.spec
    for name in vars(inner):
        if name != "spec":
            assert getattr(outer, name) is getattr(inner, name), name
    assert outer.bind({"path": "x"}).accesses() == (ReadPath("x"),)
    with pytest.raises(InvalidArguments, match="path"):
        outer.bind({})
    with pytest.raises(AttributeError):
        _ = outer.nothing


def test_renamed_tool_can_be_called_and_copied() -> None:
    outer = RenamedTool(make("inner"), "outer")
    assert copy.copy(outer).spec == outer.spec
    assert outer.traits.name == "inner"
    assert outer.direct is not None


async def test_renamed_tool_runs_like_inner() -> None:
    view = prefixed(Registry(make("read", "cat")), "x.")
    executor: Any = Executor(view)
    for name in ("x.read", "x_read", "x.cat"):
        assert (await executor.run(name, {"path": "p"})).text == "read p"


async def test_renamed_tool_keeps_what_belongs_to_sessions(tmp_path: Path) -> None:
    """A shell remembers its folder for each session, also under another name, on every Python."""
    (tmp_path / "inner").mkdir()
    executor = Executor(prefixed(Registry(Bash(Workspace(tmp_path))), "x."), AllowEverything())
    states = {"one": State(), "two": State()}

    async def run(session: str, command: str) -> str:
        call = ToolCall(session, "x.bash", {"command": command})
        (outcome,) = await executor.execute([call], turn=Turn(session, state=states[session]))
        return outcome.text.split("\n")[0]

    await run("one", "cd inner")
    assert [await run("one", "pwd"), await run("two", "pwd")] == [str(tmp_path / "inner"), str(tmp_path)]


def test_slim_tool_shows_some_fields_and_accepts_all(tmp_path: Path) -> None:
    slim = SlimTool(Read(Workspace(tmp_path)), ("path",))
    assert set(cast("Any", slim.spec.input_schema["properties"])) == {"path"}
    assert slim.spec.name == "read" and slim.spec.annotations == slim.inner.spec.annotations
    assert slim.bind({"path": "a", "limit": 3}).arguments["limit"] == 3
    with pytest.raises(InvalidArguments, match="limit"):
        slim.bind({"path": "a", "limit": "many"})


def test_slim_tool_shows_no_null_and_its_own_description(tmp_path: Path) -> None:
    slim = SlimTool(Edit(Workspace(tmp_path)), ("path", "old_string", "new_string"), "Replace text.")
    schema = cast("Any", slim.spec.input_schema)
    assert [*schema["required"]] == ["path", "old_string", "new_string"] and slim.spec.description == "Replace text."
    assert all(field["type"] == "string" and "anyOf" not in field for field in schema["properties"].values())
    assert slim.bind({"path": "a", "edits": [{"old_string": "x", "new_string": ""}]}).arguments["edits"]


def test_views_keep_the_reasons_of_withheld_tools() -> None:
    source = withheld(Registry(Read(), Bash()), lambda spec: "no commands" if spec.name == "bash" else "")
    assert filtered(source, lambda _: True).snapshot().withheld["bash"] == "no commands"
    assert prefixed(source, "old.").snapshot().withheld["old.bash"] == "no commands"
    assert renamed(source, {"bash": "shell"}).snapshot().withheld["shell"] == "no commands"
    assert combined(Registry(Read()), source).snapshot().withheld["bash"] == "no commands"


def test_later_source_does_not_take_the_name_of_a_withheld_tool() -> None:
    source = withheld(Registry(Bash()), lambda _: "no commands")
    both = combined(source, Registry(Read(), Bash())).snapshot()
    assert both.get("bash") is None and both.withheld["bash"] == "no commands" and "read" in both
    assert "bash" in combined(Registry(Bash()), source).snapshot()
