"""Random lines, run for real: a read-only line leaves its folder unchanged and uses no network."""

import contextlib
import os
import random
import re
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from hypothesis import HealthCheck, assume, given, settings, strategies as st

from callwright.core.access import Reach
from callwright.shell import SAFE_ENVIRONMENT, ShellPlan, Verdict, analyze

pytestmark = pytest.mark.skipif(shutil.which("bash") is None, reason="lines are run by bash")

_STRACE = shutil.which("strace")
_MAX_SECONDS = 3.0
_FILES = {
    "a.txt": "one\ntwo w\n",
    "b.txt": "b\na\n",
    "in.py": "print(1)\n",
    "sub/c.txt": "x\n",
    "-o": "",
    "list": "a.txt\n",
}

_WORDS = [
    "a.txt", "b.txt", "sub", ".", "*", "./*", "*.txt", "sub/*", "-o", "OUT", "$x", '"$x"', "'$x'", "$(echo a.txt)",
    "`echo b.txt`", "<(cat a.txt)", "{a,b}.txt", "~", "-", "--", "1", "'a b'", '"a b"', "$'a'", "\\;", "'w OUT'",
    "+", "$(touch OUT)", '"`touch OUT`"', "OUT*", "-n", "-r", "-i", "-x", "-e", "-f", "-c", "-w", "-d", "-v", "-O",
    "-z", "-t",
]  # fmt: skip
_PROGRAMS = [
    "ls", "cat", "head", "tail -n 2", "wc -l", "sort", "sort -o", "sort -u", "sort --output", "uniq", "uniq -c",
    "cut -c1", "tr a b", "grep a", "grep -r a", "egrep a", "sed", "sed -n p", "sed s/a/b/", "sed 's/a/b/w OUT'",
    "sed -i s/a/b/", "sed -n 'w OUT'", "sed '1e touch OUT'", "sed 's/o/touch OUT/e'", "sed -e p -e",
    "awk '{print}'", "awk '{print > \"OUT\"}'", "awk 'BEGIN{system(\"touch OUT\")}'", "awk '$1 > 1'",
    "find . -name", "find . -type f", "find . -delete", "find . -fprint OUT", "find . -exec touch OUT {} \\;",
    "find . -exec cat {} \\;", "find . -exec", "xargs", "xargs cat", "xargs touch", "xargs -I{} cp a.txt {}",
    "xargs -n1", "env", "env A=1", "env -i", "env -S", "command", "command -v", "builtin", "eval", "exec", "time",
    "timeout 5", "nice", "nohup", "stdbuf -oL", "bash -c", "sh -c", "bash -c 'touch OUT'", "bash -c 'cat a.txt'",
    "bash", "touch", "rm", "rm -f", "cp a.txt", "mv a.txt", "ln -s a.txt", "mkdir", "tee", "dd of=OUT",
    "truncate -s 0", "chmod 600", "git status", "git log", "git diff", "git init -q", "git branch", "git tag",
    "git config a.b", "git config --list", "git stash", "git diff --output=OUT", "git grep a", "git ls-files",
    "git show", "echo", "echo hi", "printf '%s\\n'", "printf -v x", "printf", "test -f", "[ -f a.txt ]",
    "[[ -f a.txt ]]", "[[ $x -eq 1 ]]", "true", "false", ":", "pwd", "basename", "dirname", "realpath", "stat",
    "du -s", "file", "diff a.txt", "cmp a.txt", "comm a.txt", "join a.txt", "paste", "nl", "tac", "rev", "fold",
    "fmt", "expand", "od -c", "base64", "base64 -d", "md5sum", "sha256sum", "seq 3", "date +%s", "date", "id",
    "uname -a", "tar cf OUT", "tar tf", "tar xf", "gzip", "gzip -k", "gunzip", "gzip -l", "split",
    "csplit a.txt 1", "patch", "install a.txt", "mktemp OUT.XXX", "mktemp -u OUT.XXX", "shuf", "shuf -o OUT",
    "column", "iconv -f utf8", "cd sub", "cd sub &&", "cd /", "read x", "x=a.txt", "x='a[$(touch OUT)]'",
    "x=$(touch OUT)", "x=a.txt cat", "PATH=. ls", "export x=1", "declare -i y=x", "let x=1", "unset x", "set -x",
    "trap 'touch OUT' EXIT", "alias ls=touch", "source", ".", "jq .", "tree", "xxd a.txt", "xxd", "strings",
    "which", "type", "hash", "history", "python3 -c", "python3 --version", "perl -e", "rg a",
]  # fmt: skip
_JOINERS = [" ; ", " && ", " || ", " | ", " & ", "\n", " |& "]
_ENDINGS = [
    "",
    " > OUT",
    " >> OUT",
    " 2>/dev/null",
    " > /dev/null",
    " &> OUT",
    " >| OUT",
    " < a.txt",
    " <<< 'touch OUT'",
    " 2>&1",
    " 1<> OUT",
]


def _call(program: str, words: list[str], ending: str) -> str:
    return " ".join([program, *words]) + ending


def _frame(frame: str, first: str, second: str) -> str:
    return frame.format(first, second)


def _joined(parts: list[str], joiner: str) -> str:
    return joiner.join(parts)


