"""Lines of which the analysis gives up a part: no guard sees that part, so they ask in bypass mode too."""

from pathlib import Path

import pytest

from callwright.core.access import Allow, Ask, Deny
from callwright.policy import judge_command
from callwright.shell import analyze
from callwright.shell.analyzer import MAX_READ_CHARS

_STEPS = "echo a; " * 300
_UNREAD = {
    "deep condition": f"[[ {'( ' * 3_000}a{' )' * 3_000} ]]; touch x",
    "deep default": f"echo {'${x:-' * 1_000}{'}' * 1_000}; touch x",
    "deep statements": f"{'if a; then ' * 70}touch x{'; fi' * 70}",
    "deep quotes": f"""echo {'"$(echo ' * 300}$(touch x){')"' * 300}""",
    "deep wrappers": f"{'env ' * 30}touch x",
    "deep scripts": f"{'env ' * 30}sh -c 'touch x'",
    "deep function": f'run() {{ "$@"; }}; {"run " * 30}touch x',
    "long": f"{'echo a; ' * (MAX_READ_CHARS // 8)}touch x; {'echo a; ' * 400}",
    "long and broken": f"{_STEPS * 5}x='touch x'; $x; echo ${{",
    "many pieces": f"{_STEPS * 3}{'a;' * 200}touch x; echo ${{",
    "too many texts": f"a='{'y ' * 20_000}'; eval {'$a ' * 50}",
    "too many scripts": "".join(f"eval touch a{place}; " for place in range(400)),
}


@pytest.mark.parametrize("line", _UNREAD.values(), ids=_UNREAD)
def test_unread_part_of_a_line_is_never_allowed_unasked(line: str, tmp_path: Path) -> None:
    plan = analyze(line, tmp_path)
    assert plan.unread and plan.problem and not plan.proven
    for mode in ("default", "auto", "bypass"):
        judged = judge_command(line, cwd=tmp_path, workspace=tmp_path, mode=mode, allow=["Bash", "Edit"])
        assert (isinstance(judged, Ask) and judged.firm) or isinstance(judged, Deny)
        if isinstance(judged, Ask):
            assert plan.unread in judged.reason and "guard unread line" in judged.source
    assert isinstance(judge_command(line, cwd=tmp_path, workspace=tmp_path, mode="dontAsk"), Deny)


_READ = {
    "statements": f"{'if a; then ' * 10}touch x{'; fi' * 10}",
    "substitutions": f"echo {'$(echo ' * 10}{')' * 10}",
    "wrappers": f"{'env ' * 23}touch x",
    "list": " && ".join(["touch x"] * 500),
    "text": "cat > x <<'EOF'\n" + "it is a `text` (with) $marks; and | more\n" * 2_000 + "EOF\n",
    "broken": f"{_STEPS}echo ${{",
    "refused": "&& touch x",
    "unknown words": '$x "$@" ${y%.*} `date` && touch x',
    "unknown program": "make all | tee log & wait",
}


@pytest.mark.parametrize("line", _READ.values(), ids=_READ)
def test_line_that_is_only_not_understood_runs_in_bypass_mode(line: str, tmp_path: Path) -> None:
    assert not analyze(line, tmp_path).unread
    assert isinstance(judge_command(line, cwd=tmp_path, workspace=tmp_path, mode="bypass"), Allow)


def test_long_broken_line_hides_nothing_from_guards(tmp_path: Path) -> None:
    """Its variables and folders are followed, and each of its pieces is judged."""
    for steps in ("x='rm -rf /'; $x", "cd /; rm -rf *", "rm -rf /"):
        line = f"{'echo a; ' * 400}{steps}; echo ${{"
        assert isinstance(judge_command(line, cwd=tmp_path, workspace=tmp_path, mode="bypass"), Deny), steps
