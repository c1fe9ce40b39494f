"""Every page can be found, no link on one leads nowhere, and commands, options and settings are all on a page."""

import json
import re
import tomllib
from contextlib import suppress
from pathlib import Path

import pytest

from callwright.cli.commands.completion import options
from callwright.cli.main import COMMANDS, run

ROOT = Path(__file__).parents[2]
CONTENTS = ROOT / "docs" / "README.md"
PAGES = sorted([*(ROOT / "docs").rglob("*.md"), *ROOT.glob("*.md")])


def prose(page: Path) -> str:
    """Return a page without its code blocks."""
    return re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)


def links(page: Path) -> set[Path]:
    found = re.findall(
        r"\]\(([^)\s#]+)[^)]*\)", re.sub(r"(?<!`)(`+)(?!`).*?(?<!`)\1(?!`)", "", prose(page), flags=re.DOTALL)
    )
    # the README is also shown elsewhere, so its links are whole addresses in the repository
    own = [
        re.sub(r"^https://(?:raw\.githubusercontent|github)\.com/callwright/callwright/(?:blob/)?main/", "/", link)
        for link in found
    ]
    kept = [link for link in own if not re.match(r"\w+:", link)]
    return {(ROOT / link[1:] if link.startswith("/") else page.parent / link).resolve() for link in kept}


def test_contents_list_every_page() -> None:
    missing = {page for page in PAGES if page.is_relative_to(CONTENTS.parent)} - links(CONTENTS) - {CONTENTS}
    assert not missing, "list them in docs/README.md, under the kind of page they are"


def test_links_of_all_pages_exist() -> None:
    assert {(page, link) for page in PAGES for link in links(page) if not link.exists()} == set()


def test_sections_that_are_linked_to_exist() -> None:
    missing = set[tuple[str, str]]()
    for page in PAGES:
        for file, section in re.findall(r"\]\(([^)\s#:]*)#([^)\s]+)\)", prose(page)):
            target = page.parent / file if file else page
            headings = re.findall(r"^#+ (.*)$", prose(target), re.MULTILINE)
            plain = [re.sub(r"[^\w\s-]", "", heading.lower()).strip() for heading in headings]
            if section not in [re.sub(r"\s", "-", heading) for heading in plain]:
                missing.add((page.name, section))
    assert missing == set()


def test_command_page_lists_every_command_and_extra() -> None:
    text = (ROOT / "docs" / "reference" / "command.md").read_text(encoding="utf-8")
    assert {*re.findall(r"^\| `callwright ([a-z]+)", text, re.MULTILINE)} == {*COMMANDS}
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    rows = text.split("| extra | for |")[1].splitlines()[2:]
    assert {name for row in rows for name in re.findall(r"`(\w+)`", row.split("|")[1])} == {*extras}


def test_command_page_lists_every_option_of_a_conversation() -> None:
    text = (ROOT / "docs" / "reference" / "command.md").read_text(encoding="utf-8")
    section = text.split("## Options of a conversation")[1].split("\n## ")[0]
    assert {*re.findall(r"--[a-zA-Z][\w-]*", section)} == {*options()} - {"--help"}


@pytest.mark.slow
def test_every_option_of_a_command_is_on_a_page(capsys: pytest.CaptureFixture[str]) -> None:
    text = (ROOT / "docs" / "reference" / "command.md").read_text(encoding="utf-8")
    for name, actions in re.findall(r"^\| `callwright ([a-z]+) ?([a-z\\|]*)", text, re.MULTILINE):
        for action in actions.split(r"\|"):
            with suppress(SystemExit):
                run([name, *([action] if action else []), "--help"])
    found = {*re.findall(r"(?<![\w-])--[a-zA-Z][\w-]*", capsys.readouterr().out)}
    assert len(found) > 70
    pages = "\n".join(page.read_text(encoding="utf-8") for page in PAGES if page.name != "CHANGELOG.md")
    assert found - {*re.findall(r"(?<![\w-])--[a-zA-Z][\w-]*", pages)} == set()


def test_settings_page_lists_every_key() -> None:
    schema = json.loads((ROOT / "src" / "callwright" / "app" / "settings.schema.json").read_text(encoding="utf-8"))
    text = (ROOT / "docs" / "howto" / "settings.md").read_text(encoding="utf-8")
    rows = text.split("| key | meaning |")[1].split("\n\n")[0].splitlines()[2:]
    assert {name for row in rows for name in re.findall(r"`([$\w]+)`", row.split("|")[1])} == {*schema["properties"]}


def test_files_named_in_the_architecture_exist() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    named = {name for name in re.findall(r"`(\w+/[\w/]+\.py)`", text) if "NAME" not in name}
    named |= set(re.findall(r"`(\w+\.py)`", text.split("## Where do I change")[1]))
    assert len(named) > 50
    assert {name for name in named if not (ROOT / "src" / "callwright" / name).is_file()} == set()


def test_architecture_names_a_way_into_every_package() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    rows = text.split("| package | contains |")[1].split("\n\n")[0].splitlines()[2:]
    listed = {name for row in rows for name in re.findall(r"`(\w+)`", row.split("|")[1])}
    assert listed == {file.parent.name for file in (ROOT / "src" / "callwright").glob("*/__init__.py")}


def test_architecture_shows_every_layer_and_every_stage() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    rules = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]["contracts"]
    (layers,) = [rule["layers"] for rule in rules if rule["type"] == "layers"]
    drawn = text.split("## Layers")[1].split("```")[1]
    rows = list[set[str]]()
    for line in drawn.strip().splitlines():
        names = set(re.findall(r"\w+", line[4:60]))
        rows[-1:] = [rows[-1] | names] if line.startswith(" ") else [*rows[-1:], names]
    assert rows == [set(re.findall(r"\w+", layer)) for layer in layers]
    stages = text.split("| file in `executor/` |")[1].split("\n\n")[0]
    files = {file.name for file in (ROOT / "src" / "callwright" / "executor").glob("*.py")} - {"__init__.py"}
    assert set(re.findall(r"`(\w+\.py)`", stages)) == files
