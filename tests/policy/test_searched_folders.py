"""Deny and ask rules for reading hold for tools that read whole folders."""

import os
from pathlib import Path

import pytest

from callwright import Completed, Executor, Failed, Interrupted, Registry
from callwright.policy import Rules, rules_of, standard_policies
from callwright.toolbox import Glob, Grep, List, Read, coding_tools


@pytest.fixture
def project(tmp_path: Path) -> Path:
    root = Path(os.path.realpath(tmp_path))
    for name in ("secret/key.txt", "a/secret/key.txt", "src/x.txt", "kept/deep/own.txt"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("needle\n")
    (root / "link").symlink_to("secret")
    return root


@pytest.mark.parametrize("mode", ["default", "bypass"])
@pytest.mark.parametrize(
    ("rule", "path", "expected"),
    [
        ("Read(secret/**)", ".", Interrupted),
        ("Read(key.txt)", ".", Interrupted),
        ("Read(secret/**)", "a", Interrupted),
        ("Read(secret/**)", "secret", Failed),
        ("Grep(secret/**)", "secret", Failed),
        ("Read(secret/**)", "link", Failed),
        ("Read(secret/**)", "secret/key.txt", Failed),
        ("Read(/secret/key.txt)", ".", Interrupted),
        ("Read(/link/key.txt)", "secret", Interrupted),
        ("Read(/kept/*/own.txt)", "kept/deep", Interrupted),
        ("Read(/kept/*/own.txt)", "src", Completed),
        ("Read(secret/**)", "src", Completed),
        ("Edit(secret/**)", ".", Completed),
    ],
)
async def test_search_in_a_folder_with_denied_files(
    project: Path, rule: str, path: str, expected: type, mode: str
) -> None:
    policies = standard_policies(project, mode=mode, rules=rules_of(deny=[rule]))
    executor = Executor(Registry(*coding_tools(project)), policies)
    assert isinstance(await executor.run("grep", {"pattern": "needle", "path": path}), expected)


async def test_ask_rules_ask_before_a_search_and_names_are_shown(project: Path) -> None:
    policies = standard_policies(project, rules=rules_of(ask=["Read(secret/**)"]))
    executor = Executor(Registry(Grep(project), Glob(project), List(project), Read(project)), policies)
    for path in (".", "secret"):
        assert isinstance(await executor.run("grep", {"pattern": "needle", "path": path}), Interrupted)
        for name, arguments in (("glob", {"pattern": "*"}), ("list", {}), ("read", {})):
            assert isinstance(await executor.run(name, {**arguments, "path": path}), Completed), name


async def test_tools_that_leave_files_out_search_unasked(project: Path) -> None:
    rules = Rules(rules_of(deny=["Read(secret/**)"]), None)
    grep = Grep(project, hidden=rules.hides, withheld=rules.withholds)
    executor = Executor(Registry(grep), standard_policies(project, rules=rules.rules, filtered=True))
    found = await executor.run("grep", {"pattern": "needle"})
    assert isinstance(found, Completed) and "src/x.txt" in found.text and "key.txt" not in found.text
