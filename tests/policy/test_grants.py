"""A lasting yes becomes rules that are shown first and never wider than what was shown."""

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from callwright.core.access import (
    Access,
    Allow,
    Ask,
    DeletePath,
    Reach,
    ReadPath,
    RunCommand,
    UseTool,
    WritePath,
    WriteResource,
)
from callwright.core.calls import Approve, GrantScope, Question
from callwright.core.errors import UsageError
from callwright.core.spec import Effect
from callwright.policy import (
    ByMode,
    Grants,
    PathContext,
    Policies,
    judge_command,
    load_rules,
    propose,
    remove_rule,
    save_rules,
)
from callwright.policy.dry_run import DryRunCall, dry_run_call, dry_run_line
from callwright.policy.grants import generalise
from callwright.policy.rules.rule import RuleKind
from callwright.system.paths import Workspace


def _rules(line: str, *, prefix: bool = False) -> tuple[str, ...]:
    return propose([RunCommand(line, "/w")], prefix=prefix).rules


@pytest.mark.parametrize(
    ("line", "rules"),
    [
        ("npm run build", ("Bash(npm run build)",)),
        ("npm run build && make all", ("Bash(npm run build)", "Bash(make all)")),
        ("ls && make all", ("Bash(make all)",)),
        ("foo 'a b'", ("Bash(foo 'a b')",)),
        ('foo "it\'s"', ('Bash(foo "it\'s")',)),
        ("foo 'a*b'", (r"Bash(foo a\*b)",)),
    ],
)
def test_exact_rule_is_proposed_for_each_command(line: str, rules: tuple[str, ...]) -> None:
    assert _rules(line) == rules


@pytest.mark.parametrize("line", ["foo 'a*b'", "npm run build", "foo 'a b' c", "make -j4 all", 'foo "it\'s"'])
def test_proposed_rule_allows_only_that_line(tmp_path: Path, line: str) -> None:
    rules = _rules(line)
    assert isinstance(judge_command(line, cwd=tmp_path, workspace=tmp_path, allow=rules), Allow)
    for other in (line + " more", "foo aXb", "foo a b c", line.replace("o", "oo", 1), f"B=2 {line}"):
        if other != line:
            assert isinstance(judge_command(other, cwd=tmp_path, workspace=tmp_path, allow=rules), Ask)


@pytest.mark.parametrize(
    "line", ["npm run build > log.txt", "echo x >> notes", "make all 2> errors", "ls && npm test &> out"]
)
def test_redirect_to_a_file_has_no_rule(tmp_path: Path, line: str) -> None:
    allowed = ["Bash(npm run build)", "Bash(echo x)", "Bash(make all)", "Bash(npm test)"]
    assert isinstance(judge_command(line, cwd=tmp_path, workspace=tmp_path, allow=allowed), Ask)
    assert _rules(line) == ()
    assert _rules("make all > /dev/null 2>&1") == ("Bash(make all)",)


@pytest.mark.parametrize(
    ("line", "rules"),
    [
        ("pytest -x tests", ("Bash(pytest *)",)),
        ("git commit -m x", ("Bash(git commit *)",)),
        ("npm run build --fast", ("Bash(npm run build *)",)),
    ],
)
def test_prefix_rule_spells_out_the_subcommand(line: str, rules: tuple[str, ...]) -> None:
    assert _rules(line, prefix=True) == rules


@pytest.mark.parametrize(
    "line",
    [
        "bash -c foo",
        "python -c 'x'",
        "python x.py",
        "env foo",
        "sudo foo",
        "node -e x",
        "git -C x foo",
        "npm run",
        "rm a",
    ],
)
def test_no_prefix_rule_that_allows_anything(line: str) -> None:
    assert propose([RunCommand(line, "/w")], prefix=True).rules == ()
    assert propose([RunCommand(line, "/w")], prefix=True).refusal


@pytest.mark.parametrize(
    "line", ["echo x | python", "xargs rm", "eval foo", "foo $X", "rm -rf /", "foo '", "$CMD", "foo 'a  b'"]
)
def test_no_rule_is_offered_for_unproven_lines(line: str) -> None:
    proposal = propose([RunCommand(line, "/w")])
    assert proposal.rules == ()
    assert proposal.refusal


