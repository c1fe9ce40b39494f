"""`Registry`: adding, replacing, removing, looking up, and snapshots of running turns."""

import random
import subprocess
import sys
import threading
from typing import Any

import pytest

from callwright import Annotations, Effect, Registry, SchemaTool, ToolSpec, TypedTool, UsageError, tool
from callwright.core.events import ToolsChanged
from callwright.tool.function import FunctionTool


def _nothing(arguments: object) -> None: ...


def make(name: str, *aliases: str, deferred: bool = False, effect: Effect = Effect.WRITE) -> FunctionTool:
    @tool(name=name, aliases=aliases, deferred=deferred, effect=effect)
    def act(path: str) -> str:
        """Act on a path."""
        return f"{name} {path}"

    return act


def test_empty_registry_has_no_tools() -> None:
    registry = Registry()
    assert registry.names() == []
    assert len(registry) == 0
    assert registry.definitions() == ()


def test_add_is_chainable() -> None:
    read, write = make("read"), make("write")
    registry = Registry().add(write).add(read)
    assert registry.get("read") is read
    assert registry["write"] is write
    assert registry.get("nonexistent") is None
    assert "read" in registry
    assert "nonexistent" not in registry
    assert len(registry) == 2
    with pytest.raises(KeyError):
        _ = registry["nonexistent"]


def test_names_and_definitions_are_sorted() -> None:
    tools = [make(name) for name in ("write", "glob", "read", "grep", "bash", "edit")]
    random.shuffle(tools)
    registry = Registry(*tools)
    assert registry.names() == ["bash", "edit", "glob", "grep", "read", "write"]
    assert [spec.name for spec in registry.definitions()] == registry.names()
    assert sorted(tool.spec.name for tool in registry) == registry.names()


def test_typed_and_schema_tools_coexist() -> None:
    written = SchemaTool(ToolSpec("written", "By hand.", {"type": "object"}), _nothing)
    registry = Registry(make("typed"), written)
    assert registry.get("written") is written
    assert registry.names() == ["typed", "written"]


def test_definitions_are_complete() -> None:
    for spec in Registry(make("a"), make("b"), make("c")).definitions():
        assert spec.name
        assert spec.description
        assert spec.input_schema["type"] == "object"


def test_same_name_replaces_the_tool() -> None:
    first, second = make("x"), make("x")
    registry = Registry(first, make("y")).add(second)
    assert len(registry) == 2
    assert registry.get("x") is second
    assert [tool.spec.name for tool in registry] == ["x", "y"]


def test_strict_registry_refuses_same_name() -> None:
    registry = Registry(make("x"), strict=True)
    with pytest.raises(UsageError, match="the tool 'x' exists already"):
        registry.add(make("x"))
    assert registry.changes == 1


def test_alias_finds_tool_but_is_not_advertised() -> None:
    delete = make("delete_file", "remove_file", "rm")
    registry = Registry(delete)
    assert registry.get("remove_file") is registry.get("rm") is registry.get("delete_file") is delete
    assert "rm" in registry
    assert registry.names() == ["delete_file"]
    assert [spec.name for spec in registry.definitions()] == ["delete_file"]


def test_names_and_aliases_never_clash() -> None:
    for tools in ([make("a"), make("b", "a")], [make("b", "a"), make("a")], [make("b", "x"), make("c", "x")]):
        with pytest.raises(UsageError, match="alias"):
            Registry(*tools)
    assert Registry(make("a", "a")).get("a")


def test_refused_tool_changes_nothing() -> None:
    registry = Registry(make("a", "x"))
    before, snapshot = registry.changes, registry.snapshot()
    with pytest.raises(UsageError):
        registry.add(make("b", "x"))
    assert (registry.changes, registry.snapshot()) == (before, snapshot)


def test_removed_tool_frees_its_aliases() -> None:
    registry = Registry(make("a", "x")).add(make("a", "y")).add(make("b", "x"))
    assert registry.get("x") is registry.get("b")
    registry.remove("b")
    assert registry.get("x") is None
    registry.add(make("x"))
    assert registry.names() == ["a", "x"]


