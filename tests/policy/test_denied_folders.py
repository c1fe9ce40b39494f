"""Deny rules hold for folders that are moved, copied or removed, and for files that unknown programs are given."""

import os
import subprocess
from pathlib import Path

import pytest

from callwright import Allow, Ask, Completed, Deny, Executor, Failed, Interrupted, Registry
from callwright.policy import judge_command
from callwright.policy.rules.rule import rules_of
from callwright.policy.standard import standard_policies
from callwright.toolbox.delete import Delete
from callwright.toolbox.move import Move


@pytest.fixture
def project(tmp_path: Path) -> Path:
    root = Path(os.path.realpath(tmp_path))
    for name in ("secret/key.txt", "a/secret/key.txt", "a/gen/out.txt", "gen/out.txt", "src/x.txt"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("x\n")
    return root


def _executor(project: Path, rule: str, mode: str) -> Executor:
    policies = standard_policies(project, mode=mode, rules=rules_of(deny=[rule]))
    return Executor(Registry(Move(project), Delete(project)), policies)


@pytest.mark.parametrize("mode", ["auto", "bypass"])
@pytest.mark.parametrize(
    ("rule", "source"),
    [
        ("Read(secret/**)", "secret"),
        ("Read(secret/**)", "a/secret/"),
        ("Read(secret/*)", "src/../secret"),
        ("Read(a/secret/**)", "a/secret"),
        ("Read(/a/secret/**)", "a"),
        ("Edit(gen/**)", "gen"),
        ("Edit(/a/gen/**)", "a"),
    ],
)
async def test_denied_folder_is_not_moved_or_deleted(project: Path, rule: str, source: str, mode: str) -> None:
    executor = _executor(project, rule, mode)
    moved = await executor.run("move", {"source": source, "destination": "b"})
    deleted = await executor.run("delete", {"path": source, "recursive": True})
    assert isinstance(moved, Failed)
    assert isinstance(deleted, Failed)
    assert (project / source).is_dir()


@pytest.mark.parametrize("mode", ["auto", "bypass"])
@pytest.mark.parametrize(
    "rule", ["Read(a/secret/**)", "Read(secret/**)", "Read(key.txt)", "Edit(gen/**)", "Edit(out.*)"]
)
async def test_folder_that_holds_a_denied_file_is_moved_or_deleted_only_if_the_user_agrees(
    project: Path, rule: str, mode: str
) -> None:
    executor = _executor(project, rule, mode)
    assert isinstance(await executor.run("move", {"source": "a", "destination": "b"}), Interrupted)
    assert isinstance(await executor.run("delete", {"path": "a", "recursive": True}), Interrupted)


async def test_other_folders_and_links_are_moved(project: Path) -> None:
    (project / "link").symlink_to("a")
    executor = _executor(project, "Read(/secret/**)", "auto")
    for source in ("src", "a", "link", "gen/out.txt"):
        assert isinstance(await executor.run("move", {"source": source, "destination": f"new/{source}"}), Completed)


@pytest.mark.parametrize(
    ("rule", "line", "decision"),
    [
        ("Read(secret/**)", "mv secret b", Deny),
        ("Read(secret/**)", "mv -t b secret/", Deny),
        ("Read(secret/**)", "mv s* b", Deny),
        ("Read(secret/**)", "cp -r secret b", Ask),
        ("Read(secret/**)", "mv a b", Ask),
        ("Read(key.txt)", "cp -a a b", Ask),
        ("Edit(gen/**)", "mv gen b", Deny),
        ("Edit(gen/**)", "rm -r gen", Deny),
        ("Edit(gen/**)", "rm -r a", Ask),
        ("Edit(gen/**)", "find . -name out.txt -delete", Ask),
        ("Read(/a/secret/**)", "find . -maxdepth 1 -name a -exec mv {} b ';'", Ask),
        ("Edit(/a/gen/**)", "find . -maxdepth 1 -name a -exec rm -r {} +", Ask),
        ("Read(/a/secret/**)", "find . -name src -exec mv {} b ';'", Allow),
        ("Edit(gen/**)", "cp -r gen b", Allow),
        ("Edit(gen/**)", "mkdir -p a", Allow),
        ("Edit(gen/**)", "cp src/x.txt a", Allow),
        ("Edit(gen/**)", "rm -r src", Allow),
        ("Read(secret/**)", "mv src b", Allow),
        ("Read(/secret/**)", "mv a b", Allow),
        ("Read(key.txt)", "rm link", Allow),  # the link goes, and what it leads to stays
        ("Read(x.txt)", "echo src/x.txt", Allow),
        ("Read(x.txt)", "frobnicate src/x.txt", Ask),
        ("Read(gone.txt)", "frobnicate src/gone.txt", Allow),
        ("Read(src)", "frobnicate src", Allow),  # a bare word is seldom a folder
    ],
)
def test_commands_on_folders_with_denied_files(project: Path, rule: str, line: str, decision: type) -> None:
    (project / "link").symlink_to("a")
    judged = judge_command(line, cwd=project, workspace=project, mode="bypass", deny=[rule])
    assert isinstance(judged, decision), judged


@pytest.mark.parametrize(
    ("rule", "line", "decision"),
    [
        ("Read(/secret/**)", "git worktree add w", Ask),
        ("Read(/secret/**)", "git worktree add -b q w HEAD", Ask),
        ("Read(/secret/**)", "git clone . copy", Ask),
        ("Read(/secret/**)", "git checkout-index -a --prefix=copy/", Ask),
        ("Read(/secret/**)", "git mv secret b", Deny),
        ("Read(/secret/**)", "git rm -r secret", Deny),
        ("Edit(/gen/**)", "git mv gen b", Deny),
        ("Edit(/gen/**)", "git rm -rf gen", Deny),
        ("Edit(out.txt)", "git rm -rf a", Ask),
        ("Edit(/gen/**)", "git rm -r --cached gen", Allow),
        ("Edit(/gen/**)", "git worktree add w", Allow),
        ("Read(/other/**)", "git worktree add w", Allow),
        ("Read(/secret/**)", "git mv src b", Allow),
    ],
)
def test_git_calls_on_folders_with_denied_files(project: Path, rule: str, line: str, decision: type) -> None:
    for command in (("init", "-q"), ("add", ".")):
        subprocess.run(["git", *command], cwd=project, check=True)
    judged = judge_command(line, cwd=project, workspace=project, mode="bypass", deny=[rule])
    assert isinstance(judged, decision), judged


def test_git_moves_what_a_variable_names_unasked_where_nothing_is_denied(project: Path) -> None:
    judged = judge_command("git mv $A b", cwd=project, workspace=project, mode="bypass")
    assert isinstance(judged, Allow)
    judged = judge_command("git mv $A b", cwd=project, workspace=project, mode="bypass", deny=["Edit(/gen/**)"])
    assert isinstance(judged, Ask)


@pytest.mark.parametrize(
    ("rule", "line", "decision"),
    [
        ("Read(secret/**)", "perl -pe 1 secret/key.txt", Ask),
        ("Read(secret/**)", "python3 src/../secret/key.txt", Ask),
        ("Read(secret/**)", "cd secret && perl -pe 1 key.txt", Ask),
        ("Read(secret/**)", "some-program --file=secret/key.txt", Ask),
        ("Read(secret/**)", "perl -pe 1 link", Ask),
        ("Read(secret/**)", "gcc @secret/key.txt", Ask),
        ("Read(secret/**)", "some-program -fsecret/key.txt", Ask),
        ("Read(secret/**)", "socat -u file:secret/key.txt -", Ask),
        ("Read(secret/**)", "docker run -v ./secret/key.txt:/x alpine", Ask),
        ("Read(secret/**)", "some-program user@example.com:x", Allow),
        ("Read(~/gen/**)", "perl -pe 1 ~/gen/out.txt", Ask),
        ("Read(secret/**)", "perl -pe 1 src/x.txt", Allow),
        ("Read(secret)", "some-program get secret", Allow),
        ("Read(secret/**)", "helm show values ./secret/key.txt", Ask),
        ("Read(secret/**)", "kubectl get pods -o go-template-file=secret/key.txt", Ask),
        ("Read(secret/**)", "docker logs key.txt", Allow),
        ("Edit(gen/**)", "some-program gen/out.txt", Allow),
    ],
)
def test_unknown_program_is_given_a_denied_file(
    project: Path, monkeypatch: pytest.MonkeyPatch, rule: str, line: str, decision: type
) -> None:
    monkeypatch.setenv("HOME", str(project / "a"))
    (project / "link").symlink_to("secret/key.txt")
    judged = judge_command(line, cwd=project, workspace=project, mode="bypass", deny=[rule])
    assert isinstance(judged, decision), judged


def test_files_given_to_a_program_are_looked_up_once_for_all_rules_of_a_line(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked: list[str] = []
    exists = os.path.exists

    def look(path: str) -> bool:
        looked.append(path)
        return exists(path)

    monkeypatch.setattr(os.path, "exists", look)
    deny = [f"Read(secret/{number}.txt)" for number in range(10)]

    def judge() -> type:
        return type(judge_command("prog k=1,k=2 k=1", cwd=project, workspace=project, mode="bypass", deny=deny))

    assert judge() is Allow
    assert looked.count(f"{project}/k") == looked.count(f"{project}/1") == 1
    (project / "1").symlink_to("secret/9.txt")
    (project / "secret/9.txt").write_text("x")
    assert judge() is Ask  # the next call looks again


def test_network_read_is_given_a_denied_file(project: Path) -> None:
    def judge(line: str) -> type:
        judged = judge_command(line, cwd=project, workspace=project, network_reads="allow", deny=["Read(secret/**)"])
        return type(judged)

    assert judge("aws ec2 describe-instances --filter file://secret/key.txt") is Ask
    assert judge("aws ec2 describe-instances --filter file://src/x.txt") is Allow


@pytest.mark.parametrize("rule", ["WebFetch(domain:example.com)", "Edit(gen/**)", "Read(secret/**)"])
def test_line_that_cannot_be_read_asks_where_something_is_denied(project: Path, rule: str) -> None:
    line = "exec 3<>/dev/tcp/example.com/80"
    assert isinstance(judge_command(line, cwd=project, workspace=project, mode="bypass", deny=[rule]), Ask)
    assert isinstance(judge_command(line, cwd=project, workspace=project, mode="bypass"), Allow)
