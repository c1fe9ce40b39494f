"""Tool names: no server can use the name of another server's tool."""

import re

from hypothesis import given, strategies as st

from callwright.core.spec import check_name
from callwright.mcp.config import may_be_hashed, server_names, tool_names

words = st.text(st.sampled_from("ab_-.A /é"), max_size=12)


def test_plain_names_stay_as_they_are():
    assert server_names(["github", "my_server"]) == {"github": "github", "my_server": "my_server"}
    assert tool_names("github", ["create_issue"]) == {"create_issue": "mcp__github__create_issue"}


def test_servers_cannot_share_a_tool_name():
    servers = server_names(["a", "a__b", "a_"])
    one = tool_names(servers["a"], ["b__c", "_b"])
    two = tool_names(servers["a__b"], ["c"])
    three = tool_names(servers["a_"], ["b__c", "b"])
    full = [*one.values(), *two.values(), *three.values()]
    assert len(set(full)) == len(full)


def test_names_differing_in_case_stay_distinct():
    given_names = tool_names("a", ["Delete", "delete", "list"])
    folded = [name.casefold() for name in given_names.values()]
    assert len(set(folded)) == 3
    assert given_names["list"] == "mcp__a__list"


@given(st.dictionaries(st.text(min_size=1, max_size=8), st.lists(words, max_size=5), max_size=5))
def test_generated_tool_names_are_unique(catalogue: dict[str, list[str]]):
    servers = server_names(catalogue)
    full = [name for server, tools in catalogue.items() for name in tool_names(servers[server], tools).values()]
    assert len({name.casefold() for name in full}) == len(full)
    for name in full:
        check_name(name)
        assert len(name) <= 128


@given(st.text(st.sampled_from("ab -_é"), min_size=1, max_size=12))
def test_names_with_a_hash_are_recognised(name: str):
    full = tool_names("a", [name])[name]
    assert full == f"mcp__a__{name}" or may_be_hashed(full)
    assert may_be_hashed("mcp__a__read-c16f5dd") and not may_be_hashed("mcp__a__read-file")


@given(st.sets(st.text(min_size=1, max_size=200), max_size=6))
def test_server_name_end_is_unambiguous(names: set[str]):
    for name in server_names(names).values():
        assert re.fullmatch(r"[A-Za-z0-9-]+(_[A-Za-z0-9-]+)*", name)