def test_remove_returns_tool_or_refuses_unknown() -> None:
    read = make("read")
    registry = Registry(read, make("write"))
    assert registry.remove("read") is read
    assert registry.get("read") is None
    with pytest.raises(UsageError, match="no tool 'read' to remove; known tools: write"):
        registry.remove("read")


def test_merge_adds_all_tools() -> None:
    files, shell = Registry(make("read"), make("write")), Registry(make("bash"))
    assert files.merge(shell) is files
    assert files.names() == ["bash", "read", "write"]
    assert shell.names() == ["bash"]


def test_refused_merge_changes_nothing() -> None:
    registry, other = Registry(make("a", "x")), Registry(make("b"), make("c", "x"))
    before, snapshot = registry.changes, registry.snapshot()
    with pytest.raises(UsageError, match="alias 'x' is taken by a"):
        registry.merge(other)
    assert (registry.changes, registry.snapshot()) == (before, snapshot)


def test_tool_may_be_in_two_registries() -> None:
    read = make("read")
    one, two = Registry(read), Registry(read)
    one.remove("read")
    assert two.get("read") is read


def test_non_tool_is_refused_with_a_fix() -> None:
    def plain(path: str) -> str:
        return path

    class Typed(TypedTool[Any]):
        pass

    for thing, message in (
        (plain, "decorate the function with @tool"),
        (Typed, "make an instance of it"),
        ([make("read")], r"write Registry\(\*tools\)"),
        (5, "expected a tool, got 5"),
    ):
        with pytest.raises(UsageError, match=message):
            Registry().add(thing)  # type: ignore[arg-type] - that it is refused is the point


def test_method_without_its_instance_is_refused() -> None:
    class Shelf:
        @tool
        def count(self, kind: str) -> int:
            """Count the books."""
            return len(kind)

    assert Registry(Shelf().count).names() == ["count"]
    with pytest.raises(UsageError, match=r"Shelf\.count is a method; .* as in Shelf\(…\)\.count$"):
        Registry(Shelf.count)


@pytest.mark.parametrize("name", ["not a name", "é", "x" * 129])
def test_invalid_tool_name_is_refused(name: str) -> None:
    with pytest.raises(UsageError, match="is not valid"):
        Registry(SchemaTool(ToolSpec(name, "Act.", {}), _nothing))
    with pytest.raises(UsageError, match="is not valid"):
        Registry(SchemaTool(ToolSpec("a", "Act.", {}, aliases=(name,)), _nothing))


def test_definitions_are_cached_until_change() -> None:
    registry = Registry(make("read"), make("write"))
    before = registry.definitions()
    registry.get("read")
    registry.get("nothing")
    assert registry.definitions() is before
    registry.add(make("bash"))
    assert registry.definitions() is not before
    assert before[0] is registry.definitions()[1]


def test_add_does_not_derive_the_schema() -> None:
    read = make("read")
    registry = Registry(read)
    registry.get("read")
    assert vars(read)["_spec"] is None
    registry.definitions()
    assert vars(read)["_spec"] is not None


def test_deferred_tools_are_shown_after_reveal() -> None:
    registry = Registry(make("b"), make("a_late", deferred=True), make("c_late", deferred=True), make("a"))
    assert [spec.name for spec in registry.definitions()] == ["a", "b"]
    assert registry.get("c_late") is not None
    before = registry.definitions()
    registry.reveal("c_late")
    registry.reveal("a_late", "c_late", "nothing", "a")
    after = registry.definitions()
    assert [spec.name for spec in after] == ["a", "b", "c_late", "a_late"]
    assert after[: len(before)] == before
    registry.remove("c_late")
    assert [spec.name for spec in registry.add(make("c_late", deferred=True)).definitions()] == ["a", "b", "a_late"]


def test_listeners_are_called_until_unsubscribed() -> None:
    events: list[ToolsChanged] = []
    registry = Registry(make("old"))
    leave = registry.subscribe(events.append)
    registry.add(make("new")).add(make("old"))
    registry.remove("old")
    leave()
    leave()
    registry.add(make("later"))
    assert events == [ToolsChanged(added=("new",)), ToolsChanged(replaced=("old",)), ToolsChanged(removed=("old",))]
    assert registry.changes == 5


