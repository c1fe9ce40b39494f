"""Lines that run unasked because a read-only wall makes them harmless."""

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from callwright.core.access import Allow, Ask, Confinement, DeletePath, Deny, Reach, RunCommand, WritePath
from callwright.core.errors import UsageError
from callwright.policy import ByMode, ExcludedCommands, judge_command, standard_policies
from callwright.policy.dry_run import dry_run_line
from callwright.policy.walled import is_walled
from callwright.shell import Verdict, analyze

WALLED = [
    "pytest -q tests",
    "python -m pytest -x | tail -5",
    "mypy src && ruff check .",
    "ruff format --check .",
    "make -n",
    "python -c 'import sys; print(sys.version)'",
    "python3 -m json.tool data.json",
    "python3.12 -m pip list",
    "cargo check",
    "cargo fmt --check",
    "go vet ./...",
    "node -e 'console.log(1)'",
    "npx tsc --noEmit",
    "npm test",
    "npm run lint",
    'for f in *.py; do python -m py_compile "$f"; done',
    "wc -l $(git ls-files '*.py')",
    "bash -n script.sh",
    "export FOO=bar",
    'cat "$FILE" | head -5',
    "timeout 60 pytest -q 2>&1 | tail",
    "sqlite3 app.db 'select count(*) from users'",
    "sqlite3 -nullvalue NULL app.db 'select 1'",
    "ldd bin/app",
    "exiftool image.jpg",
    "mytool status --long",
    "jupyter --version",
    "python -m venv --help",
    "python tool.py --dry-run",
    "python3 - <<'E'\nprint(1)\nE",
    "source .venv/bin/activate && pytest -q",
    "uv run pytest -q",
    "bundle exec rspec",
    "make test lint",
    "./gradlew test",
    "bat --style plain --pager never README.md",
    "git -C src verify-commit HEAD",
    'cd "$DIR" && git status',
    "pytest -q && git diff",
    "rg -l foo | xargs sed -n 1,5p",
    "strace -c ls",
    "bash -cl ls",
    "gcc -E main.c | head",
    "git --no-pager verify-commit HEAD",
    "git -P verify-commit HEAD",
    "mvn -v",
    "mytool install --help",
    "composer -q -V",
    "python -u -c 'print(1)'",
    "echo 'print(1)' | python3 -",
    "python3 - data.json < prog.py",
    "jupyter nbconvert --stdout x.ipynb",
    "set -e && pytest -q && git diff",
]
ASKED = [
    "python script.py",
    "python -m pip install x",
    "python -m http.server",
    "ruff check --fix .",
    "ruff format .",
    "prettier --write .",
    "eslint --fix src",
    "npm install",
    "npm run deploy",
    "npx cowsay hi",
    "cargo build",
    "go build ./...",
    "make",
    "perl -i -pe s/a/b/ file",
    "gofmt -w .",
    "pytest > out.txt",
    "pytest; rm -rf build",
    "pytest && curl https://example.com",
    "$RUNNER -q",
    "./pytest",
    "sqlite3 app.db 'drop table users'",
    "sqlite3 app.db 'select 1' '.shell touch x'",
    "jest -u",
    "sudo pytest",
    "docker exec app pytest",
    "npx mytool",
    "npm exec -c mytool",
    "uv tool run mytool",
    "nodemon -x ls",
    "watchexec ls",
    "screen -dm ls",
    "nix-shell other.nix --run ls",
    "nix develop -c ls",
    "guix shell -- ls",
    "op run -- ls",
    "doppler run -- ls",
    "infisical run -- ls",
    "aws-vault exec prod -- ls",
    "chamber exec svc -- ls",
    "mytool install x",
    "mytool /srv/other/.env",
    "mytool --config=/srv/other/.env",
    "cd /srv/other && exiftool .env",
    "mytool report -o out.html",
    "mytool --fix",
    "./mytool",
    "$TOOL",
    "ssh host ls",
    "vim README.md",
    "mvn test",
    "make test deploy",
    "./gradlew publish",
    "sort -o out names.txt",
    "dmesg --clear",
    "gzip notes.txt",
    "git -c core.pager=./evil.sh log",
    "env -i git log -p",
    "GIT_CONFIG_COUNT=0 git log -p",
    "unset GIT_CONFIG_COUNT; git diff",
    "source env.sh && git show",
    "git show $(git rev-parse HEAD):.env",
    "git gc",
    "git difftool --output=x",
    "sed -i s/a/b/ notes.txt",
    "mytool > out.txt",
    "sqlite3 app.db 'select 1' 'delete from users'",
    "gcc main.c",
    "gcc -E main.c -o out",
    "git --exec-path=/x verify-commit HEAD",
    "git -c a.b=c verify-commit HEAD",
    "python -W error script.py --check",
    "bat --style plain --output x README.md",
    "git my-alias",
    "git verify-commit --output=x HEAD",
    "composer -q",
    "python -u pytest",
    "jupyter nbconvert x.ipynb",
    "jupyter lab --stdout",
    "shopt; git diff",
]


