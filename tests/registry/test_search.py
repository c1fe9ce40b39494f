"""`ToolIndex`: results, their order, and independence of the order of adding."""

import os
import subprocess
import sys
import threading
import tracemalloc
from dataclasses import replace
from types import FrameType
from typing import Any

import pytest
from hypothesis import given, strategies as st

from callwright.core.errors import UsageError
from callwright.core.json import JsonObject
from callwright.core.spec import ToolSpec
from callwright.registry.search.index import Hit, ToolIndex

_PATH: JsonObject = {"type": "object", "properties": {"path": {"type": "string", "description": "File to work on"}}}


def _spec(name: str, description: str, schema: JsonObject = _PATH, hint: str = "", *aliases: str) -> ToolSpec:
    return ToolSpec(name, description, schema, search_hint=hint, aliases=aliases)


_WEATHER: JsonObject = {
    "type": "object",
    "properties": {
        "place": {"type": "string", "description": "Town to look at"},
        "unit": {"type": "string", "enum": ["celsius", "fahrenheit"]},
        "window": {
            "type": "array",
            "items": {"type": "object", "properties": {"sunrise": {"type": "string", "description": "Dawn"}}},
        },
    },
}
SPECS = [
    _spec("read_file", "Return the text of a file."),
    _spec("write_file", "Replace the text of a file."),
    _spec("delete_file", "Delete a file for good.", _PATH, "unlink trash"),
    _spec("listDirectory", "List what a folder holds."),
    _spec("get_current_weather", "Current weather at a place.", _WEATHER),
    _spec("github.create_issue", "Open an issue in a repository.", {"type": "object"}),
    _spec("github.list_pull_requests", "List the pull requests of a repository.", {"type": "object"}),
    _spec("take_screenshot", "Capture the screen as an image.", {"type": "object"}, "", "grab_display"),
    _spec("send_email", "Send a message to a person.", {"type": "object"}),
    _spec("convert_currency", "Convert an amount of money between currencies.", {"type": "object"}),
    _spec("help", "What this program does.", {"type": "object"}),
    _spec("search", "Search the web.", {"type": "object"}),
]
INDEX = ToolIndex(SPECS)
NAMES = [spec.name for spec in SPECS]


def names(hits: list[Hit]) -> list[str]:
    return [hit.name for hit in hits]


@pytest.mark.parametrize("name", NAMES)
def test_tool_name_query_ranks_first(name: str) -> None:
    assert INDEX.search(name)[0].name == name
    assert INDEX.search(name.replace("_", " "))[0].name == name
    assert INDEX.search(name.upper() if "_" in name else name)[0].name == name


def test_identifier_in_sentence_ranks_first() -> None:
    hits = INDEX.search(
        "the weather page is broken, list what is open, then use `github.create_issue` on the repository"
    )
    assert hits[0].name == "github.create_issue"


def test_plain_word_in_sentence_is_not_a_name() -> None:
    assert INDEX.search("search the pull requests of the repository")[0].name == "github.list_pull_requests"


@pytest.mark.parametrize(
    ("query", "name"),
    [
        ("what's the weather like", "get_current_weather"),
        ("I want it in fahrenheit", "get_current_weather"),
        ("when is sunrise", "get_current_weather"),
        ("reading files", "read_file"),
        ("rm", "delete_file"),
        ("remove a document", "delete_file"),
        ("trash", "delete_file"),
        ("ls dir", "listDirectory"),
        ("grab display", "take_screenshot"),
        ("converting currencies", "convert_currency"),
        ("help me", "help"),
    ],
)
def test_tool_is_found_by_words_and_synonyms(query: str, name: str) -> None:
    assert INDEX.search(query)[0].name == name


@pytest.mark.parametrize(
    ("query", "name"),
    [
        ("wether", "get_current_weather"),
        ("delet file", "delete_file"),
        ("screnshot", "take_screenshot"),
        ("curency", "convert_currency"),
        ("emial", "send_email"),
        ("shot", "take_screenshot"),
        ("weath", "get_current_weather"),
        ("createissue", "github.create_issue"),
    ],
)
def test_typos_and_partial_words_match(query: str, name: str) -> None:
    assert INDEX.search(query)[0].name == name


def test_exact_word_beats_similar_word() -> None:
    index = ToolIndex([_spec("form_fill", "Fill a form."), _spec("farm_plan", "Plan a farm.")])
    assert names(index.search("farm")) == ["farm_plan"]