def test_files_hosts_and_tools_get_exact_rules() -> None:
    accesses: list[Access] = [
        WritePath("/w/a[1]*.txt"),
        ReadPath("/etc/hosts"),
        Reach("https://example.com/a/b"),
        UseTool("deploy", Effect.WRITE),
    ]
    assert propose(accesses).rules == (
        r"Edit(//w/a\[1\]\*.txt)",
        "Read(//etc/hosts)",
        "WebFetch(domain:example.com)",
        "deploy",
    )


def test_relative_path_gets_a_rule_for_this_folder() -> None:
    assert propose([ReadPath("a/b"), WritePath("/w/c"), DeletePath("d")]).rules == (
        "Read(./a/b)",
        "Edit(//w/c)",
        "Edit(./d)",
    )
    grants = Grants(PathContext("/w", "/home/ann"))
    grants.grant_rules(propose([WritePath("d")]).rules)
    assert isinstance(grants.judge(WritePath("d"), dry_run_line("")), Allow)
    assert grants.judge(WritePath("/w/sub/d"), dry_run_line("")) is None


@pytest.mark.parametrize(
    "access",
    [
        Reach("file:///etc/passwd"),
        Reach("not a url"),
        Reach("https://*/a"),
        Reach("https://*.example/a"),
        Reach("https://a,b.example/a"),
        Reach("https://["),
        Reach("https://a.example\\@b.example/"),
        WritePath("/w/a "),
        ReadPath(""),
        ReadPath("a\n"),
        ReadPath("/"),
        ReadPath("~"),
        ReadPath("/w/../etc/x"),
        WritePath("/w/a/"),
        WritePath("//w/a"),
        ReadPath("./a"),
        ReadPath("/w/a\0b"),
        WritePath("/w/\u202etxt.a"),
        WriteResource("db:a\nb"),
    ],
)
def test_what_no_rule_can_name_is_refused(access: Access) -> None:
    """One access without a rule leaves the whole call without one: half of an approval would not be what was shown."""
    proposal = propose([ReadPath("/w/a"), access])
    assert proposal.rules == () and proposal.refusal


@pytest.mark.parametrize(
    "name",
    ["edit", "replace", "Fetch", "shell", "read_file", "mcp__github", "mcp__github__*", "group:file", "a b", "f(x)"],
)
def test_tool_whose_name_means_more_in_a_rule_gets_none(name: str) -> None:
    """A function `replace` that was approved for good would let every tool change every file."""
    proposal = propose([UseTool(name, Effect.WRITE)])
    assert proposal.rules == () and name in proposal.refusal
    assert propose([UseTool("mcp__github__edit", Effect.WRITE)]).rules == ("mcp__github__edit",)


def test_path_in_the_home_folder_gets_a_rule_that_covers_it() -> None:
    grants = Grants(PathContext("/w", "/home/ann"))
    grants.grant_rules(propose([ReadPath("~/notes")]).rules)
    assert isinstance(grants.judge(ReadPath("~/notes"), dry_run_line("")), Allow)
    assert grants.judge(ReadPath("/w/~/notes"), dry_run_line("")) is None


def test_unknown_kind_of_access_becomes_no_rule() -> None:
    proposal = propose(["db://x"])  # type: ignore[list-item] - wrong on purpose
    assert proposal.rules == () and "cannot be written as a rule" in proposal.refusal


def test_session_grant_covers_one_access_in_one_session() -> None:
    grants = Grants(PathContext("/w", "/home/ann"))
    policies = Policies(grants, ByMode())
    grants.grant([WritePath("/w/a")], session="one")
    access, call = dry_run_call("edit", "/w/a", "/w")
    one, two = (DryRunCall(call.spec, call.arguments, session) for session in ("one", "two"))
    assert isinstance(policies.decide(access, one), Allow)
    assert isinstance(policies.decide(access, two), Ask)
    assert isinstance(policies.decide(WritePath("/w/b"), one), Ask)


def test_granted_line_covers_all_its_parts() -> None:
    grants = Grants(PathContext("/w", "/home/ann"))
    policies = Policies(grants, ByMode())
    call = dry_run_line("make > log")
    grants.grant([RunCommand("make > log", "/w")], session="")
    assert isinstance(policies.decide(RunCommand("make > log", "/w"), call), Allow)
    assert isinstance(policies.decide(RunCommand("make > log", "/x"), call), Ask)
    assert isinstance(policies.decide(RunCommand("make > log2", "/w"), call), Ask)
    grants.grant([RunCommand("make > log", ".")], session="")
    for same in (".", os.getcwd()):  # noqa: PTH109 - as a tool may write it
        assert isinstance(policies.decide(RunCommand("make > log", same), call), Allow)