_simple = st.builds(
    _call,
    st.sampled_from(_PROGRAMS),
    st.lists(st.sampled_from(_WORDS), max_size=3),
    st.sampled_from(_ENDINGS) | st.just(""),
)
_FRAMES = [
    "{0}", "({0})", "{{ {0}; }}", "! {0}", "echo $({0})", 'cat "$({0})"', "cat <({0})", "if {0}; then {1}; fi",
    "x=$({0}); {1}", "for x in a.txt b.txt; do {0}; done", "while false; do {0}; done", "case a in a) {0};; esac",
    "f() {{ {0}; }}; f; {1}", "time {0}", "bash -c '{0}'", "cat <<E\n$({0})\nE", "cat <<'E' | {1}\n{0}\nE",
    "eval \"{0}\"",
]  # fmt: skip
_framed = st.builds(_frame, st.sampled_from(_FRAMES) | st.just("{0}"), _simple, _simple)
_lines = st.builds(_joined, st.lists(_framed, min_size=1, max_size=3), st.sampled_from(_JOINERS))


def _generate_lines(source: random.Random) -> Iterator[str]:
    """Yield the same kind of lines as `_lines`, in a tenth of the time: Hypothesis repeats and refines what it made."""

    def make_simple() -> str:
        words = [source.choice(_WORDS) for _ in range(source.randrange(4))]
        return _call(source.choice(_PROGRAMS), words, source.choice([*_ENDINGS, *[""] * len(_ENDINGS)]))

    def make_framed() -> str:
        return _frame(source.choice([*_FRAMES, *["{0}"] * len(_FRAMES)]), make_simple(), make_simple())

    while True:
        yield _joined([make_framed() for _ in range(source.randrange(1, 4))], source.choice(_JOINERS))


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as name:
        base = Path(name).resolve() / "project"
        for path, text in _FILES.items():
            (base / path).parent.mkdir(parents=True, exist_ok=True)
            (base / path).write_text(text)
        yield base


def _picture(base: Path) -> dict[str, tuple[int, int, bytes]]:
    found: dict[str, tuple[int, int, bytes]] = {}
    for path in sorted(base.rglob("*")):
        state = path.lstat()
        found[str(path)] = (state.st_mode, state.st_mtime_ns, path.read_bytes() if path.is_file() else b"")
    return found


def _end(process: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


@cache
def _find_tracer() -> list[str]:
    """Return the command that records sockets, where possible with a filter: else it stops at each system call."""
    if _STRACE is None:
        return []
    tracer = [_STRACE, "-f", "-qq", "-e", "trace=socket"]
    filtering = [*tracer, "--seccomp-bpf"]
    tried = subprocess.run([*filtering, "-o", os.devnull, "true"], capture_output=True, check=False)
    return filtering if tried.returncode == 0 else tracer


def _run(line: str, base: Path) -> str:
    trace = base.parent / "trace"
    command = ["bash", "-c", line]
    if tracer := _find_tracer():
        command = [*tracer, "-o", str(trace), *command]
    environment = {"PATH": os.environ["PATH"], "HOME": str(base), **SAFE_ENVIRONMENT}
    process = subprocess.Popen(
        command,
        cwd=base,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        process.wait(_MAX_SECONDS)
    except subprocess.TimeoutExpired:
        pass  # tail -f only looks too, and would look for ever
    finally:
        _end(process)
    return trace.read_text(errors="replace") if _STRACE else ""


def _is_read_only(plan: ShellPlan) -> bool:
    return plan.proven and plan.verdict is Verdict.READ_ONLY


def _check(plan: ShellPlan, base: Path) -> None:
    assert not any(isinstance(access, Reach) for access in plan.accesses), plan.line
    before = _picture(base)
    trace = _run(plan.line, base)
    assert _picture(base) == before, plan.line
    assert not re.search(r"AF_INET", trace), plan.line


_CHECKS = [HealthCheck.filter_too_much, HealthCheck.too_slow, HealthCheck.function_scoped_fixture]


@settings(max_examples=100, deadline=None, suppress_health_check=_CHECKS, database=None)
@given(line=_lines)
def test_read_only_lines_change_nothing(folder: Path, line: str) -> None:
    plan = analyze(line, folder)
    assume(_is_read_only(plan))
    _check(plan, folder)


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_many_read_only_lines_change_nothing(folder: Path) -> None:
    checked: set[str] = set()
    lines = _generate_lines(random.Random(random.getrandbits(64)))
    while len(checked) < 600:
        plan = analyze(next(lines), folder)
        if _is_read_only(plan) and plan.line not in checked:
            _check(plan, folder)
            checked.add(plan.line)


@pytest.mark.skipif(_STRACE is None, reason="sockets are recorded by strace")
def test_trace_names_sockets_of_every_process(folder: Path) -> None:
    assert "AF_INET" in _run("ls; (bash -c ': < /dev/tcp/127.0.0.1/9')", folder)
    assert "AF_INET" not in _run("ls; (bash -c ': < /dev/null')", folder)


def test_generator_makes_read_only_and_other_lines(folder: Path) -> None:
    """A fuzz suite that is never allowed to run anything would prove nothing."""
    verdicts = {analyze(f"{program} a.txt", folder).verdict for program in _PROGRAMS}
    assert {Verdict.READ_ONLY, Verdict.WRITES, Verdict.DESTRUCTIVE, Verdict.UNKNOWN} <= verdicts | {
        analyze("rm -rf a.txt", folder).verdict
    }