def test_every_sentence_of_a_request_counts() -> None:
    request = (
        "Look up the current weather at the place I travel to. Then send an email. Finally convert currency amounts."
    )
    assert set(names(INDEX.search(request, 3))) == {"get_current_weather", "send_email", "convert_currency"}


def test_unrelated_request_finds_nothing() -> None:
    assert INDEX.search("zzz qqq") == []
    assert INDEX.search("") == []
    assert INDEX.search("?!") == []


@pytest.mark.parametrize("k", [-1, 0, 1, 2, 5])
def test_at_most_k_results_best_first(k: int) -> None:
    hits = INDEX.search("list the files of the repository folder", k)
    assert len(hits) == max(k, 0)
    assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)


_WORDS = (
    "read list send file folder email weather place commit repository currency text open pull request a web".split()
)


@given(st.lists(st.sampled_from([*_WORDS, ".", *(spec.name for spec in SPECS)])).map(" ".join), st.integers(1, 10))
def test_fewer_results_are_the_first_of_more(query: str, k: int) -> None:
    assert INDEX.search(query, k) == INDEX.search(query, 50)[:k]


def test_name_in_the_query_beats_a_better_description() -> None:
    index = ToolIndex(
        [
            _spec("harbour", "Tides and depths of ports, for all who go there by ship.", {}),
            _spec("show_depth_table", "Harbour, harbour.", {}),
        ]
    )
    for k in (1, 2):
        assert index.search("a harbour for me", k)[0].name == "harbour"


def test_why_names_the_matching_words() -> None:
    assert INDEX.search("weather in fahrenheit")[0].why == "name: weather; text: fahrenheit"
    assert "remove ~ delete" in INDEX.search("remove that file")[0].why
    assert "wether ~ weather" in INDEX.search("wether")[0].why


def test_replaced_tool_is_found_by_new_words_only() -> None:
    index = ToolIndex(SPECS)
    assert index.search("weather")
    index.add(_spec("get_current_weather", "Tides at a harbour.", {"type": "object"}))
    assert names(index.search("harbour")) == ["get_current_weather"]
    assert index.search("fahrenheit") == []
    assert names(index.search("get_current_weather")) == ["get_current_weather"]
    assert len(index) == len(SPECS)


def test_removed_tool_is_not_found() -> None:
    index = ToolIndex(SPECS)
    index.remove("search")
    assert index.search("search the web") == []
    with pytest.raises(UsageError, match="search"):
        index.remove("search")


_QUERIES = st.sampled_from(
    ["list files", "weather", "send a file by email", "repo", "screen shot", "wether", "open pull"]
)


@given(st.lists(st.sampled_from(SPECS), unique_by=lambda spec: spec.name), _QUERIES)
def test_add_then_remove_restores_results(extra: list[ToolSpec], query: str) -> None:
    index = ToolIndex(spec for spec in SPECS if spec not in extra)
    before = index.search(query)
    for spec in extra:
        index.add(spec)
    index.search(query)
    for spec in extra:
        index.remove(spec.name)
    assert index.search(query) == before


_CHANGES = st.lists(st.tuples(st.sampled_from(SPECS), st.sampled_from(SPECS)))


@given(_CHANGES, _QUERIES)
def test_changed_index_finds_what_a_new_one_finds(changes: list[tuple[ToolSpec, ToolSpec]], query: str) -> None:
    tools = {spec.name: spec for spec in SPECS}
    index = ToolIndex(SPECS)
    for old, new in changes:
        replaced = replace(new, name=old.name)
        index.add(replaced)
        tools[old.name] = replaced
        index.search(query)
        if new.name in tools:
            index.remove(new.name)
            del tools[new.name]
    assert index.search(query) == ToolIndex(tools.values()).search(query)
    assert len(index) == len(tools)


def test_interrupted_search_changes_no_later_one() -> None:
    steps, query = 0, "list the pull requests"

    def interrupt_at(frame: FrameType, event: str, _: object) -> Any:
        nonlocal steps
        if "registry/search/" not in frame.f_code.co_filename:
            return None
        steps -= event == "line"
        # not in `search` itself: between the end of its block and the release of its lock only a tracer can raise
        if steps <= 0 and frame.f_code.co_name != "search":
            steps = sys.maxsize
            raise KeyboardInterrupt
        return interrupt_at

    before, interrupted = sys.gettrace(), 0
    for steps_before in range(1, 2_000, 7):
        index, steps = ToolIndex(SPECS[:1]), steps_before
        for spec in SPECS[1:7]:
            index.add(spec)
        try:
            sys.settrace(interrupt_at)
            index.search(query)
        except KeyboardInterrupt:
            interrupted += 1
        finally:
            sys.settrace(before)
        assert index.search(query) == ToolIndex(SPECS[:7]).search(query), steps_before
    assert interrupted > 100


