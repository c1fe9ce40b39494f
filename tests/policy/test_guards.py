"""Safety checks hold in every mode and against every rule."""

import os
from pathlib import Path

import pytest

from callwright.core.access import Access, Allow, Ask, Decision, DeletePath, Deny, ReadPath, RunCommand, WritePath
from callwright.policy import ByMode, Guards, PathContext, Policies, Rules, rules_of, trees
from callwright.policy.dry_run import dry_run_call
from callwright.shell.words import Tree
from callwright.system.environment import is_credential

_HERE = PathContext("/w/project", "/home/ann", ("/w/project",))
_ANYTHING = rules_of(allow=["Read", "Edit", "Bash", "Read(//**)", "Edit(//**)"])
_, _CALL = dry_run_call("edit", "x", "/w/project")


def _decide(access: Access, mode: str) -> Decision:
    return Policies(Guards(_HERE), Rules(_ANYTHING, _HERE), ByMode(mode)).decide(access, _CALL)


@pytest.mark.parametrize("mode", ["default", "auto", "bypass"])
@pytest.mark.parametrize(
    "path", ["/", "/etc", "/usr", "/home", "/home/ann", "/home/bob", "/root", "/x/../etc", "//", "~"]
)
def test_removing_vital_folders_is_denied(path: str, mode: str) -> None:
    assert isinstance(_decide(DeletePath(path), mode), Deny)


@pytest.mark.parametrize("mode", ["default", "auto", "bypass"])
@pytest.mark.parametrize("path", ["/w/project", "/w/project/.", "."])
def test_removing_the_working_folder_asks_in_every_mode(path: str, mode: str) -> None:
    decision = _decide(DeletePath(path), mode)
    assert isinstance(decision, Ask)
    assert decision.firm


def test_removing_a_file_inside_is_not_guarded() -> None:
    assert Guards(_HERE).judge(DeletePath("/w/project/build"), _CALL) is None


_PROTECTED = [
    ".git/config",
    ".GIT/hooks/pre-commit",
    "sub/.git/HEAD",
    ".vscode/settings.json",
    ".husky/pre-commit",
    ".bashrc",
    ".Zshrc",
    ".npmrc",
    ".mcp.json",
    ".env",
    ".env.production",
    ".callwright/settings.json",
    "~/.config/git/config",
    "~/.ssh/authorized_keys",
    "lefthook.yml",
    ".pre-commit-config.yaml",
]


@pytest.mark.parametrize("path", _PROTECTED)
def test_protected_write_asks_in_every_mode_but_bypass(path: str) -> None:
    for mode in ("default", "auto"):
        decision = _decide(WritePath(path), mode)
        assert isinstance(decision, Ask)
        assert "guard protected path" in decision.source
    assert isinstance(_decide(WritePath(path), "dontAsk"), Deny)
    assert isinstance(_decide(WritePath(path), "plan"), Deny)
    assert isinstance(_decide(WritePath(path), "bypass"), Allow)


@pytest.mark.parametrize(
    "path", ["README.md", "src/git/config", "env", ".env.example", ".gitignore", "git", ".github/x"]
)
def test_ordinary_files_are_not_protected(path: str) -> None:
    assert Guards(_HERE).judge(WritePath(path), _CALL) is None


_SECRETS = [
    "~/.ssh/id_rsa",
    "~/.ssh/work_key",
    "~/.SSH/work_key",
    "/home/bob/.SSH/id_ed25519",
    "id_rsa",
    "~/.aws/credentials",
    "~/.netrc",
    ".env",
    ".env.local",
    "~/.gnupg/secring.gpg",
    "~/.kube/config",
    "~/.git-credentials",
    "~/.docker/config.json",
    "~/.config/gcloud/credentials.db",
    "~/.mozilla/firefox/x.default/logins.json",
    "~/.config/google-chrome/Default/Cookies",
    "/etc/shadow",
    "/proc/self/environ",
    "server.key",
    "~/.config/gh/hosts.yml",
    "~/.pypirc",
    "~/.aws",
    "~/.bash_history",
    "/dev/sda",
]


@pytest.mark.parametrize("path", _SECRETS)
@pytest.mark.parametrize("mode", ["plan", "default", "auto", "bypass"])
def test_reading_a_secret_asks_in_every_mode(path: str, mode: str) -> None:
    decision = _decide(ReadPath(path), mode)
    assert isinstance(decision, Ask)
    assert decision.firm


def test_delete_is_guarded_like_read_and_write() -> None:
    """What is gone cannot be had back, and a program's settings are changed by their absence too."""
    secret, settings, other = (
        Guards(_HERE).judge(DeletePath(path), _CALL) for path in ("server.key", ".git/config", "build/a.o")
    )
    assert isinstance(secret, Ask) and secret.firm
    assert isinstance(settings, Ask) and "guard protected path" in settings.source
    assert other is None


@pytest.mark.parametrize(
    "path", ["~/.ssh/id_rsa.pub", "~/.ssh/known_hosts", ".env.example", "src/keys.py", "environment"]
)
def test_file_that_only_looks_secret_may_be_read(path: str) -> None:
    assert Guards(_HERE).judge(ReadPath(path), _CALL) is None


