"""Safety checks hold in every mode and against every rule."""

from pathlib import Path

import pytest

from callwright.core.access import Access, Allow, Ask, Decision, DeletePath, Deny, ReadPath, WritePath
from callwright.policy import ByMode, Guards, PathContext, Policies, Rules, rules_of
from callwright.policy.dry_run import dry_run_call

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
