"""The check for authors of skills."""

import json
from pathlib import Path
from time import process_time

import pytest

from callwright.cli.commands.skills import run
from callwright.core.errors import UsageError
from callwright.skills import Skills
from callwright.testing.checks import check_skill

from .conftest import Write

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("folder", sorted((ROOT / "examples" / "skills").iterdir()), ids=lambda folder: folder.name)
def test_example_skills_are_valid(folder: Path) -> None:
    assert check_skill(folder).name == check_skill(folder / "SKILL.md").name == folder.name


def test_valid_skill_with_links_and_commands_passes(write: Write) -> None:
    folder = write(
        "review",
        "Read [style](references/style.md), [more](references/), [web](https://x.y/z) and [up](#up).\n\n!`git diff $0`",
    )
    (folder / "references").mkdir()
    (folder / "references" / "style.md").write_text("Be kind.")
    assert check_skill(folder).description == "What review is for."


@pytest.mark.parametrize(
    ("body", "fields", "message"),
    [
        ("See [x](missing.md).", (), "the link to missing.md is broken"),
        ("See [x](../../secret).", (), "the link to ../../secret is broken"),
        ("!`echo $(cat $0)`", (), "cannot run: it holds '$('"),
        ("line\n" * 501, (), "the instructions have"),
        ("", (), "the instructions are missing"),
        ("B", ("alowed-tools: Read",), "did you mean allowed-tools?"),
        ("B", ("license: Use: freely",), "put the value in quotes"),
        ("B", ("context: knife",), ":4: context must be fork or inline"),
    ],
)
def test_common_mistakes_are_reported(write: Write, body: str, fields: tuple[str, ...], message: str) -> None:
    folder = write("review", body, *fields)
    (folder.parent.parent / "secret").write_text("s")
    with pytest.raises(AssertionError) as caught:
        check_skill(folder)
    assert message in str(caught.value)


def test_links_that_are_not_closed_are_passed_in_linear_time(write: Write) -> None:
    folder = write("notes", "[a](" * 30_000)
    began = process_time()
    check_skill(folder)
    assert process_time() - began < 5  # each searched to the end takes minutes


def test_folder_without_skill_is_reported(tmp_path: Path) -> None:
    (tmp_path / "skill.md").write_text("x")
    with pytest.raises(AssertionError, match=r"contains no SKILL\.md"):
        check_skill(tmp_path)


BROKEN = [
    ("name: Review_It\ndescription: D.", ":2: the name 'Review_It' should be lower-case", "such as 'review-it'"),
    ("name: other\ndescription: D.", ":2: the name 'other' differs from the folder 'review'", "rename one"),
    ("name: review\ndescription: ''", ":3: description is empty", "write a value or remove the line"),
    (
        "name: review\ndescription: D.\nallowed-tools: Bash(git *",
        ":4: 'Bash(git *' in allowed-tools",
        "did you mean Bash(git *)?",
    ),
    ("name: review\ndescription: D.\nmetadata:\n\ta: b", ":5: a tab indents this line", "use spaces"),
    ("name: review\nname: review", ":3: the field 'name' is given twice", ""),
    ("name: review\ndesciption: D.", ":3: 'desciption' is not a known field", "did you mean description?"),
    (
        "name: review\ndescription: D.\nuser-invocable: maybe",
        ":4: user-invocable must be true or false, not 'maybe'",
        "",
    ),
    ("name: review\ndescription: D.\npaths: 'a/{b'", ":4: paths: the glob 'a/{b' opens a brace", ""),
    ("name: review\ndescription: D.\narguments: [a, a]", ":4: arguments names an argument twice", ""),
]


@pytest.mark.parametrize(("fields", "where", "advice"), BROKEN)
def test_broken_field_names_line_value_and_fix(tmp_path: Path, fields: str, where: str, advice: str) -> None:
    (tmp_path / "review").mkdir()
    (tmp_path / "review" / "SKILL.md").write_text(f"---\n{fields}\n---\nReview.\n")
    with pytest.raises(AssertionError) as caught:
        check_skill(tmp_path / "review")
    assert f"SKILL.md{where}" in str(caught.value)
    assert advice in str(caught.value)


def test_unclosed_front_matter_names_the_fix(tmp_path: Path) -> None:
    (tmp_path / "review").mkdir()
    (tmp_path / "review" / "SKILL.md").write_text("---\nname: review\nReview.\n")
    with pytest.raises(AssertionError, match="add a line '---' after the last field"):
        check_skill(tmp_path / "review")


def test_instruction_problems_have_lines(write: Write) -> None:
    folder = write("review", "First.\n\nSee [x](missing.md) and [x](missing.md).\n\n```!\necho $(cat $0)\n```")
    with pytest.raises(AssertionError) as caught:
        check_skill(folder)
    first, second = str(caught.value).splitlines()
    assert "SKILL.md:7: the link to missing.md is broken" in first
    assert "SKILL.md:9: the command" in second


def test_misspelt_skill_file_is_a_problem(project: Path, home: Path) -> None:
    folder = project / ".claude" / "skills" / "review"
    folder.mkdir(parents=True)
    (folder / "skill.md").write_text("---\nname: review\ndescription: D.\n---\nReview.")
    skills = Skills(project, home=home)
    assert len(skills) == 0
    assert [str(p) for p in skills.problems] == [f"{folder / 'skill.md'}:1: the file must be named SKILL.md; rename it"]


class TestCommand:
    """`callwright skills`, as an author types it."""

    @pytest.fixture(autouse=True)
    def here(self, project: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.chdir(project)
        monkeypatch.setenv("HOME", str(home))
        monkeypatch.setenv("CALLWRIGHT_HOME", str(home / ".callwright"))

    def test_check_command_lists_problems_and_counts(self, write: Write, capsys: pytest.CaptureFixture[str]) -> None:
        write("good", "See [x](missing.md).", "agent: wizard")
        write("bad", "B", "context: knife", "user-invocable: maybe")
        assert run(["check"]) == 1
        out = capsys.readouterr().out
        assert "SKILL.md:4: context must be fork or inline, not 'knife'\n" in out
        assert "SKILL.md:4: there is no agent 'wizard'; use Explore" in out
        assert "SKILL.md:6: the link to missing.md is broken" in out
        assert out.endswith("1 skill usable, 1 broken\n")

    def test_check_command_accepts_one_folder(self, write: Write, capsys: pytest.CaptureFixture[str]) -> None:
        good, _ = write("good", "G"), write("bad", "B", "context: knife")
        assert run(["check", str(good)]) == 0
        assert capsys.readouterr().out == "1 skill usable, 0 broken\n"
        assert run(["check", str(good.parent), "--json"]) == 1
        (problem,) = json.loads(capsys.readouterr().out)
        assert (problem["line"], problem["fatal"]) == (4, True)

    @pytest.mark.parametrize("folder", ["nowhere", "."])
    def test_check_command_without_skills(self, folder: str) -> None:
        with pytest.raises(UsageError, match=r"not a folder|contains no file SKILL\.md"):
            run(["check", folder])