def test_granted_rules_apply_in_their_session_only() -> None:
    grants = Grants(PathContext("/w", "/home/ann"))
    policies = Policies(grants, ByMode())
    grants.grant_rules(["deploy"], session="one")
    access, call = dry_run_call("deploy", "x", "/w")
    assert isinstance(policies.decide(access, DryRunCall(call.spec, session_id="one")), Allow)
    assert isinstance(policies.decide(access, DryRunCall(call.spec, session_id="two")), Ask)


def _question(*accesses: Access) -> Question:
    return Question("1", "bash", {}, "digest", "Allow bash?", accesses=accesses)


@pytest.mark.parametrize(
    ("scope", "line", "saved", "here", "elsewhere"),
    [
        ("once", "make all", [], Ask, Ask),
        ("session", "make all", [], Allow, Ask),
        ("always", "make all", ["Bash(make all)"], Allow, Allow),
        ("always", "echo x | python", [], Allow, Ask),
    ],
)
def test_approval_lasts_for_its_scope(
    tmp_path: Path, scope: GrantScope, line: str, saved: list[str], here: type, elsewhere: type
) -> None:
    file = tmp_path / "settings.json"
    grants = Grants(PathContext("/w", "/home/ann"), file)
    access = RunCommand(line, "/w")
    assert list(grants.remember(_question(access), Approve(scope=scope), session="one")) == saved
    policies, call = Policies(grants, ByMode()), dry_run_line(line)
    assert type(policies.decide(access, DryRunCall(call.spec, call.arguments, "one"))) is here
    assert type(policies.decide(access, DryRunCall(call.spec, call.arguments, "two"))) is elsewhere
    assert file.exists() is bool(saved)


def test_approval_given_once_is_not_restored() -> None:
    grants, access = Grants(PathContext("/w", "/home/ann")), WritePath("/w/a")
    call = dry_run_call("edit", "/w/a", "/w")[1]
    for answer, expected in ((Approve(), Ask), (Approve(scope="session"), Allow)):
        grants.restore(_question(access), answer, session=call.session_id)
        assert type(Policies(grants, ByMode()).decide(access, call)) is expected


@dataclass(frozen=True)
class _Call(DryRunCall):
    implementation: str = "v1"


def test_approval_of_a_call_without_accesses_covers_neither_accesses_nor_a_dry_run() -> None:
    grants, access = Grants(PathContext("/w", "/home/ann")), UseTool("deploy", Effect.WRITE)
    dry = dry_run_call("deploy", "x", "/w")[1]
    call = _Call(dry.spec, dry.arguments)
    for implementation in ("v1", ""):
        question = Question("1", "deploy", dry.arguments, "", "", accesses=(access,), implementation=implementation)
        grants.remember(question, Approve(scope="session"))
    assert isinstance(grants.judge(access, call), Allow)
    assert grants.judge(WritePath("/w/a"), call) is None  # it declares now what it did not when it was approved
    assert grants.judge(access, dry) is None


def test_saved_rules_keep_existing_settings(tmp_path: Path) -> None:
    file = tmp_path / "new" / ".callwright" / "settings.local.json"
    save_rules(file, ["Bash(make)"])
    settings = json.loads(file.read_text())
    settings["model"] = "x"
    file.write_text(json.dumps(settings), "utf-8-sig")  # with a byte order mark, as editors on Windows write it
    assert [str(rule) for rule in load_rules(file).rules]
    save_rules(file, ["Bash(make)", "Edit(//w/a)"])
    assert json.loads(file.read_text()) == {"permissions": {"allow": ["Bash(make)", "Edit(//w/a)"]}, "model": "x"}
    assert [each.name for each in file.parent.iterdir()] == [file.name]


