"""The check for authors of skills."""

from pathlib import Path

import pytest

from toolwright.testing.skills import check_skill

from .conftest import Write

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("folder", sorted((ROOT / "examples" / "skills").iterdir()), ids=lambda folder: folder.name)
def test_the_example_skills_are_sound(folder: Path) -> None:
    assert check_skill(folder).name == folder.name


def test_a_sound_skill_passes_with_links_and_commands(write: Write) -> None:
    folder = write(
        "review",
        "Read [style](references/style.md), [more](references/), [web](https://x.y/z) and [up](#up).\n\n!`git diff $0`",
    )
    (folder / "references").mkdir()
    (folder / "references" / "style.md").write_text("Be kind.")
    assert check_skill(folder).description == "What review is for."


@pytest.mark.parametrize(
    ("body", "fields", "said"),
    [
        ("See [x](missing.md).", (), "the link to missing.md leads nowhere"),
        ("See [x](../../secret).", (), "the link to ../../secret leads nowhere"),
        ("!`echo $(cat $0)`", (), "will not run: it holds '$('"),
        ("line\n" * 501, (), "the instructions have"),
        ("", (), "no instructions"),
        ("B", ("alowed-tools: Read",), "did you mean allowed-tools?"),
        ("B", ("license: Use: freely",), "put it in quotes"),
        ("B", ("context: knife",), ":4: context must be fork or inline"),
    ],
)
def test_what_an_author_overlooked_is_named(write: Write, body: str, fields: tuple[str, ...], said: str) -> None:
    folder = write("review", body, *fields)
    (folder.parent.parent / "secret").write_text("s")
    with pytest.raises(AssertionError) as caught:
        check_skill(folder)
    assert said in str(caught.value)


def test_a_folder_without_a_skill_is_told_so(tmp_path: Path) -> None:
    (tmp_path / "skill.md").write_text("x")
    with pytest.raises(AssertionError, match=r"holds no SKILL\.md"):
        check_skill(tmp_path)