@pytest.mark.parametrize("mode", ["default", "plan", "dontAsk", "auto"])
def test_walled_lines_run_read_only(mode: str, tmp_path: Path):
    for line in WALLED:
        decision = judge_command(line, cwd=tmp_path, workspace=tmp_path, mode=mode, auto_allow="walled")
        assert isinstance(decision, Allow), line
        assert decision.confinement is Confinement.READ_ONLY, line


def test_other_lines_are_asked_about(tmp_path: Path):
    for line in ASKED:
        decision = judge_command(line, cwd=tmp_path, workspace=tmp_path, auto_allow="walled")
        assert isinstance(decision, Ask), line


def test_analysis_alone_stays_the_default(tmp_path: Path):
    assert isinstance(judge_command("pytest -q", cwd=tmp_path, workspace=tmp_path), Ask)
    assert isinstance(judge_command("pytest -q", cwd=tmp_path, workspace=tmp_path, mode="plan"), Deny)


def test_rules_come_before_the_wall(tmp_path: Path):
    def judge(*, deny: tuple[str, ...] = (), ask: tuple[str, ...] = ()) -> object:
        return judge_command("pytest -q", cwd=tmp_path, workspace=tmp_path, auto_allow="walled", deny=deny, ask=ask)

    assert isinstance(judge(deny=("Bash(pytest *)",)), Deny)
    assert isinstance(judge(ask=("Bash(pytest *)",)), Ask)


def test_unknown_reads_ask_where_reads_are_fenced(tmp_path: Path):
    line = 'cat "$FILE"'
    decision = judge_command(line, cwd=tmp_path, workspace=tmp_path, auto_allow="walled", reads="inside")
    assert isinstance(decision, Ask)


@pytest.mark.parametrize("line", ["python -c 'print(1)'", "mytool /etc/passwd", "LD_PRELOAD=./x.so ls"])
def test_unknown_programs_ask_where_reads_are_fenced(line: str, tmp_path: Path):
    decision = judge_command(line, cwd=tmp_path, workspace=tmp_path, auto_allow="walled", reads="inside")
    assert isinstance(decision, Ask)


def test_proven_reads_need_no_question_where_reads_are_fenced(tmp_path: Path):
    decision = judge_command("ls src", cwd=tmp_path, workspace=tmp_path, auto_allow="walled", reads="inside")
    assert isinstance(decision, Allow)


@pytest.mark.parametrize("mode", ["default", "auto"])
def test_rule_for_one_part_does_not_open_the_wall_of_another(mode: str, tmp_path: Path):
    def judge(line: str) -> object:
        rules = ("Bash(pytest:*)",)
        return judge_command(line, cwd=tmp_path, workspace=tmp_path, mode=mode, auto_allow="walled", allow=rules)

    assert isinstance(judge("pytest -q && python -c 'print(1)'"), Ask)
    assert judge("pytest -q && ls") == judge("pytest -q && ls src")
    assert isinstance(judge("pytest -q && ls"), Allow)
    decision = judge_command(
        "pytest -q; python -c 1",
        cwd=tmp_path,
        workspace=tmp_path,
        mode="dontAsk",
        auto_allow="walled",
        allow=["Bash(pytest:*)"],
    )
    assert isinstance(decision, Deny)


def test_bypass_is_not_confined_to_reading(tmp_path: Path):
    decision = judge_command("python -c 1", cwd=tmp_path, workspace=tmp_path, mode="bypass", auto_allow="walled")
    assert isinstance(decision, Allow)
    assert Confinement.WORKSPACE in decision.confinement


def test_invalid_value_is_refused():
    with pytest.raises(UsageError, match="proven"):
        ByMode(auto_allow="everything")  # pyright: ignore[reportArgumentType] - what is tested