def test_listener_sees_the_changed_registry() -> None:
    registry = Registry()
    seen: list[list[str]] = []
    registry.subscribe(lambda _: seen.append([spec.name for spec in registry.definitions()]))
    registry.add(make("a")).add(make("b"))
    assert seen == [["a"], ["a", "b"]]


def test_snapshot_is_immutable() -> None:
    registry = Registry(make("a"), make("b"))
    catalog = registry.snapshot()
    assert registry.snapshot() is catalog
    registry.remove("a")
    registry.add(make("b"))
    registry.add(make("c"))
    assert [spec.name for spec in catalog.definitions] == ["a", "b"]
    assert catalog.get("a") is not None
    assert catalog.get("c") is None
    assert catalog.get("b") is not registry.get("b")
    assert (len(catalog), "a" in catalog, 5 in catalog) == (2, True, False)
    with pytest.raises(TypeError):
        catalog.tools["x"] = make("x")  # type: ignore[index] - that it is refused is the point


def test_concurrent_change_is_never_lost() -> None:
    registry = Registry()
    stop = threading.Event()

    def look() -> None:
        while not stop.is_set():
            registry.snapshot()

    watchers = [threading.Thread(target=look) for _ in range(2)]
    for watcher in watchers:
        watcher.start()
    try:
        for number in range(200):
            registry.add(make(f"t{number}"))
            assert registry.get(f"t{number}") is not None
    finally:
        stop.set()
        for watcher in watchers:
            watcher.join()


def test_wire_name_beats_alias() -> None:
    dotted, other = make("fs.read"), make("show", "fs_read")
    registry = Registry(dotted, other)
    assert registry.snapshot().wire_names["fs.read"] == "fs_read"
    assert registry.get("fs_read") is dotted


def test_nearest_ignores_case_and_dashes() -> None:
    catalog = Registry(make("read_file", "cat_file"), make("write_file"), make("bash")).snapshot()
    assert catalog.nearest("Read-File")[0] == "read_file"
    assert catalog.nearest("cat_fil")[0] == "read_file"
    assert catalog.nearest("zzz") == []
    assert catalog.nearest("x" * 1_000_000) == []


def test_tools_are_filtered_by_spec() -> None:
    registry = Registry(*(make(name, effect=Effect.READ) for name in ("read", "glob", "grep")), make("write"))
    reading = sorted(tool.spec.name for tool in registry if tool.spec.annotations.effect is Effect.READ)
    assert reading == ["glob", "grep", "read"]
    assert registry["write"].spec.annotations == Annotations()


def test_definition_tokens_are_estimated() -> None:
    small, large = Registry(make("a")), Registry(*(make(f"t{number}") for number in range(10)))
    assert 0 < small.snapshot().definition_tokens < large.snapshot().definition_tokens


SEEDED = """
from callwright import Registry, tool
from callwright.core.json import compact
def make(name):
    @tool(name=name, aliases=[name + ".old"])
    def act(path: str): "Act."
    return act
registry = Registry(*(make(name) for name in {"fs.read", "fs_read", "b", "a", "fs-read", "x.y.z", "c" * 100}))
print([compact([spec.name, spec.input_schema]) for spec in registry.definitions()], registry.names())
print(sorted(registry.snapshot().wire_names.items()))
"""


def test_definitions_do_not_depend_on_hash_seed() -> None:
    seen = {
        subprocess.run(
            [sys.executable, "-c", SEEDED], env={"PYTHONHASHSEED": seed}, capture_output=True, text=True, check=True
        ).stdout
        for seed in ("0", "1", "2")
    }
    assert len(seen) == 1


@pytest.mark.slow
def test_registry_scales_to_ten_thousand_tools() -> None:
    schema = {"type": "object"}
    tools = [SchemaTool(ToolSpec(f"t.{number}", "Act.", schema), _nothing) for number in range(10_000)]
    registry = Registry(*tools)
    assert len(registry.definitions()) == 10_000
    assert registry.definitions() is registry.definitions()
    assert registry.get("t.9999") is tools[9999]
    assert registry.get("t_9999") is tools[9999]
    registry.remove("t.5000")
    assert len(registry.definitions()) == 9_999
