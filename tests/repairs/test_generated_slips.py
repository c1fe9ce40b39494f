"""Calls broken at random: whatever is made of one touches only paths and commands that the model wrote."""

import asyncio
import json
import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from callwright import Deny, Executor, Failed, Registry
from callwright.core.access import Access, DeletePath, ReadPath, RunCommand, WritePath
from callwright.policy.base import Policy
from callwright.toolbox import Delete, List, Move, coding_tools

PATHS = ["calc.py", "src/x.py", "src/deep/y.py", "notes.txt", "a/same.txt", "b/same.txt", "secret.txt", "new.txt"]
LINES = ["echo hi", "ls -la src", "cat notes.txt", "git status", "rm notes.txt"]


class Everything(Policy):
    """Notes every access and denies it, so that nothing runs."""

    def __init__(self) -> None:
        self.accesses: list[Access] = []

    def judge(self, access: Access, subject: object) -> Deny:
        self.accesses.append(access)
        return Deny("not in this test")


def _calls() -> st.SearchStrategy[tuple[str, dict[str, Any]]]:
    path, line = st.sampled_from(PATHS), st.sampled_from(LINES)
    return st.one_of(
        st.tuples(st.sampled_from(["read", "delete", "list"]), st.fixed_dictionaries({"path": path})),
        st.tuples(st.just("write"), st.fixed_dictionaries({"path": path, "content": st.just("a = 1\n")})),
        st.tuples(
            st.just("edit"),
            st.fixed_dictionaries({"path": path, "old_string": st.just("a"), "new_string": st.just("b")}),
        ),
        st.tuples(st.just("bash"), st.fixed_dictionaries({"command": line})),
        st.tuples(st.just("move"), st.fixed_dictionaries({"source": path, "destination": path})),
        st.tuples(st.just("grep"), st.fixed_dictionaries({"pattern": st.just("a"), "path": path})),
    )


Slip = Callable[[str, Any], tuple[str, Any]]


def _on_texts(change: Callable[[str], Any]) -> Slip:
    """Return a slip in every text of the arguments."""

    def slip(name: str, given: Any) -> tuple[str, Any]:
        if isinstance(given, str):
            return name, given
        return name, {key: change(value) if isinstance(value, str) else value for key, value in given.items()}

    return slip


def _on_json(change: Callable[[str], str]) -> Slip:
    """Return a slip in the arguments as JSON."""
    return lambda name, given: (name, change(given if isinstance(given, str) else json.dumps(given)))


def _on_object(change: Callable[[str, dict[str, Any]], Any]) -> Slip:
    return lambda name, given: (name, given if isinstance(given, str) else change(name, given))


_NAME_SLIPS: list[Slip] = [
    lambda name, given: (f"functions.{name}", given),
    lambda name, given: (f" {name}:0", given),
    lambda name, given: (f"{name}{name}", given),
    lambda name, given: (name.upper(), given),
    lambda name, given: (name[1:], given),
]
_TEXT_SLIPS: list[Callable[[str], Any]] = [
    lambda text: f"`{text}`",
    lambda text: f"@{text}",
    lambda text: f"{text}:12",
    lambda text: f"file://{text}",
    lambda text: text.replace("/", "\\"),
    lambda text: f"project/{text}",
    lambda text: text.rpartition("/")[2],
    lambda text: f"/workspace/{text}",
    lambda text: f"b/{text}",
    lambda text: f"../{text}",
    lambda text: f"[{text}]({text})",
    lambda text: f"<path>{text}</path>",
    lambda text: f"```\n{text}\n```",
    lambda text: f"$ {text}",
    lambda text: f'["{text}"]',
    lambda text: text.split(" "),
    lambda text: [text],
    lambda text: [text, "notes.txt"],
    lambda text: {"value": text},
    lambda text: text[:-1],
    lambda text: f"{text}, notes.txt",
    lambda text: None,
]
_OBJECT_SLIPS: list[Callable[[str, dict[str, Any]], Any]] = [
    lambda name, given: {"arguments": given},
    lambda name, given: {"name": name, "arguments": json.dumps(given)},
    lambda name, given: {"name": "read", "arguments": given},
    lambda name, given: {name: given},
    lambda name, given: {"properties": given, "type": "object"},
    lambda name, given: {key.upper(): value for key, value in given.items()},
    lambda name, given: {**given, "file_path": "secret.txt"},
    lambda name, given: {**given, "limit": None},
]
_JSON_SLIPS: list[Callable[[str], str]] = [
    lambda text: f"```json\n{text}\n```",
    lambda text: text.replace('"', "'"),
    lambda text: text.replace("}", ",}"),
    lambda text: f"{{{text}}}",
    lambda text: f"{text}<|call|>",
    lambda text: f"{text}{text}",
    lambda text: f'{text} {{"path": "secret.txt"}}',
    lambda text: f"[{text}]",
    lambda text: text[:-2],
    lambda text: text[1:],
    lambda text: text.replace('"', "", 2),
    json.dumps,
    lambda text: text.replace('"', '<|"|>'),
]
SLIPS = [
    *_NAME_SLIPS,
    *map(_on_texts, _TEXT_SLIPS),
    *map(_on_object, _OBJECT_SLIPS),
    *map(_on_json, _JSON_SLIPS),
]
_SLIPS = st.lists(st.sampled_from(SLIPS), min_size=1, max_size=4)


