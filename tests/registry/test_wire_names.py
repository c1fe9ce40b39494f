"""Wire names of tools."""

import re
from random import Random
from string import ascii_letters, digits

from hypothesis import example, given, strategies as st

from callwright import Effect, Registry, tool
from callwright.providers.tool_encoding import to_gemini
from callwright.registry import wire_names

ALLOWED = re.compile(r"^[a-zA-Z_][a-zA-Z0-9_-]{0,63}\Z")
CLOSE = st.text("ab._-", min_size=1, max_size=4)
LONG = st.tuples(CLOSE, CLOSE).map(("x" * 70).join)
NAMES = st.lists(CLOSE | LONG | st.text(ascii_letters + digits + "._-é/", max_size=80), max_size=12)


@tool(name="3d_print", effect=Effect.READ)
def print_model(name: str) -> str:
    """Print."""
    return name


@given(NAMES)
@example(["a.b", "a_b", "a-b", "a/b"])
@example(["", ".", "_"])
@example(["3d", "_3d", "-3d", "3" * 64, "3" * 65, "é3"])
def test_wire_names_are_unique_and_allowed(names: list[str]) -> None:
    given_names = wire_names(names)
    assert given_names.keys() == set(names)
    assert all(ALLOWED.match(wire) for wire in given_names.values())
    assert len(set(given_names.values())) == len(given_names)


@given(NAMES, st.randoms())
def test_wire_names_ignore_order(names: list[str], random: Random) -> None:
    shuffled = list(names)
    random.shuffle(shuffled)
    assert wire_names(names) == wire_names(shuffled)


@given(NAMES)
def test_allowed_name_is_unchanged(names: list[str]) -> None:
    assert all(wire == name for name, wire in wire_names(names).items() if ALLOWED.match(name))


@given(NAMES)
def test_hash_clash_with_another_name_is_avoided(names: list[str]) -> None:
    taken = [*names, *wire_names(names).values()]
    given_names = wire_names(taken)
    assert len(set(given_names.values())) == len(set(taken))


def test_dotted_name_becomes_underscored() -> None:
    assert wire_names(["fs.read", "mcp.github.search"]) == {
        "fs.read": "fs_read",
        "mcp.github.search": "mcp_github_search",
    }


def test_name_that_begins_with_a_digit_or_dash_gets_an_underscore() -> None:
    assert wire_names(["3d_print", "-dash"]) == {"3d_print": "_3d_print", "-dash": "_-dash"}


def test_gemini_takes_a_tool_whose_name_begins_with_a_digit() -> None:
    catalog = Registry(print_model).snapshot()
    assert to_gemini(catalog.tools["3d_print"].spec, catalog.wire_names["3d_print"]).payload["name"] == "_3d_print"
    found = catalog.get("_3d_print")
    assert found is not None and found.spec.name == "3d_print"


def test_clashing_names_get_a_hash() -> None:
    wires = wire_names(["fs.read", "fs_read"])
    assert wires["fs_read"] == "fs_read"
    assert re.fullmatch(r"fs_read_[0-9a-f]{7}", wires["fs.read"])
