"""Attachments: `@file` in a prompt, what is attached, and the notices about the rest."""

import json
from pathlib import Path
from typing import Any

import pytest

from callwright.app.attachments import Mention, find_mentions, find_named_files, list_files

PNG = b"\x89PNG\r\n\x1a\n" + b"0" * 20


def prompt_parts(machine: Any, session: str) -> list[dict[str, Any]]:
    """The parts of the first prompt of a session."""
    records = [json.loads(line) for line in machine("sessions", "export", session).out.splitlines()]
    content: Any = next(record["content"] for record in records if record["kind"] == "user")
    return [{"text": content}] if isinstance(content, str) else content


@pytest.mark.parametrize(
    ("prompt", "found"),
    [
        ("look at @a.txt", ["a.txt"]),
        ("(@a.txt), @a.txt. and @sub/b.py!", ["a.txt", "sub/b.py"]),
        ('@"with space.txt" please', ["with space.txt"]),
        ("mail ada@a.txt or x/@a.txt", []),
        ("@sub and @.", ["sub", "."]),
    ],
)
def test_mentions_start_with_an_at_sign(tmp_path: Path, prompt: str, found: list[str]) -> None:
    (tmp_path / "sub").mkdir()
    for name in ("a.txt", "with space.txt", "sub/b.py"):
        (tmp_path / name).write_text("x")
    assert [mention.name for mention in find_mentions(prompt, tmp_path)[0]] == found


