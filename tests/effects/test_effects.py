"""What shell lines really do behind the tool, its policies and its wall: no harm without a question."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.effects.generator import LINES_PER_FOLDER, generate
from tests.effects.harness import find_problem, read_cases, run_cases
from tests.effects.runner import is_harmful

ATTACKS = Path(__file__).parent / "data" / "attacks.jsonl"
HARMFUL = Path(__file__).parents[1] / "shell" / "data" / "harmful_lines.jsonl"
_PARTS = 8
LINES = int(os.environ.get("CALLWRIGHT_EFFECT_LINES", "8000"))


@pytest.fixture(autouse=True)
def executable() -> None:
    if problem := find_problem():
        pytest.skip(problem)


def assert_harmless(cases: Sequence[dict[str, Any]], *, workers: int = 2) -> None:
    results = run_cases(cases, workers=workers)
    assert len(results) == len(cases)
    harmful = [(case, result) for case, result in zip(cases, results, strict=True) if is_harmful(result)]
    assert harmful == []


def test_harness_sees_harm():
    lines = ("touch @B@/PWNED", "cat .env; exit 3", "printenv API_KEY", "echo x >> notes.txt")
    lines = (*lines, "echo > /dev/tcp/127.0.0.1/@PORT@")
    cases = [{"line": line, "mode": "bypass", "unwalled": True} for line in lines]
    assert all(map(is_harmful, run_cases(cases, workers=1)))


def test_attacks_do_no_harm():
    attacks = read_cases(ATTACKS)
    cases = [{**case, "walled": place % 2 == 0} for place, case in enumerate(attacks[::13])]
    assert_harmless(cases, workers=1)


MODES = ("default", "plan", "dontAsk", "auto")


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("walled", [False, True])
@pytest.mark.parametrize("mode", MODES)
def test_every_attack_does_no_harm_in_any_mode(mode: str, walled: bool):
    assert_harmless([{**case, "mode": mode, "walled": walled} for case in read_cases(ATTACKS)])


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("walled", [False, True])
def test_lines_that_the_analysis_refuses_do_no_harm(walled: bool):
    # behind the wall, auto mode may make a new repository in the workspace
    cases = [case for case in read_cases(HARMFUL) if not (walled and case["line"].startswith("git init "))]
    assert_harmless([{**case, "walled": walled, "sandbox": "prefer" if walled else "off"} for case in cases])


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("walled", [False, True])
@pytest.mark.parametrize("mode", MODES)
def test_external_lines_do_no_harm(mode: str, walled: bool):
    file = Path(os.environ.get("CALLWRIGHT_CASES", "/nowhere"), "red", "shell_effects.jsonl")
    if not file.is_file():
        pytest.skip("CALLWRIGHT_CASES names no folder of external cases")
    assert_harmless([{**case, "mode": mode, "walled": walled} for case in read_cases(file)])


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("part", range(_PARTS))
def test_generated_lines_do_no_harm(part: int):
    cases = list(generate(LINES // _PARTS, seed=14 + part))
    assert len({case["line"] for case in cases}) > len(cases) // 2
    for place, case in enumerate(cases):
        case["batch"] = place // LINES_PER_FOLDER
    assert_harmless(cases)
