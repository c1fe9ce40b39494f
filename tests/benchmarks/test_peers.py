"""The comparison with other packages: our own column is measured, and the tables say what was found."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from benchmarks.__main__ import TABLES
from benchmarks.page import PAGE, replaced
from benchmarks.peers import PEERS, ROOT
from benchmarks.peers.environments import CannotInstall, environment
from benchmarks.peers.report import report, table

FIGURES: dict[str, Any] = {
    "version": "1.0",
    "failed": {},
    "call": "Thing.call",
    "turn": "Agent.run",
    "tuning": "",
    "import_ms": 400.0,
    "import_ratio": 27.04,
    "call_us": 66.7,
    "call_ratio": 12.7,
    "payload_ms": {"everything": 0.7},
    "async_100": [56.2, 4.1],
    "async_1000": [100.4, 41.0],
    "sync_100": [5019.0, 3.0],
    "raises": "told: Error:\nkaboom | " + "x" * 200,
    "peak": 200,
    "edited": "paid nothing; asked again",
    "twice": "paid 10; asked again",
}


def row(text: str, package: str, place: int = 0) -> list[str]:
    rows = [line for line in text.splitlines() if line.startswith(f"| {package} ")]
    return [cell.strip() for cell in rows[place].strip("|").split(" | ")]


def test_every_package_has_a_row_in_every_table() -> None:
    text = report({"ours": FIGURES, "theirs": FIGURES})
    for name in ("ours", "theirs"):
        assert sum(line.startswith(f"| {name} ") for line in text.splitlines()) == 6


def test_package_without_approvals_has_no_row_there() -> None:
    unapproved = {key: value for key, value in FIGURES.items() if key not in ("edited", "twice")}
    text = report({"ours": FIGURES, "theirs": unapproved})
    assert row(text, "ours", 5) == ["ours", "paid nothing; asked again", "paid 10; asked again"]
    assert sum(line.startswith("| theirs ") for line in text.splitlines()) == 5


def test_a_workload_without_a_figure_shows_a_dash() -> None:
    assert row(report({"ours": FIGURES}), "ours", 1)[4] == "–"


def test_slow_package_is_called_serial() -> None:
    assert row(report({"ours": FIGURES}), "ours", 3)[1:] == ["56 (4)", "100 (41)", "5019 (3)", "serial"]


def test_unmeasured_package_is_listed_with_the_reason() -> None:
    text = report(
        {"ours": {**FIGURES, "failed": {"import": "OSError: no"}}, "lost": "could not be installed: no such wheel"}
    )
    assert "- lost: could not be installed: no such wheel" in text
    assert "- ours, import: OSError: no" in text
    assert "Not measured" not in report({"ours": FIGURES})


def test_tool_text_stays_in_its_cell() -> None:
    said = row(report({"ours": FIGURES}), "ours", 4)[1]
    assert said.startswith("told: Error: kaboom \\| xxx")
    assert len(said) <= 90


def test_columns_are_aligned() -> None:
    lines = table(["a", "bbb"], [["cccc", "d"]]).splitlines()
    assert lines == ["| a    | bbb |", "|------|-----|", "| cccc | d   |"]


def test_write_replaces_only_figures_between_markers() -> None:
    page = "before\n<!-- figures: a -->\nold\n<!-- end of figures: a -->\nafter"
    once = replaced(page, "a", "new")
    assert "old" not in once
    assert once.startswith("before\n")
    assert once.endswith("\nafter")
    assert replaced(once, "a", "new") == once
    with pytest.raises(ValueError, match="exactly one"):
        replaced("no markers", "a", "new")


def test_page_has_markers_for_every_table() -> None:
    page = PAGE.read_text(encoding="utf-8")
    for name in TABLES:
        assert "new figures" in replaced(page, name, "new figures")


def test_every_package_has_an_adapter() -> None:
    for name in PEERS:
        assert (ROOT / "benchmarks" / "peers" / f"{name.replace('-', '_')}.py").exists(), name


@pytest.mark.peers
def test_unknown_package_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CALLWRIGHT_BENCH_HOME", str(tmp_path))
    with pytest.raises(CannotInstall, match="nothing-of-this-name"):
        environment("nothing", ["nothing-of-this-name-anywhere>=1"])


@pytest.mark.peers
def test_own_column_is_complete(tmp_path: Path) -> None:
    result = tmp_path / "ours.json"
    command = [sys.executable, "-m", "benchmarks.peers.harness", "ours", str(result)]
    subprocess.run(command, cwd=ROOT, check=True, timeout=110)
    figures = json.loads(result.read_text(encoding="utf-8"))
    assert figures["failed"] == {}
    assert figures["wrong"].startswith("told: invalid arguments: limit")
    assert figures["siblings"] == "siblings: 2 finished"
    assert figures["peak"] == 16
    assert figures["edited"] == "paid nothing; asked again"
    assert figures["twice"] == "paid 10; asked again"
    assert "–" not in row(report({"callwright": figures}), "callwright", 1)