def test_mention_may_name_lines(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("x")
    assert find_mentions("@a.txt#L3-9 @a.txt#L4", tmp_path)[0] == [Mention("a.txt", 3, 9), Mention("a.txt", 4, 4)]
    assert Mention("a.txt", 3, 9).arguments == {"path": "a.txt", "offset": 3, "limit": 7}


def test_user_names_and_decorators_are_not_files(tmp_path: Path) -> None:
    assert find_mentions("thanks @ada, about @property and @nope.py or @gone/", tmp_path) == ([], ["nope.py", "gone/"])
    assert find_mentions("@~no-such-user/a.txt", tmp_path) == ([], ["~no-such-user/a.txt"])
    assert find_mentions("@~\0/a @~\ud800/a", tmp_path) == ([], ["~\0/a", "~\ud800/a"])
    assert find_mentions(f"@a.txt#L{'9' * 5000}", tmp_path)[0] == []


def test_file_in_a_folder_named_like_a_home_is_read_there(machine: Any) -> None:
    for folder, text in ((machine.project / "~", "in the project"), (machine.project.parent, "in the home")):
        folder.mkdir(exist_ok=True)
        (folder / "a.txt").write_text(text)
    machine("-p", "see @./~/a.txt", machine.says("ok"), "--session-id", "s1")
    assert "in the project" in prompt_parts(machine, "s1")[1]["text"]
    machine("-p", "see @~/a.txt", machine.says("ok"), "--session-id", "s2")
    assert "in the project" not in json.dumps(prompt_parts(machine, "s2"))


def test_text_images_and_folders_are_attached(machine: Any) -> None:
    (machine.project / "a.txt").write_text("alpha\n")
    (machine.project / "p.png").write_bytes(PNG)
    (machine.project / "sub").mkdir()
    (machine.project / "sub" / "inner.txt").touch()
    ended = machine("-p", "see @a.txt @p.png @sub", machine.says("ok"), "--session-id", "s1")
    assert (ended.code, ended.err) == (0, "")
    prompt, text, opening, picture, closing, listing = prompt_parts(machine, "s1")
    assert prompt["text"] == "see @a.txt @p.png @sub"
    assert text["text"] == '<file path="a.txt">\n1\talpha\n</file>'
    assert opening["text"].startswith("<file") and picture["media_type"] == "image/png" and "</file>" in closing["text"]
    assert "inner.txt" in listing["text"]
    shown = machine("sessions", "show", "s1").out
    assert "> see @a.txt" in shown and "alpha" not in shown


def test_missing_file_is_noted_and_prompt_is_sent(machine: Any) -> None:
    ended = machine("-p", "see @nope.txt", machine.says("ok"), "--session-id", "s1")
    assert (ended.code, ended.out) == (0, "ok\n") and "@nope.txt: no such file" in ended.err
    assert prompt_parts(machine, "s1") == [{"text": "see @nope.txt"}]


def test_denied_file_is_not_attached(machine: Any) -> None:
    (machine.project / "secret.txt").write_text("hunter2")
    (machine.project / "a.txt").write_text("alpha")
    rule = ("--disallowedTools", "Read(secret.txt)")
    ended = machine("-p", "see @secret.txt @a.txt", machine.says("ok"), "--session-id", "s1", *rule)
    assert ended.code == 3 and "@secret.txt is not attached" in ended.err
    parts = json.dumps(prompt_parts(machine, "s1"))
    assert "hunter2" not in parts and "alpha" in parts and "error=" in parts


def test_file_that_needs_approval_is_not_attached(machine: Any) -> None:
    (machine.project / "a.txt").write_text("alpha")
    asked = json.dumps({"permissions": {"ask": ["Read(a.txt)"]}})
    ended = machine("-p", "see @a.txt", machine.says("ok"), "--session-id", "s1", "--settings", asked)
    assert ended.code == 0 and "@a.txt is not attached: reading it needs an approval" in ended.err
    assert "alpha" not in json.dumps(prompt_parts(machine, "s1"))


def test_attached_file_counts_as_read(machine: Any) -> None:
    (machine.project / "a.txt").write_text("alpha\n")
    edit = {"name": "edit", "arguments": {"path": "a.txt", "old_string": "alpha", "new_string": "beta"}}
    ended = machine("-p", "change @a.txt", machine.says({"calls": [edit]}, "ok"), "--permission-mode", "auto")
    assert ended.code == 0 and (machine.project / "a.txt").read_text() == "beta\n"


def test_long_attachment_is_clipped_like_read(machine: Any) -> None:
    (machine.project / "long.txt").write_text("".join(f"line {number}\n" for number in range(10_000)))
    machine("-p", "see @long.txt", machine.says("ok"), "--session-id", "s1")
    attached = prompt_parts(machine, "s1")[1]["text"]
    assert "continue with offset=2001" in attached and len(attached) < 60_000


def test_piped_text_names_no_files(machine: Any) -> None:
    (machine.project / "a.txt").write_text("alpha")
    ended = machine("-p", "summarise", machine.says("ok"), "--session-id", "s1", stdin="see @a.txt and @nope.txt")
    assert (ended.code, ended.err) == (0, "")
    sent = json.dumps(prompt_parts(machine, "s1"))
    assert "@nope.txt" in sent and "alpha" not in sent


def test_text_piped_into_a_skill_names_no_files(machine: Any) -> None:
    skill = machine.project / ".callwright" / "skills" / "review"
    skill.mkdir(parents=True)
    (skill / "SKILL.md").write_text("---\nname: review\ndescription: Review.\n---\nReview $ARGUMENTS")
    for name in ("typed", "piped"):
        (machine.project / f"{name}.txt").write_text(f"content of {name}")
    machine("-p", "/review @typed.txt", machine.says("ok"), "--session-id", "s1", stdin="a diff with @piped.txt in it")
    sent = json.dumps(prompt_parts(machine, "s1"))
    assert "a diff with @piped.txt in it" in sent and "content of typed" in sent
    assert "content of piped" not in sent


@pytest.mark.parametrize(
    ("prompt", "found"),
    [
        ("Which port is set in config.ini? See sub/b.py.", ["config.ini", "sub/b.py"]),
        ("config.ini and config.ini, (config.ini)", ["config.ini"]),
        ("the test and the Makefile", []),
        ("@config.ini, my.config.ini, x/config.ini, ../outside.txt, /etc/hosts, ./.. or sub", []),
        ("large.txt, link.txt, loop.txt", []),
        ('@"my config.ini" please', []),
        ("x" * 5000 + ".txt and a/" * 5000, []),
    ],
)
def test_small_files_are_found_by_name(tmp_path: Path, prompt: str, found: list[str]) -> None:
    project = tmp_path / "project"
    (project / "sub").mkdir(parents=True)
    for name in ("config.ini", "sub/b.py", "test", "Makefile", "../outside.txt"):
        (project / name).write_text("x")
    (project / "large.txt").write_text("x" * 7000)
    (project / "link.txt").symlink_to(tmp_path / "outside.txt")
    (project / "loop.txt").symlink_to(project / "loop.txt")
    assert [mention.name for mention in find_named_files(prompt, project)] == found


def test_named_files_are_few_and_small_together(tmp_path: Path) -> None:
    for number in range(6):
        (tmp_path / f"{number}.txt").write_text("x" * (2500 if number < 3 else 10))
    prompt = "0.txt 1.txt ./1.txt 2.txt 3.txt 4.txt 5.txt"
    assert [mention.name for mention in find_named_files(prompt, tmp_path)] == ["0.txt", "1.txt", "3.txt", "4.txt"]


def test_named_file_is_left_out_if_it_is_shown_already(tmp_path: Path) -> None:
    for name in ("a.txt", "b.txt"):
        (tmp_path / name).write_text("x")
    shown = ["./a.txt", f"{tmp_path}/sub/../b.txt", "\0", "\ud800"]
    assert find_named_files("a.txt b.txt", tmp_path, shown[:1]) == [Mention("b.txt")]
    assert find_named_files("a.txt b.txt", tmp_path, shown) == []


def test_listing_leaves_out_what_is_ignored_or_hidden_and_has_an_end(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / ".gitignore").write_text("ignored.txt\n")
    for name in ("a.txt", "ignored.txt", "hidden.txt", "b\nc"):
        (tmp_path / name).touch()
    assert list_files(tmp_path, lambda path: path.name == "hidden.txt") == ".gitignore\na.txt"
    for number in range(100):
        (tmp_path / f"{number}.txt").touch()
    for listed in (list_files(tmp_path, None), list_files(tmp_path, lambda path: path.name.endswith("5.txt"))):
        assert len(listed.splitlines()) == 61 and listed.endswith("\n…")


COMPACT = ("--tools", "compact")


def test_small_model_is_given_the_files_that_a_prompt_names(machine: Any) -> None:
    (machine.project / "a.txt").write_text("alpha\nbeta\n")
    machine("-p", "What is in a.txt?", machine.says("ok"), "--session-id", "s1", *COMPACT)
    typed, names, file, again = (part["text"] for part in prompt_parts(machine, "s1"))
    assert typed == again == "What is in a.txt?" and names == "<files>\na.txt\n</files>"
    assert file == '<file path="a.txt" lines="2">\nalpha\nbeta\n</file>'
    machine("-p", "What is in a.txt?", machine.says("ok"), "--session-id", "s2")
    assert prompt_parts(machine, "s2") == [{"text": "What is in a.txt?"}]
    machine("-p", f"What is in a.txt? {'x' * 1000}", machine.says("ok"), "--session-id", "s3", *COMPACT)
    assert len(prompt_parts(machine, "s3")) == 3, "a long prompt is not repeated"


def test_file_that_a_small_model_is_given_counts_as_read(machine: Any) -> None:
    (machine.project / "a.txt").write_text("alpha\n")
    edit = {"name": "edit", "arguments": {"path": "a.txt", "old_string": "alpha", "new_string": "beta"}}
    says = machine.says({"calls": [edit]}, "ok")
    ended = machine("-p", "In a.txt, write beta", says, "--permission-mode", "auto", *COMPACT)
    assert ended.code == 0 and (machine.project / "a.txt").read_text() == "beta\n"


@pytest.mark.parametrize(
    "settings", [{"permissions": {"ask": ["Read(a.txt)"]}}, {"permissions": {"deny": ["Read(a.txt)"]}}]
)
def test_small_model_is_not_given_what_needs_approval_or_is_denied(machine: Any, settings: dict[str, Any]) -> None:
    (machine.project / "a.txt").write_text("alpha")
    (machine.project / ".env").write_text("hunter2")
    given = ("--settings", json.dumps(settings))
    machine("-p", "see a.txt and .env", machine.says("ok"), "--session-id", "s1", *COMPACT, *given)
    sent = json.dumps(prompt_parts(machine, "s1"))
    assert "alpha" not in sent and "hunter2" not in sent