@pytest.mark.parametrize(
    ("line", "rules", "confinement"),
    [
        ("ls", (), Confinement.READ_ONLY),
        ("make", ("Bash(make)",), Confinement.RULE),
        ("cd sub && make", ("Bash(make)",), Confinement.RULE),
        ("ls src", ("Read(src/**)",), Confinement.READ_ONLY),
        ("echo x > a.txt", ("Edit(a.txt)",), Confinement.WORKSPACE | Confinement.NAMED),
    ],
)
def test_confinement_follows_what_allowed_the_line(
    line: str, rules: tuple[str, ...], confinement: Confinement, tmp_path: Path
):
    decision = judge_command(line, cwd=tmp_path, workspace=tmp_path, allow=rules)
    assert isinstance(decision, Allow)
    assert decision.confinement == confinement


def test_mode_auto_confines_to_the_workspace(tmp_path: Path):
    decision = judge_command("echo x > a.txt", cwd=tmp_path, workspace=tmp_path, mode="auto")
    assert isinstance(decision, Allow)
    assert decision.confinement is Confinement.WORKSPACE


def test_network_read_gets_the_network_only(tmp_path: Path):
    decision = judge_command("curl https://a.b", cwd=tmp_path, workspace=tmp_path, network_reads="allow")
    assert isinstance(decision, Allow)
    assert decision.confinement is Confinement.NETWORK


@pytest.mark.parametrize(
    ("line", "asks"),
    [
        ("git status", True),
        ("ls && /usr/bin/git log", True),
        ("timeout 5 git log", True),
        ("git push origin main", True),
        ("docker ps", False),
        ("docker run x", True),
        ("git show HEAD:.env", True),
        ("ls", False),
        ("echo git", False),
        ("echo", False),
    ],
)
def test_excluded_commands_are_asked_about(line: str, asks: bool, tmp_path: Path):
    by_mode = ByMode("default", network_reads="allow", auto_allow="walled")
    excluded = ExcludedCommands((" *", "git", "docker run *", "echo -n *"))
    policies = standard_policies(tmp_path, by_mode=by_mode, more=(excluded,))
    decision = policies.decide(RunCommand(line, str(tmp_path)), dry_run_line(line))
    assert isinstance(decision, Ask if asks else Allow)
    assert ("outside the sandbox" in decision.reason) is asks


@pytest.mark.parametrize("line", ["env -i git log -p", "git fast-export --all", "unset GIT_CONFIG_COUNT; git diff"])
def test_sandbox_of_auto_mode_does_not_cover_committed_secrets(line: str, tmp_path: Path):
    by_mode = ByMode("auto", sandboxed=True, auto_allow="walled")
    policies = standard_policies(tmp_path, by_mode=by_mode)
    assert isinstance(policies.decide(RunCommand(line, str(tmp_path)), dry_run_line(line)), Ask)
    assert isinstance(policies.decide(RunCommand("make", str(tmp_path)), dry_run_line("make")), Allow)


EVERYDAY = [json.loads(line) for line in (Path(__file__).parent / "data" / "everyday.jsonl").read_text().splitlines()]


def test_everyday_lines_are_seldom_asked_about(tmp_path: Path):
    def runs(line: str) -> str:
        if isinstance(judge_command(line, cwd=tmp_path, workspace=tmp_path), Allow):
            return "proven"
        walled = judge_command(line, cwd=tmp_path, workspace=tmp_path, auto_allow="walled")
        return "walled" if isinstance(walled, Allow) else "asks"

    found = {case["line"]: runs(case["line"]) for case in EVERYDAY}
    assert found == {case["line"]: case["runs"] for case in EVERYDAY}
    assert Counter(found.values())["asks"] / len(found) < 0.06


def test_wall_is_no_reason_to_run_what_deletes_connects_or_cannot_be_read():
    plan = analyze("pytest -q", "/w")
    assert is_walled(plan)
    assert not any(is_walled(replace(plan, **change)) for change in ({"problem": "x"}, {"commands": ()}))
    assert not is_walled(replace(plan, dangers=("it is a fork bomb",)))
    for access in (DeletePath("/w/a"), Reach("https://a"), WritePath("/w/a")):
        assert not is_walled(replace(plan, commands=(replace(plan.commands[0], accesses=(access,)),)))
    for verdict in (Verdict.WRITES, Verdict.DESTRUCTIVE, Verdict.READS_NETWORK):
        assert not is_walled(replace(plan, commands=(replace(plan.commands[0], verdict=verdict),)))
    for line in ("./gradlew", "./other test", "sqlite3 a.db 'select 1' > out", "duckdb a.db 'drop table t'", *ASKED):
        assert not is_walled(analyze(line, "/w"))