def test_replaced_tools_leave_nothing_behind() -> None:
    def replace_tools() -> int:
        for spec in SPECS * 20:
            index.add(replace(spec, description=f"{spec.description} Again."))
            index.search("list files")
        return tracemalloc.get_traced_memory()[0]

    tracemalloc.start()
    try:
        index = ToolIndex(SPECS)
        first = replace_tools()
        assert replace_tools() < first + 20_000
    finally:
        tracemalloc.stop()


@given(st.permutations(SPECS), _QUERIES)
def test_results_ignore_order_of_adding(specs: list[ToolSpec], query: str) -> None:
    assert ToolIndex(specs).search(query) == INDEX.search(query)


@given(st.text(), st.integers(-2, 20))
def test_any_text_can_be_searched(query: str, k: int) -> None:
    assert len(INDEX.search(query, k)) <= max(k, 0)


@given(st.text("abcXYZ019_-.", min_size=1, max_size=20))
def test_any_tool_name_finds_its_tool(name: str) -> None:
    assert ToolIndex([*SPECS, _spec(name, "Something else entirely.")]).search(name)[0].name == name


def test_results_do_not_depend_on_hash_seed() -> None:
    program = (
        "from callwright.core.spec import ToolSpec\n"
        "from callwright.registry.search.index import ToolIndex\n"
        "words = 'alpha beta gamma delta list file send mail'.split()\n"
        "specs = [ToolSpec(f'{a}_{b}', f'{b} the {a} of {c}', {}) for a in words for b in words for c in words[:2]]\n"
        "print(ToolIndex(specs).search('send the alpha file. list gamma mail; remove delta', 30))\n"
    )
    answers = {
        subprocess.run(
            [sys.executable, "-c", program], env={**os.environ, "PYTHONHASHSEED": seed}, capture_output=True, check=True
        ).stdout
        for seed in ("1", "2")
    }
    assert len(answers) == 1


def test_index_is_thread_safe() -> None:
    index = ToolIndex(SPECS)
    failures: list[Exception] = []

    def hunt() -> None:
        try:
            for _ in range(50):
                assert index.search("weather")
        except Exception as error:  # noqa: BLE001 - whatever a thread raises is a failure of the test
            failures.append(error)

    hunters = [threading.Thread(target=hunt) for _ in range(3)]
    for hunter in hunters:
        hunter.start()
    for number in range(50):
        index.add(_spec(f"weather_{number}", "Weather of another planet."))
        index.remove(f"weather_{number}")
    for hunter in hunters:
        hunter.join()
    assert failures == []


def test_shared_words_do_not_hide_the_right_tool() -> None:
    nouns = [f"{first}{second}" for first in "bcdfghjklmnpqrst" for second in ("adget", "opsule", "imbret", "ulvane")]
    specs = [_spec(f"list_{noun}_{other}", f"List every {noun} with its {other}.") for noun in nouns for other in nouns]
    index = ToolIndex(specs)
    assert index.search("please list all files of the nimbret and its ropsule")[0].name == "list_nimbret_ropsule"


def test_coverage_is_the_share_of_the_query_that_a_tool_contains() -> None:
    index = ToolIndex(
        [
            ToolSpec("get_weather", "Weather forecast of a city.", {}),
            ToolSpec("get_time", "Time in a city.", {}),
            ToolSpec("get_map", "Map of a city.", {}),
        ]
    )
    assert index.coverage("weather city", "get_weather") == 1.0
    assert index.coverage("zebra unicorn", "get_weather") == 0.0
    rare, common = index.coverage("weather city", "get_weather"), index.coverage("weather city", "get_map")
    assert 0 < common < 0.5 < rare  # every tool has the city
    assert index.coverage("", "get_map") == 0.0


def test_a_run_of_letters_that_is_no_word_takes_little_memory() -> None:
    index = ToolIndex([_spec("read_file", "Read a file"), _spec("screenshot", "Take a screen shot")])
    index.search("read")
    letters = "".join("acgt"[number * number % 17 % 4] for number in range(19_000))
    tracemalloc.start()
    try:
        assert index.search(f"read file {letters}")[0].name == "read_file"
        kept, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert kept < 1_000_000
    assert peak < 5_000_000
