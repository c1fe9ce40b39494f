"""The programs in examples/ do what they say."""

import os
from pathlib import Path

import pytest
from tests.forked import AGENTS, COMMANDS, run_script

EXAMPLES = Path(__file__).parents[2] / "examples"
PRINTED = {
    "approval": "Allow pay: amount=20?\nIt is paid. [20]\n",
    "cluster": "Allow pay: invoice=42?\npaid invoice 42\n",
    "code_mode": "> 5 print(await order(item=cheapest))\nordered pencil\n ['pencil']\n",
    "custom_parts": "pay: paid 20 to ada, from [account]\n…pay: payments are limited to 500\n…Ada has her money.",
    "gateway": "serving http://127.0.0.1\n['add']\n{'sum': 5}\n",
    "rules": "deny   git push --force                  the rule Bash(git push:*) forbids it\n",
    "side_by_side": "2  Completed  done\n3  Completed  new\n4  Failed     unknown tool: lok; did you mean look?\n",
    "ten_lines": "There are 12 apples.\n",
}


def test_every_example_is_known() -> None:
    assert {path.stem for path in EXAMPLES.glob("*.py")} == set(PRINTED)


_SLOW = ("custom_parts", "gateway")


@pytest.mark.parametrize("name", [pytest.param(name, marks=[pytest.mark.slow] * (name in _SLOW)) for name in PRINTED])
def test_example_prints_the_expected_text(name: str) -> None:
    env = {**os.environ, "PYTHONWARNINGS": "error"}
    done = run_script(EXAMPLES / f"{name}.py", env=env, preload=COMMANDS if name == "gateway" else AGENTS)
    assert (done.returncode, done.stderr) == (0, "")
    for part in PRINTED[name].split("…"):  # calls that run side by side end in any order
        assert part in done.stdout
