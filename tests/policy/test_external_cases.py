"""Figures on other projects' cases, which are not part of this repository.

Set CALLWRIGHT_CASES to the folder that holds them.
"""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from callwright.core.access import Allow, Deny
from callwright.policy import check_rules, judge_command, rules_of
from callwright.policy.rules.patterns import command_pattern, join_words

_CASES = os.environ.get("CALLWRIGHT_CASES", "")
pytestmark = pytest.mark.skipif(not _CASES, reason="CALLWRIGHT_CASES names no folder of external cases")
_PLAUSIBLE = [
    "Bash(git status *)",
    "Bash(git log *)",
    "Bash(git diff *)",
    "Bash(git show *)",
    "Bash(ls *)",
    "Bash(cat *)",
    "Bash(echo *)",
    "Bash(grep *)",
    "Bash(rg *)",
    "Bash(npm run *)",
    "Bash(npm test *)",
    "Bash(pytest *)",
    "Bash(make *)",
    "Bash(cargo build *)",
    "Bash(head *)",
    "Bash(sort *)",
]


def _rows(name: str) -> Iterator[dict[str, Any]]:
    for line in (Path(_CASES) / "shell" / f"{name}.jsonl").read_text("utf-8").splitlines():
        if line.strip():
            yield json.loads(line)


def _harmful() -> Iterator[str]:
    for name in ("dangerous", "cve_bypass", "tricky_bypass"):
        for row in _rows(name):
            if name == "cve_bypass" and row["expected"] != "must_not_auto_approve":
                continue
            if name == "tricky_bypass" and "qwen" in str(row.get("source")) + str(row.get("sources")):
                continue  # there it means: cannot be proven read-only
            yield row["command"]


def test_nothing_harmful_is_allowed(tmp_path: Path) -> None:
    allowed = [line for line in _harmful() if isinstance(judge_command(line, cwd=tmp_path, workspace=tmp_path), Allow)]
    assert allowed == []


def test_plausible_allow_rules_let_nothing_harmful_through(tmp_path: Path) -> None:
    def allowed(line: str) -> bool:
        return isinstance(judge_command(line, cwd=tmp_path, workspace=tmp_path, allow=_PLAUSIBLE), Allow)

    assert [line for line in _harmful() if allowed(line)] == []


def test_published_bypasses_fail(tmp_path: Path) -> None:
    passed = list[str]()
    for row in _rows("published_bypass_verified"):
        kind, _, rule = row["rule"].partition(" ")
        rules = {kind: rule.replace("), ", ")\n").split("\n")} if kind in ("allow", "deny", "ask") else {}
        decision = judge_command(row["cmd"], cwd=tmp_path, workspace=tmp_path, **rules)
        if isinstance(decision, Allow) and not row["expect"].startswith("allow"):
            passed.append(row["cmd"])
    assert passed == []


def test_no_guard_fires_on_what_only_looks_destructive(tmp_path: Path) -> None:
    fired = list[str]()
    for row in _rows("not_destructive"):
        decision = judge_command(row["command"], cwd=tmp_path, workspace=tmp_path)
        if "guard critical" in decision.source or "guard danger" in decision.source or isinstance(decision, Deny):
            fired.append(row["command"])
    assert fired == []


def test_broad_rules_are_told_from_narrow_ones() -> None:
    wrong = list[str]()
    for row in _rows("dangerous_allow_rules"):
        found = any(problem.kind == "too broad" for problem in check_rules(rules_of(allow=[row["rule"]])))
        if found is not row["too_broad"]:
            wrong.append(row["rule"])
    assert wrong == []


def test_workspace_boundary_holds_where_edits_are_allowed(tmp_path: Path) -> None:
    root = tmp_path / "project"
    root.mkdir()
    leaked = list[str]()
    for row in _rows("path_boundary"):
        line = row["command"].replace(row["project_root"], str(root))
        decision = judge_command(line, cwd=root, workspace=root, mode="auto")
        if row["expected"] == "blocked" and isinstance(decision, Allow) and "DROP TABLE" not in line:
            leaked.append(line)
    assert leaked == []


def test_plain_patterns_match_as_elsewhere() -> None:
    wrong = list[str]()
    for row in _rows("rules"):
        if row.get("kind") != "pattern" or "=" in row["command"].split()[0] or "*" not in row["pattern"]:
            continue  # patterns without a wildcard are exact here, a prefix there
        words = tuple(row["command"].split())
        if command_pattern(row["pattern"]).matches(join_words(words)) is not row["expected_match"]:
            wrong.append(row["pattern"] + " :: " + row["command"])
    assert wrong == []