def test_link_does_not_hide_its_target(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / "notes").symlink_to(tmp_path / ".git")
    (tmp_path / ".env").write_text("KEY=1")
    (tmp_path / "readme").symlink_to(tmp_path / ".env")
    guards = Guards(PathContext(str(tmp_path), "/home/ann", (str(tmp_path.resolve()),)))
    assert isinstance(guards.judge(WritePath("notes/config"), _CALL), Ask)
    assert isinstance(guards.judge(ReadPath("readme"), _CALL), Ask)


def test_workspace_below_a_protected_folder_is_writable() -> None:
    root = "/home/ann/.config/git/project"
    guards = Guards(PathContext(root, "/home/ann", (root,)))
    assert guards.judge(WritePath(f"{root}/a.py"), _CALL) is None


def _judge_line(line: str, mode: str = "bypass") -> Decision:
    access, call = dry_run_call("bash", line, "/w/project")
    return Policies(Guards(_HERE), Rules(_ANYTHING, _HERE), ByMode(mode)).decide(access, call)


@pytest.mark.parametrize(
    "line",
    [
        "chmod -R 777 /",
        "chmod -Rv 777 /etc",
        "chmod --recursive 777 /usr/*",
        "chown -R me /home/ann",
        "/bin/chown -hR me /home",
        "chgrp -R me ~",
    ],
)
def test_changing_modes_of_a_vital_folder_is_denied(line: str) -> None:
    assert isinstance(_judge_line(line), Deny)


@pytest.mark.parametrize(
    "line", ["chmod 755 /etc", "chmod -R 755 /w/project/src", "chmod -R 755 /etc/mine", "ls -R /etc", "touch -R /etc"]
)
def test_changing_modes_elsewhere_is_not_denied(line: str) -> None:
    assert not isinstance(_judge_line(line), Deny)


@pytest.mark.parametrize("line", [":(){ :|:& };:", "echo x > /dev/sda", "mkfs.ext4 /dev/sda1", 'rm -rf "$X/"'])
def test_danger_is_denied_whatever_rules_allow(line: str) -> None:
    decision = _judge_line(line)
    assert isinstance(decision, Deny)
    assert decision.source == "guard danger"


def test_danger_belongs_to_the_line_and_not_to_its_harmless_commands() -> None:
    access, call = dry_run_call("bash", "ls; :(){ :|:& };:", "/w/project")
    assert isinstance(access, RunCommand)
    policies = Policies(Guards(_HERE), ByMode("bypass"))
    denied = [part.command for _, part, decision in policies.parts(access, call) if isinstance(decision, Deny)]
    assert denied == [None]


def test_only_paths_below_a_root_lose_its_folders() -> None:
    here = PathContext("/home/ann/.config/git/work", "/home/ann", ("/home/ann/.config/git/work",))
    guards = Guards(here)
    assert guards.judge(WritePath("/home/ann/.config/git/work/a.txt"), _CALL) is None
    assert guards.judge(WritePath("/home/ann/.config/git/work"), _CALL) is None
    for path in (
        "/home/ann/.config/git/workshop/a.txt",
        "/home/ann/.config/git/x",
        "/home/ann/.config/git/work/.envrc",
    ):
        assert isinstance(guards.judge(WritePath(path), _CALL), Ask)


def test_printed_environment_asks_only_with_a_credential(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if is_credential(name, os.environ[name]):
            monkeypatch.delenv(name)
    for line in ("env", "printenv", "export -p", "jq -n env", "env | grep PATH"):
        assert isinstance(_judge_line(line, "default"), Allow), line
    monkeypatch.setenv("SHOP_API_TOKEN", "x")
    for line in ("env", "printenv", "export -p", "declare -x", "jq -n '$ENV'", "env | grep PATH"):
        decision = _judge_line(line)
        assert isinstance(decision, Ask), line
        assert decision.firm
        assert "SHOP_API_TOKEN" in decision.reason
    access, call = dry_run_call("bash", "env", "/w/project")
    assert isinstance(Policies(Guards(_HERE, masked=True), ByMode("default")).decide(access, call), Allow)


def test_folder_with_a_secret_is_not_searched_unasked(tmp_path: Path) -> None:
    here = PathContext.of(tmp_path, tmp_path)
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub/.env").write_text("x")
    for line, allowed in (
        ("grep -r x .", False),
        ("grep -r x sub", False),
        ("rg --hidden x", False),
        ("rg x", True),
        ("grep -r x --include=*.py .", True),
        ("find . -type f -exec cat {} +", False),
        ("find . -name '*.py' -exec cat {} +", True),
        ("find . -type f -exec ls {} +", True),
    ):
        access, call = dry_run_call("bash", line, str(tmp_path))
        decision = Policies(Guards(here), ByMode("default")).decide(access, call)
        assert isinstance(decision, Allow) is allowed, line
        masked = Policies(Guards(here, masked=True), ByMode("default")).decide(access, call)
        assert isinstance(masked, Allow), line


def test_folder_too_large_to_check_asks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trees, "_MAX_ENTRIES", 2)
    for name in "abc":
        (tmp_path / name).write_text("x")
    assert trees.find_in_tree(Tree(str(tmp_path)), lambda path: False) is None
    assert trees.find_in_tree(Tree("$X"), lambda path: False) is None
    assert trees.find_in_tree(Tree(str(tmp_path / "a")), lambda path: True) == str(tmp_path / "a")
