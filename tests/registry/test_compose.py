"""Toolsets made of toolsets: alive, ordered, and complete wrappers."""

import copy
from typing import Any

import pytest

from callwright import (
    Annotations,
    Effect,
    Executor,
    InvalidArguments,
    Limits,
    Registry,
    SchemaTool,
    ToolSpec,
    UsageError,
    tool,
)
from callwright.core.access import ReadPath
from callwright.registry import combined, filtered, prefixed, renamed
from callwright.registry.catalog import Catalog, Toolset
from callwright.registry.compose import RenamedTool
from callwright.tool.base import Tool
from callwright.tool.function import FunctionTool


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


def test_a_prefix_goes_before_names_and_aliases() -> None:
    source = Registry(make("search", "find"), make("read"))
    view = prefixed(source, "github_")
    assert names(view) == ["github_read", "github_search"]
    assert view.snapshot().get("github_find") is view.snapshot().get("github_search")
    assert view.snapshot().get("search") is None
    assert [spec.name for spec in view.snapshot().definitions] == ["github_read", "github_search"]


def test_some_tools_are_renamed_and_the_others_are_the_same_objects() -> None:
    read, write = make("read"), make("write")
    view = renamed(Registry(read, write), {"read": "show"})
    assert names(view) == ["show", "write"]
    assert view.snapshot().get("write") is write


def test_names_may_be_swapped() -> None:
    catalog = renamed(Registry(make("a"), make("b")), {"a": "b", "b": "a"}).snapshot()
    assert [catalog.tools[name].inner.name for name in "ab"] == ["b", "a"]  # type: ignore[attr-defined] - renamed


def test_a_renamed_tool_does_not_displace_one_that_keeps_its_name() -> None:
    b = make("b")
    for source in (Registry(make("a"), b), Registry(b, make("a"))):
        assert renamed(source, {"a": "b"}).snapshot().get("b") is b


def test_only_what_the_predicate_accepts_is_kept() -> None:
    view = filtered(Registry(make("read"), make("write")), lambda spec: spec.name != "write")
    assert names(view) == ["read"]
    assert view.snapshot().get("write") is None


def test_the_first_source_wins_a_clash() -> None:
    local, remote = make("read"), make("read")
    assert combined(Registry(local), Registry(remote, make("more"))).snapshot().get("read") is local
    assert combined(Registry(remote), Registry(local)).snapshot().get("read") is remote


def test_a_later_source_cannot_take_an_alias_of_an_earlier_one() -> None:
    local = make("delete_file", "remove_file")
    view = combined(Registry(local), Registry(make("remove_file"), make("other", "delete_file")))
    assert names(view) == ["delete_file", "other"]
    assert view.snapshot().get("remove_file") is view.snapshot().get("delete_file") is local


def test_composed_toolsets_stay_alive_with_their_sources() -> None:
    local, remote = Registry(make("read")), Registry(make("search"))
    view = combined(local, prefixed(filtered(remote, lambda spec: spec.name != "hidden"), "gh_"))
    seen = view.changes
    assert names(view) == ["gh_search", "read"]
    remote.add(make("issue")).add(make("hidden"))
    local.remove("read")
    assert names(view) == ["gh_issue", "gh_search"]
    assert view.changes > seen


def test_a_composed_snapshot_is_the_same_object_until_a_source_changes() -> None:
    source = Registry(make("a"))
    view = combined(prefixed(source, "x_"), source)
    before = view.snapshot()
    assert view.snapshot() is before
    assert view.snapshot().definitions is before.definitions
    source.add(make("b"))
    assert view.snapshot() is not before
    assert sorted(before.tools) == ["a", "x_a"]


def test_revealed_tools_stay_revealed_through_every_view() -> None:
    source = Registry(make("a"), make("late", deferred=True))
    view = combined(filtered(prefixed(source, "x_"), lambda _: True), Registry(make("b")))
    assert [spec.name for spec in view.snapshot().definitions] == ["b", "x_a"]
    source.reveal("late")
    assert [spec.name for spec in view.snapshot().definitions] == ["b", "x_a", "x_late"]


def test_combining_nothing_is_an_empty_toolset() -> None:
    assert len(combined().snapshot()) == 0


@pytest.mark.parametrize("prefix", ["git hub_", "é_", "x" * 128])
def test_a_prefix_no_name_can_have_is_refused_at_once(prefix: str) -> None:
    with pytest.raises(UsageError, match="is not valid"):
        prefixed(Registry(), prefix)


def test_a_new_name_that_is_none_is_refused_at_once() -> None:
    with pytest.raises(UsageError, match="is not valid"):
        renamed(Registry(), {"a": "not a name"})


def test_a_prefix_that_makes_a_name_too_long_does_not_cost_the_other_tools() -> None:
    source = Registry(make("a" * 127), make("a" * 126 + "b"), make("short"))
    view = prefixed(source, "server_")
    assert len(names(view)) == 3
    assert all(len(name) <= 128 for name in names(view))
    assert "server_short" in names(view)


def test_a_foreign_name_does_not_cost_the_other_tools() -> None:
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


def test_a_renamed_tool_is_the_inner_one_but_for_its_name() -> None:
    inner = SchemaTool(DETAILED, _echo, accesses=lambda arguments: [ReadPath(str(arguments["path"]))])
    outer = RenamedTool(inner, "outer", ("alias",))
    assert isinstance(outer, Tool)
    for name in ToolSpec.__slots__:
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


def test_a_renamed_function_tool_can_still_be_called_and_copied() -> None:
    outer = RenamedTool(make("inner"), "outer")
    assert copy.copy(outer).spec == outer.spec
    assert outer.traits.name == "inner"
    assert outer.direct is not None


async def test_a_renamed_tool_runs_like_the_inner_one() -> None:
    view = prefixed(Registry(make("read", "cat")), "x.")
    executor: Any = Executor(view)
    for name in ("x.read", "x_read", "x.cat"):
        assert (await executor.run(name, {"path": "p"})).text == "read p"