@pytest.mark.parametrize("mode", [0o644, 0o600, 0o444])
def test_settings_file_becomes_private_and_its_link_stays(tmp_path: Path, mode: int) -> None:
    file, link = tmp_path / "settings.json", tmp_path / "link"
    file.write_text("{}")
    file.chmod(mode)
    link.symlink_to(file.name)
    save_rules(link, ["Bash(make)"])
    assert link.is_symlink() and file.stat().st_mode & 0o777 == 0o600
    remove_rule(link, "Bash(make)", "allow")
    assert json.loads(file.read_text()) == {"permissions": {"allow": []}}
    assert sorted(tmp_path.iterdir()) == [link, file]


@pytest.mark.skipif(sys.platform != "linux", reason="limits the size of files as Linux does")
def test_settings_file_stays_if_writing_fails(tmp_path: Path) -> None:
    file = tmp_path / "settings.json"
    file.write_text("{}")
    program = f"""
import resource, signal
from callwright.policy import save_rules
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
try:
    save_rules({str(file)!r}, ["Bash(make " + "x" * 5000 + ")"])
except OSError as error:
    print(error.strerror)
"""
    ended = subprocess.run([sys.executable, "-B", "-c", program], capture_output=True, text=True, check=True)
    assert ended.stdout == "File too large\n"
    assert file.read_text() == "{}" and list(tmp_path.iterdir()) == [file]


@pytest.mark.parametrize(
    "text",
    [
        "{",
        "[]",
        '{"permissions": {"allow": "x"}}',
        '{"permissions": 1}',
        '{"permissions": {"deny": ["Bash(rm *)"], "deny": []}}',
        '{"weight": NaN}',
    ],
)
def test_invalid_settings_file_is_not_changed(tmp_path: Path, text: str) -> None:
    file = tmp_path / "settings.json"
    file.write_text(text)
    with pytest.raises(UsageError):
        save_rules(file, ["Bash(make)"])
    assert file.read_text() == text


def test_settings_file_in_place_of_the_folders_raises(tmp_path: Path) -> None:
    file: Any = tmp_path / "settings.json"
    with pytest.raises(UsageError, match=r"expected PathContext as here, got .*; write Grants\(PathContext.of\("):
        Grants(file)


@pytest.mark.parametrize("kind", ["allow", "ask", "deny"])
def test_rule_is_saved_and_removed_in_its_list(tmp_path: Path, kind: RuleKind) -> None:
    file = tmp_path / "settings.json"
    others: dict[str, Any] = {
        "permissions": {"deny": ["Read(.env)"], "allow": [{"rule": "Bash(ls)", "match": ["ls"]}]},
        "model": "m",
    }
    file.write_text(json.dumps(others))
    save_rules(file, ["Bash(make *)", "Bash(make *)"], kind)
    save_rules(file, ["Bash(make *)"], kind)
    assert json.loads(file.read_text())["permissions"][kind].count("Bash(make *)") == 1
    remove_rule(file, "Bash(make *)", kind)
    left = json.loads(file.read_text())
    assert left["permissions"].pop(kind) == others["permissions"].get(kind, [])
    assert left["model"] == "m"
    with pytest.raises(UsageError, match="there is no"):
        remove_rule(file, "Bash(make *)", kind)


def test_unknown_list_is_not_written(tmp_path: Path) -> None:
    unknown: Any = "deney"
    with pytest.raises(UsageError):
        save_rules(tmp_path / "settings.json", ["Bash(make)"], unknown)
    assert not (tmp_path / "settings.json").exists()


def test_rule_with_examples_is_removed_with_them(tmp_path: Path) -> None:
    file = tmp_path / "settings.json"
    file.write_text(json.dumps({"permissions": {"allow": [{"rule": "Bash(ls)", "match": ["ls"]}, "Bash(w)"]}}))
    remove_rule(file, "Bash(ls)", "allow")
    assert json.loads(file.read_text()) == {"permissions": {"allow": ["Bash(w)"]}}


@pytest.mark.parametrize("content", ['{"permissions": {"deny": {}}}', '{"permissions": []}', "[]", "{"])
def test_damaged_settings_file_is_left_alone(tmp_path: Path, content: str) -> None:
    file = tmp_path / "settings.json"
    file.write_text(content)
    for change in (lambda: save_rules(file, ["Bash(ls)"], "deny"), lambda: remove_rule(file, "Bash(ls)", "deny")):
        with pytest.raises(UsageError):
            change()
    assert file.read_text() == content


def _wider(line: str) -> tuple[str, ...]:
    return generalise([RunCommand(line, "/w")]).rules