def _texts(value: Any) -> Iterator[str]:
    """Yield what the model wrote, as it is and as JSON reads it, so that escapes count as what they mean."""
    text = value if isinstance(value, str) else json.dumps(value)
    for _ in range(5):
        yield text
        text = re.sub(r"\\(.)", r"\1", text)


def _is_written(path: str, root: Path, sent: str, *, exactly: bool) -> bool:
    """Tell whether a path was written; of one that is only read, folders may be missing, or all of it (the default)."""
    if not exactly and Path(path) == root:
        return True
    relative = os.path.relpath(path, root)
    plain = re.sub(r"[\\/]+", "/", sent)
    plain = re.sub(r"[^/\"]+/\.\./", "", plain)  # two slips together may make it a/file://../b
    return (
        path in sent
        or path in plain
        or relative in sent
        or relative in plain
        or (not exactly and Path(path).name in plain)
    )


def _check(call: tuple[str, dict[str, Any]], slips: list[Slip], root: Path) -> bool:
    """Break a call and check what is judged in its place; tell whether it was repaired."""
    name, sent = call
    for slip in slips:
        name, sent = slip(name, sent)
    policy = Everything()
    tools = (*coding_tools(root), List(root), Delete(root), Move(root))
    outcome = asyncio.run(Executor(Registry(*tools), policy).run(name, sent))
    assert isinstance(outcome, Failed), outcome
    written = list(_texts(sent))
    for access in policy.accesses if outcome.repairs else ():
        match access:
            case RunCommand(line):
                words = re.split(r"[\s'\"]+", line)  # with or without the quotes that a list of words gets
                assert any(line in text or all(word in text for word in words) for text in written), (line, sent)
            case ReadPath(path) | WritePath(path) | DeletePath(path):
                exactly = name.strip().lower() in ("delete", "move", "write", "bash") or isinstance(access, DeletePath)
                assert any(_is_written(path, root, text, exactly=exactly) for text in written), (path, sent)
            case _:
                raise AssertionError(access)
    return bool(outcome.repairs and policy.accesses)


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("slips") / "project"
    for name in PATHS[:-1]:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("a\n")
    return root


_UNHURRIED = settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@settings(_UNHURRIED, max_examples=100)
@given(_calls(), _SLIPS)
def test_broken_calls_touch_only_what_was_written(root: Path, call: tuple[str, dict[str, Any]], slips: list[Slip]):
    _check(call, slips, root)


@pytest.mark.slow
@settings(_UNHURRIED, max_examples=2000)
@given(_calls(), _SLIPS)
def test_two_thousand_broken_calls_touch_only_what_was_written(
    root: Path, call: tuple[str, dict[str, Any]], slips: list[Slip]
):
    _check(call, slips, root)


def test_many_single_slips_are_repaired_and_judged(root: Path):
    """The generated calls are near enough to right ones that the property is about something."""
    judged = sum(_check(("read", {"path": "src/x.py"}), [slip], root) for slip in SLIPS)
    assert judged > len(SLIPS) / 2