@pytest.mark.parametrize(
    ("line", "rules"),
    [
        ("node a.mjs", ("Bash(node *.mjs)",)),
        ("node ./a.mjs", ("Bash(node ./*.mjs)",)),
        ("python3 check_it.py", ("Bash(python3 *.py)",)),
        ("git commit -m x", ("Bash(git commit *)",)),
        ("npm run build --fast", ("Bash(npm run build *)",)),
        ("node a.mjs && git commit -m x", ("Bash(node *.mjs)", "Bash(git commit *)")),
    ],
)
def test_wider_rule_is_offered_where_it_is_foreseeable(line: str, rules: tuple[str, ...]) -> None:
    assert _wider(line) == rules


@pytest.mark.parametrize(
    "line",
    [
        "node -e x",
        "node -r ./a.mjs",
        "node --import=a.mjs",
        "node a.mjs b.mjs",
        "node a.mjs --fix",
        "node sub/a.mjs",
        "node ../a.mjs",
        "node /tmp/a.mjs",
        "node ~/a.mjs",
        "node .mjs",
        "node a",
        "node -a.mjs",
        "node 'a b.mjs'",
        "node 'a*.mjs'",
        "node http:a.mjs",
        "./node a.mjs",
        "bash a.sh",
        "sh a.sh",
        "sudo node a.mjs",
        "timeout 5 node a.mjs",
        "cd sub && node a.mjs",
        "FOO=1 PATH=. node a.mjs",
        "make all",
        "cp a b",
        "rm a.txt",
        "curl https://example.com",
        "docker run x",
        "npx a.mjs",
        "node $X.mjs",
        "npm install x",
        "npm exec x",
        "npm run",
        "git push origin main",
        "git -C x commit -m y",
        "go run x.go",
    ],
)
def test_no_wider_rule_for_other_lines(line: str) -> None:
    assert all("*" not in rule.replace("\\*", "") for rule in _wider(line))


@pytest.mark.parametrize("line", ["node b.mjs", "node a-2.test.mjs", "FOO=1 node b.mjs", "timeout 5 node b.mjs"])
def test_script_rule_covers_scripts_of_the_folder(tmp_path: Path, line: str) -> None:
    assert isinstance(judge_command(line, cwd=tmp_path, workspace=tmp_path, allow=["Bash(node *.mjs)"]), Allow)


@pytest.mark.parametrize(
    "line",
    [
        "node -e x.mjs",
        "node --import=evil.mjs",
        "node -r=x.mjs",
        "node --import evil.mjs",
        "node -r ./evil.cjs a.mjs",
        "node x.js a.mjs",
        "node a.mjs b.mjs",
        "node /tmp/evil.mjs",
        "node ../evil.mjs",
        "node sub/evil.mjs",
        "cd sub && node a.mjs",
        "cd /tmp && node a.mjs",
        "pushd x; node a.mjs",
        "env -C /tmp node a.mjs",
        "./node a.mjs",
        "NODE_OPTIONS=-r./x node a.mjs",
        "node data:text,evil.mjs",
        "node 'x y.mjs'",
        "node a.mjs; node b.js",
        "node $(id).mjs",
        "node --a.mjs",
    ],
)
def test_script_rule_covers_nothing_else(tmp_path: Path, line: str) -> None:
    assert not isinstance(judge_command(line, cwd=tmp_path, workspace=tmp_path, allow=["Bash(node *.mjs)"]), Allow)


def test_wider_answer_saves_exactly_the_rule_that_was_offered(tmp_path: Path) -> None:
    file = tmp_path / "settings.json"
    grants = Grants(PathContext.within(Workspace(tmp_path), tmp_path), file)
    access = RunCommand("node a.mjs", str(tmp_path))
    question = Question("1", "bash", {"command": "node a.mjs"}, "d", "?", accesses=(access,))
    assert grants.remember(question, Approve(scope="pattern"), session="s") == ("Bash(node *.mjs)",)
    assert json.loads(file.read_text())["permissions"]["allow"] == ["Bash(node *.mjs)"]
    other = Question("2", "bash", {"command": "make all"}, "d", "?", accesses=(RunCommand("make all", str(tmp_path)),))
    assert grants.remember(other, Approve(scope="pattern"), session="s") == ()
    assert json.loads(file.read_text())["permissions"]["allow"] == ["Bash(node *.mjs)"]
