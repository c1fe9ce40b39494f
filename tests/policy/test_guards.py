"""Safety checks hold in every mode and against every rule."""

import os
import sys
from pathlib import Path

import pytest

from callwright.core.access import (
    Access,
    Allow,
    Ask,
    Decision,
    DeletePath,
    DeleteResource,
    Deny,
    ReadPath,
    ReadResource,
    RunCommand,
    WritePath,
    WriteResource,
)
from callwright.policy import ByMode, Guards, PathContext, Policies, Rules, judge_command, rules_of, trees
from callwright.policy.dry_run import dry_run_call
from callwright.shell.plan import Tree
from callwright.system.environment import is_credential

_HERE = PathContext("/w/project", "/home/ann", ("/w/project",))


@pytest.fixture(autouse=True)
def home(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", _HERE.home)  # what the shell puts for ~


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


@pytest.mark.parametrize(
    ("path", "guarded"),
    [
        ("/data/ours", True),
        ("/data/ours/trust.json", True),
        ("/DATA/ours/sessions/1", True),
        ("/data/ours/skills/x/SKILL.md", False),
        ("/data/ours2/trust.json", False),
    ],
)
def test_own_folder_is_neither_read_nor_written_unasked(
    path: str, guarded: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CALLWRIGHT_HOME", "/data/ours")
    for access in (ReadPath(path), WritePath(path)):
        assert isinstance(Guards(_HERE).judge(access, _CALL), Ask) is guarded


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
    ".tcshrc",
    ".xprofile",
    ".npmrc",
    ".mcp.json",
    ".env",
    ".env.production",
    ".callwright/settings.json",
    "~/.config/git/config",
    "~/.ssh/authorized_keys",
    "lefthook.yml",
    ".pre-commit-config.yaml",
    ".g\u200cit/hooks/pre-commit",
    ".git\u200b/config",
    "\ufeff.bashrc",
    ".hg/hgrc",
    ".zed/tasks.json",
    ".Rprofile",
    "src/.gdbinit",
    ".pdbrc",
    "mise.toml",
    ".dir-locals.el",
    "opencode.json",
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
    ".envrc",
    "infra/terraform.tfstate",
    "terraform.tfstate.backup",
    "terraform.tfstate.1700000000.backup",
    "~/.gnupg/secring.gpg",
    "~/.kube/config",
    "~/.git-credentials",
    "~/.docker/config.json",
    "~/.config/containers/auth.json",
    "/run/user/1000/containers/auth.json",
    "~/.config/rclone/rclone.conf",
    "~/.pulumi/credentials.json",
    "~/.databrickscfg",
    "~/.config/sops/age/keys.txt",
    "~/.cache/huggingface/token",
    "~/.kaggle/kaggle.json",
    "~/.config/composer/auth.json",
    "~/.config/.wrangler/config/default.toml",
    "~/.fly/config.yml",
    "~/.config/gcloud/credentials.db",
    "~/.mozilla/firefox/x.default/logins.json",
    "~/.config/google-chrome/Default/Cookies",
    "/etc/shadow",
    "/proc/self/environ",
    "server.key",
    "~/.config/gh/hosts.yml",
    "~/.pypirc",
    "~/.npmrc",
    "/root/.yarnrc.yml",
    "~/.config/pip/pip.conf",
    "~/.pip/pip.conf",
    "~/Library/Application Support/pip/pip.conf",
    "~/.aws",
    "~/.bash_history",
    "/dev/sda",
]


@pytest.mark.parametrize("mode", ["plan", "default", "auto", "bypass"])
def test_reading_a_secret_asks_in_every_mode(mode: str) -> None:
    for path in _SECRETS:
        decision = _decide(ReadPath(path), mode)
        assert isinstance(decision, Ask) and decision.firm, path


def test_delete_is_guarded_like_read_and_write() -> None:
    """What is gone cannot be had back, and a program's settings are changed by their absence too."""
    secret, settings, other = (
        Guards(_HERE).judge(DeletePath(path), _CALL) for path in ("server.key", ".git/config", "build/a.o")
    )
    assert isinstance(secret, Ask) and secret.firm
    assert isinstance(settings, Ask) and "guard protected path" in settings.source
    assert other is None


@pytest.mark.parametrize(
    "path",
    [
        "~/.ssh/id_rsa.pub",
        "~/.ssh/known_hosts",
        ".env.example",
        "main.tf",
        "tfstate.py",
        "src/keys.py",
        "environment",
        ".npmrc",
        "web/.npmrc",
        "/home/app/.npmrc",
    ],
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


def _guard_line(line: str, cwd: str = "/w/project", guards: Guards | None = None) -> list[Decision]:
    """Return what the guards alone say about the parts of a line."""
    access, call = dry_run_call("bash", line, cwd)
    assert isinstance(access, RunCommand)
    judged = Guards(_HERE) if guards is None else guards
    parts = Policies(ByMode("bypass")).parts(access, call)
    return [decision for part, view, _ in parts if (decision := judged.judge(part, view)) is not None]


GUARDED_LINES = {
    # what is removed, and whether only a person may allow it
    "rm -rf build $X": "critical path",
    "rm -rf build ${X}": "critical path",
    "find /w/project -delete": "critical path",
    "find . -name '*' -delete": "critical path",
    "find . ! -name . -delete": "critical path",
    "find . -name notes.txt -o -delete": "critical path",
    "find . -exec rm -rf {} +": "critical path",
    "find . -print0 | xargs -0 rm -rf": "critical path",
    "find / -mtime +1 -delete": "critical path",
    "find ~ -not -name notes.txt -delete": "critical path",
    "find /home/ann -size +1M -exec rm -f {} +": "critical path",
    "find / -name a -o -size +1M -delete": "critical path",
    "find / -exec rm -rf {} ';'": "critical path",
    "rm -rf .": "critical path",
    "echo / | xargs rm -rf": "critical path",
    "printf '%s\\n' /home/ann | xargs rm -r": "critical path",
    "rsync -a --delete new/ ~/": "critical path",
    "rsync -a --delete-after new/ .": "critical path",
    "rsync -a --del new/ .": "critical path",
    # a key that is given to a program, whatever the program does with it
    "frobnicate ~/.ssh/id_rsa": "secret",
    "frobnicate --key=/home/ann/.ssh/id_rsa": "secret",
    "expr length /home/ann/.ssh/id_rsa": "secret",
    "cat ~/.ssh/id_rsa": "secret",
    "info ./.env": "secret",
    "jq --slurpfile a ./.env '$a' f.json": "secret",
    "jq --indent --arg a ./.env": "secret",
    "jq -f --arg ./.env a b": "secret",
}


@pytest.mark.parametrize(("line", "guard"), GUARDED_LINES.items())
def test_guarded_line_asks_firmly(line: str, guard: str) -> None:
    decisions = _guard_line(line)
    assert [type(decision) for decision in decisions] == [Ask] * len(decisions) and decisions
    assert all(isinstance(each, Ask) and each.firm and each.source == f"guard {guard}" for each in decisions)


@pytest.mark.parametrize(
    "line",
    [
        *("find . -name '*.pyc' -delete", "find /etc -name x -delete", "rm -rf /w/project/sub", "rm ~/notes.txt"),
        *("find . -empty -delete", "find . -mtime +9 -delete", "find sub -delete", "find /tmp -mtime +9 -delete"),
        *(
            "rsync -a --delete new/ sub/",
            "rsync -a new/ .",
            "rsync -avn --delete new/ .",
            "rsync -a --delay-updates new/ .",
            "cp -- --delete.txt .",
            "ls . && find . -mtime +9 -exec rm {} +",
        ),
        *("frobnicate id_rsa", "frobnicate ./.env", "frobnicate a/b", "echo /home/ann/.ssh/id_rsa", "rm -rf build"),
        *("echo $X", "ls $X", "frobnicate $X", "echo x > a.txt", "x=1", "cd sub && rm -rf ."),
    ],
)
def test_ordinary_line_is_not_guarded(line: str) -> None:
    assert _guard_line(line) == []


@pytest.mark.parametrize(
    "line",
    [
        "rm -rf /Users/bob",
        "rm -rf /home/*",
        "rm -rf '/[a-z]*'",
        "rm -rf /*",
        "rm -rf /etc -name",
        "rm -rf /etc -- -name x",
        "find / -delete",
        "find ~ -path '*' -delete",
        # what the line itself puts into variables
        "for x in rm *; do $x -rf /; done",
        "for x in $y rm; do $x -rf /; done",
        'for x in / "$y"; do rm -rf "$x"; done',
        "${y:-rm} -rf /",
        "y=; ${y:-rm} -rf /",
        "${y:+rm} -rf /",
        "x=rm; ${x-ls} -rf /",
        'rm -rf "${y:=/}"',
        "x=/; rm -rf ${y:-$x}",
        "a=(rm); ${a[0]} -rf /",
        "a=(ls rm); ${a[1]} -rf /",
        'a=(rm -rf /); "${a[@]}"',
        "declare -a a=(rm x); $a -rf /",
        "printf -v x rm; $x -rf /",
        "printf -vx %s rm; $x -rf /",
        "read x <<< rm; $x -rf /",
        'read -r y x <<< "ls rm"; $x -rf /',
        "read x <<E\nrm\nE\n$x -rf /",
        "$(echo rm) -rf /",
        "x=rm eval '$x -rf /'",
        "x=ls; x=rm bash -c '$x -rf /'",
        "env x=rm sh -c '$x -rf /'",
        "x=rm; x=ls eval true; $x -rf /",
        "rm -rf `printf '/'`",
        # earlier values may still hold
        "x=rm; (x=ls); $x -rf /",
        "x=rm; false && x=ls; $x -rf /",
        "x=rm; read x <<< ls & $x -rf /",
        "x=rm; printf -v x ls | cat; $x -rf /",
        "x=(rm -rf /); (x=(ls)); ${x[@]}",
        "a=(rm -rf); x=y; x=/; ${a[@]} $x",
        "x=1; x=rm; x=2 sh -c true; y=/; (y=a); y=b; $x -rf /",
        "x=rm sh -c true; $x -rf /",
        "x=(ls) true; x=rm; $x -rf /",  # what stands before a command is for that one
    ],
)
def test_line_that_removes_a_home_or_everything_is_denied(line: str) -> None:
    assert any(isinstance(decision, Deny) for decision in _guard_line(line))


@pytest.mark.parametrize(
    ("line", "asks"),
    [
        ("set -- rm; $1 -rf /", True),
        ("x=rmz; ${x%z} -rf /*", True),
        ("x=r; x+=m; $x -fr ~", True),
        ("$(base64 -d <<< cm0K) --recursive /etc/", True),
        ("$x --recurs //etc", True),
        ("$x -R /etc/../usr", True),
        ("$x -r ~/x/..", True),
        ("$x -rf build /home/ann/a", False),
        ("$x -f /", False),
        ("$x -r /tmp", False),
        ("$x -r /tmp/", False),
        pytest.param(f"$x -{'r' * 200_000}1 /", False, id="linear"),  # with the square of its length it takes minutes
    ],
)
def test_vital_folder_that_is_given_to_an_unknown_program_asks(line: str, asks: bool) -> None:
    found = [each for each in _guard_line(line) if isinstance(each, Ask) and "not known" in each.reason]
    assert bool(found) is asks and all(each.firm for each in found)


def test_variable_that_a_loop_sets_to_something_unknown_asks_beside_one_that_is_known() -> None:
    decisions = _guard_line('for x in rm ls; do for y in cat $z; do "$x" a $y; done; done')
    assert any(isinstance(decision, Ask) and "$y" in decision.reason for decision in decisions)


def test_variable_that_is_set_for_a_script_alone_is_unknown_after_it() -> None:
    (decision,) = _guard_line("x=rm; y=a sh -c true; $x -rf $y")
    assert isinstance(decision, Ask) and decision.firm and "$y" in decision.reason


def test_line_that_cannot_be_parsed_asks_and_is_not_taken_for_a_danger() -> None:
    assert _guard_line("echo $(") == []
    access, call = dry_run_call("bash", "echo $(", "/w/project")
    assert isinstance(Policies(Guards(_HERE), ByMode("default")).decide(access, call), Ask)


def test_every_form_of_the_working_folder_is_kept(tmp_path: Path) -> None:
    real, link, root, other = (tmp_path / name for name in ("real", "link", "root", "other"))
    for folder in (real, root, other, real / "deep"):
        folder.mkdir()
    link.symlink_to(real)
    guards = Guards(PathContext(str(link), "/home/ann", (str(root),)))
    for path in (link, real, root, tmp_path, f"{real}/*"):
        decision = guards.judge(DeletePath(str(path)), _CALL)
        assert isinstance(decision, Ask) and decision.firm, path
    assert guards.judge(DeletePath(str(other)), _CALL) is None
    # the folder that the line starts in, which need not be the session's
    assert [type(decision) for decision in _guard_line(f"rm -rf {other}", str(other), guards)] == [Ask]
    assert _guard_line(f"rm -rf {other}", str(real), guards) == []
    assert [type(decision) for decision in _guard_line(f"rm -rf {root}", str(other), guards)] == [Ask]


def test_linked_home_is_vital_under_both_names(tmp_path: Path) -> None:
    (tmp_path / "homes/ann").mkdir(parents=True)
    (tmp_path / "ann").symlink_to(tmp_path / "homes/ann")
    guards = Guards(PathContext("/w/project", str(tmp_path / "ann"), ("/w/project",)))
    for home in (tmp_path / "ann", tmp_path / "homes/ann"):
        assert isinstance(guards.judge(DeletePath(str(home)), _CALL), Deny)
        assert isinstance(guards.judge(DeletePath(f"{home}/*"), _CALL), Deny)


def test_writing_a_vital_folder_is_denied_only_to_programs_that_change_modes() -> None:
    assert Guards(_HERE).judge(WritePath("/etc"), _CALL) is None
    assert not any(isinstance(decision, Deny) for decision in _guard_line("tar -C /etc -xf a.tar"))


def test_our_own_folder_is_protected_inside_a_workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CALLWRIGHT_HOME", str(tmp_path / "own"))
    guards = Guards(PathContext(str(tmp_path), "/home/ann", (str(tmp_path),)))
    assert isinstance(guards.judge(WritePath(str(tmp_path / "own/trust.json")), _CALL), Ask)
    assert guards.judge(WritePath(str(tmp_path / "other/trust.json")), _CALL) is None


def test_folder_on_the_search_path_asks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "work")
    monkeypatch.setenv("PATH", os.pathsep.join([str(tmp_path / "link/.venv/bin"), str(tmp_path), "/usr/bin", "", "."]))
    monkeypatch.setattr(sys, "prefix", str(tmp_path / "work/env"))
    guards = Guards(PathContext.of(tmp_path / "work", tmp_path))
    for place in ("work/.venv/bin/ls", "link/.venv/bin/ls", "work/.venv/bin", "work/env/lib/site.py"):
        decision = guards.judge(WritePath(str(tmp_path / place)), _CALL)
        assert isinstance(decision, Ask) and "programs are started" in decision.reason, place
    for place in ("work/.venv/binary", "work/.venv/lib/x.py", "work/ls", "work/environment"):
        assert guards.judge(WritePath(str(tmp_path / place)), _CALL) is None, place


@pytest.mark.parametrize("uri", ["file:///etc/passwd", "FILE:///x", "%66ile:///x", "file:x", "file:///%ff"])
@pytest.mark.parametrize("kind", [ReadResource, WriteResource, DeleteResource])
def test_file_named_as_a_resource_asks_firmly(kind: type[ReadResource], uri: str) -> None:
    decision = Guards(_HERE).judge(kind(uri), _CALL)
    assert isinstance(decision, Ask) and decision.firm
    assert Guards(_HERE).judge(kind("db://shop/file:/x"), _CALL) is None


def test_copied_folder_with_settings_asks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "plain/src").mkdir(parents=True)
    (tmp_path / "evil/.git").mkdir(parents=True)
    (tmp_path / "evil/.git/config").write_text("x")
    guards = Guards(PathContext.of(tmp_path, tmp_path), masked=True)
    assert _guard_line("cp -r plain copy", str(tmp_path), guards) == []
    (decision,) = _guard_line("cp -r evil copy", str(tmp_path), guards)
    assert isinstance(decision, Ask) and "configures other programs" in decision.reason
    monkeypatch.setattr(trees, "_MAX_ENTRIES", 0)
    (decision,) = _guard_line("cp -r plain copy", str(tmp_path), guards)
    assert isinstance(decision, Ask) and "too large to check" in decision.reason


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
        "setfacl -R -m u:me:r /usr",
        "chattr -R +i /etc",
        "chcon -R -t user_t /home",
        "chcon --recursive system_u:object_r:user_t:s0 /etc",
    ],
)
def test_changing_modes_of_a_vital_folder_is_denied(line: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", _HERE.home)
    assert isinstance(_judge_line(line), Deny)


@pytest.mark.parametrize(
    "line",
    [
        "chmod 755 /etc",
        "chmod -v 755 /etc",
        "chmod -R 755 /w/project/src",
        "chmod -R 755 /etc/mine",
        "ls -R /etc",
        "touch -R /etc",
        "${y:-ls} -R /",
        "a=(rm ls); ${a[1]} /",
        "for x in ls *; do $x /; done",
        'rm -rf "${y:-build}"',
        "echo build | xargs rm -rf",
    ],
)
def test_changing_modes_elsewhere_is_not_denied(line: str) -> None:
    assert not isinstance(_judge_line(line), Deny)


@pytest.mark.parametrize(
    "line",
    [
        ":(){ :|:& };:",
        "echo x > /dev/sda",
        "echo x > /dev/block/8:0",
        "dd if=a of=/dev/disk/by-id/b",
        "mkfs.ext4 /dev/sda1",
        'rm -rf "$X/"',
    ],
)
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
    for line in (
        "env",
        "printenv",
        "export -p",
        "declare -x",
        "jq -n '$ENV'",
        "jq -n 'path(.[env:1])'",
        "env | grep PATH",
    ):
        decision = _judge_line(line)
        assert isinstance(decision, Ask), line
        assert decision.firm
        assert "SHOP_API_TOKEN" in decision.reason
    assert _guard_line("ls") == _guard_line("echo env") == []
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
        assert allowed or (isinstance(decision, Ask) and decision.firm), line
        masked = Policies(Guards(here, masked=True), ByMode("default")).decide(access, call)
        assert isinstance(masked, Allow), line


def test_folder_too_large_to_check_asks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trees, "_MAX_ENTRIES", 2)
    for name in "abc":
        (tmp_path / name).write_text("x")
    assert trees.find_in_tree(Tree(str(tmp_path)), lambda path: False) is None
    here = PathContext.of(tmp_path, tmp_path)
    (decision,) = _guard_line("grep -r x .", str(tmp_path), Guards(here))
    assert isinstance(decision, Ask) and "too large to check" in decision.reason
    assert trees.find_in_tree(Tree("$X"), lambda path: False) is None
    assert trees.find_in_tree(Tree(str(tmp_path / "a")), lambda path: True) == str(tmp_path / "a")


def test_folders_that_a_pattern_names_are_known_only_if_all_of_them_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def find(pattern: str, *, split: bool = False) -> str | None:
        return trees.find_in_tree(Tree(f"{tmp_path}/{pattern}", split=split), lambda path: path.endswith("key"))

    for name in ("a1/x", "a2/x", "b[1]/x", "c1/key", "c[1]/x", "many1/x", "many2/x", "many3/x"):
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).touch()
    assert find("a*") == ""
    assert find("c*") == f"{tmp_path}/c1/key"
    monkeypatch.setattr(trees, "_MAX_FOLDERS", 2)
    assert [find("many*"), find("b*"), find("$X"), find("a*", split=True)] == [None] * 4
    monkeypatch.setattr(trees, "_MAX_ENTRIES", 0)
    assert find("a*") is None


def test_links_and_folders_of_tools_count_as_the_command_takes_them(tmp_path: Path) -> None:
    for name in ("work/sub/x", "work/node_modules/sub/y", "work/node_modules/z", "one/key", "two/key"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    root = tmp_path.resolve() / "work"
    (root / "file").symlink_to("../one/key")
    (root / "folder").symlink_to("../two")
    (root / "loop").symlink_to(".")
    tree = Tree(str(root))

    def find(tree: Tree, wanted: str, *, folders: bool = False, every: bool = False) -> str:
        found = trees.find_in_tree(
            tree, lambda path: path == str(tmp_path.resolve() / wanted), folders=folders, every=every
        )
        return str(found).removeprefix(f"{root}/")

    follows, enters = tree._replace(follows=True), tree._replace(follows=True, enters=True)
    assert [find(each, "one/key") for each in (tree, follows, enters)] == ["", "file", "file"]
    assert [find(each, "two/key") for each in (tree, follows, enters)] == ["", "", "folder/key"]
    assert find(tree, "work/sub", folders=True) == "sub"
    assert find(tree, "work/sub") == find(tree, "work/node_modules/sub", folders=True) == ""
    assert find(tree, "work/node_modules/sub", folders=True, every=True) == "node_modules/sub"
    assert [find(tree, "work/node_modules/z", every=every) for every in (False, True)] == ["", "node_modules/z"]


@pytest.mark.parametrize(("name", "found"), [("x /y", True), ("x ../y", True), ("x .env", True), ("x y", False)])
def test_names_that_xargs_would_split_name_other_files(tmp_path: Path, name: str, found: bool) -> None:
    file = tmp_path / "work" / name
    file.parent.mkdir(parents=True)
    file.touch()
    tree = Tree(str(tmp_path / "work"), split=True)
    assert bool(trees.find_in_tree(tree, lambda path: False)) is found
    assert trees.find_in_tree(tree._replace(split=False), lambda path: False) == ""


@pytest.mark.parametrize("mode", ["default", "auto", "plan", "dontAsk"])
@pytest.mark.parametrize(
    "line",
    [
        "git show HEAD:.env",
        "git show :0:.env",
        "git log -L1,2:.env",
        "git log -L :main:.env",
        "git log -p -- .env",
        "git cat-file -p HEAD~2:./.env",
        "git grep SECRET HEAD -- .env",
    ],
)
def test_committed_secret_that_is_named_asks(line: str, mode: str) -> None:
    decision = Policies(Guards(_HERE), ByMode(mode)).decide(RunCommand(line, "/w/project"), _CALL)
    assert not isinstance(decision, Allow)


@pytest.mark.parametrize(
    ("line", "runs"),
    [
        ("cat /proc/self/cwd/link", False),
        ("cat /proc//self/./cwd/li*", False),
        ("cat /proc/*/cwd/link", False),
        ("cat /dev/fd/../cwd/link", False),
        ("cd sub && cat /proc/thread-self/cwd/up/link", False),
        ("cat /proc/self/cwd/a.txt", True),
        ("rg -L . su*", False),
        ("rg -L . sub/*", False),
        ("grep -rn x sub/*", False),
        ("grep -rn x plain/*", True),
        ("rg -L x plain/*", True),
    ],
)
def test_secrets_behind_the_working_folder_of_a_process_and_patterns(line: str, runs: bool, tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "plain" / "deep").mkdir(parents=True)
    for name in (".env", "a.txt", "plain/deep/b.txt"):
        (tmp_path / name).write_text("x")
    (tmp_path / "link").symlink_to(".env")
    (tmp_path / "sub" / "up").symlink_to("..")
    assert isinstance(judge_command(line, cwd=tmp_path, workspace=tmp_path), Allow) is runs


@pytest.mark.parametrize(
    "folder",
    "sub/.* sub/.? sub/..* sub/.*. sub/.*.* sub/.*/x sub/?? sub/[!x]b sub/[^x]b sub/** su** * sub/o*/*".split(),
)
@pytest.mark.parametrize("line", ["grep -r . {}", "rg --hidden . {}", "find {} -type f -exec cat {{}} +"])
def test_folder_pattern_that_shells_match_differently_asks(folder: str, line: str, tmp_path: Path) -> None:
    (tmp_path / "sub" / "ab").mkdir(parents=True)
    (tmp_path / "sub" / "opt").mkdir()
    (tmp_path / "-R").write_text("x")
    (tmp_path / "sub" / "opt" / "-R").write_text("x")
    judged = judge_command(line.format(folder), cwd=tmp_path, workspace=tmp_path)
    assert isinstance(judged, Ask)


def test_folder_pattern_that_shells_match_alike_runs(tmp_path: Path) -> None:
    (tmp_path / "sub" / ".github").mkdir(parents=True)
    (tmp_path / "sub" / "ab-1").mkdir()
    for folder in ("s*/a*1", "sub/*-1", "sub/.g*", "./sub/*b*"):
        judged = judge_command(f"grep -r . {folder}", cwd=tmp_path, workspace=tmp_path)
        assert isinstance(judged, Allow), folder


@pytest.mark.parametrize(
    "pattern",
    ".e[^x]v .[[:alpha:]]nv .en[A-Z] .[!x]nv .*/.en* sub/.*/.en* s*/.?/l*k .*/link lin['!'k] lin[[=k=]]".split(),
)
def test_every_shell_s_matches_of_a_secret_ask(pattern: str, tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    for name in (".env", "a1.txt", "sub/b.txt"):
        (tmp_path / name).write_text("x")
    (tmp_path / "link").symlink_to(".env")
    for line in (f"cat {pattern}", f"sh -c 'head -3 {pattern}'", f"grep {pattern} a1.txt"):
        judged = judge_command(line, cwd=tmp_path, workspace=tmp_path)
        assert isinstance(judged, Ask) and ".env" in judged.reason, line
    for line in ("cat a[0-9].txt", "cat [!x]1.txt", "cat s*/[a-c].txt", "jq .[] a1.txt", "grep a.* a1.txt"):
        assert isinstance(judge_command(line, cwd=tmp_path, workspace=tmp_path), Allow), line


def test_link_whose_name_counts_as_two_letters_asks(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("x")
    (tmp_path / "é").symlink_to(".env")
    (tmp_path / "link").symlink_to(".env")
    assert isinstance(judge_command("LC_ALL=C; cat ./??", cwd=tmp_path, workspace=tmp_path), Ask)
    assert isinstance(judge_command("cat ?x", cwd=tmp_path, workspace=tmp_path), Allow)


def test_folder_named_like_a_set_hides_no_secret(tmp_path: Path) -> None:
    folder = tmp_path / "[ab]"
    folder.mkdir()
    (folder / ".env").write_text("x")
    judged = judge_command("cat .e*", cwd=folder, workspace=folder)
    assert isinstance(judged, Ask) and ".env" in judged.reason


@pytest.mark.parametrize(
    ("line", "allowed"),
    [
        ("for w in foo bar; do grep -c $w a.txt; done", True),
        ("for k in 1 20; do head -n$k a.txt; done", True),
        ("for k in {1..3}; do head -n$k a.txt; done", True),
        ("for w in 'foo' \"bar\"; do grep -c $w a.txt; done", True),
        ("for w in 'foo' ''; do grep -c $w a.txt; done", False),
        ("for w in '-r'; do grep -c $w a.txt; done", True),
        ("for w in '*'; do grep -c $w a.txt; done", False),
        ("for k in {-1..3}; do grep -c $k a.txt; done", True),
        ("for w in foo -r; do grep -c $w a.txt; done", True),
        ("for w in 'foo .env'; do grep -c $w a.txt; done", False),
        ("for w in foo $x; do grep -c $w a.txt; done", False),
        ("for w in foo bar; do grep -c $w a.txt; w=$(cat b); done", False),
        ("for w in foo bar; do read -r w; grep -c $w a.txt; done", False),
        ("for w in foo bar; do grep -c x a.txt; done; grep -c $w a.txt", False),
        ("for w in foo bar; do for w in $(cat b); do grep -c $w a.txt; done; done", False),
    ],
)
def test_words_of_a_loop_are_files_only_if_they_are_not_plain(line: str, allowed: bool, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("x")
    assert isinstance(judge_command(line, cwd=tmp_path, workspace=tmp_path), Allow) is allowed


_SEARCHES_WITHOUT_OPTIONS = [
    'for w in foo bar; do grep -c "$w" a.txt; done',
    'for w in "foo bar" baz; do grep -rn "$w" src; done',
    'w="foo bar"; grep "$w" src',
    'grep -- "$w" src',
    'grep -c -- "$w" src',
    'grep -e "$w" src',
    'grep -A"$n" x src',
    'grep --include="$w" x src',
    'grep "def $w" src',
    'grep ^"$w" src',
    'grep "^$w" src',
    'grep -E "(a|$w)" src',
    'ls | grep "[a]$w"',
    "grep -c $? src",
    'grep "$#$w" src',
    "cat list | xargs -I% grep -e % src",
    "find src -name '*.py' | xargs -I{} grep -l foo {}",
]
_SEARCHES_WITH_UNKNOWN_WORDS = [
    'for w in -r; do grep "$w" E; done',
    """bash -c 'grep "$1" E' x -r""",
    'read w <<< -r; grep "$w" E',
    'grep "$w" src',
    'ls | grep "$w"',
    'grep -i"$w" E',
    """grep '-'"$w" E""",
    'grep "$w^" E',
    'grep "$w$?" E',
    "grep $((1 - 2)) E",
    'for w in "foo bar" "-r"; do grep "$w" E; done',
    'w=foo; read w <<< -r; grep "$w" E',
    'w=foo | grep "$w" E',
    'w=foo & grep "$w" E',
    'w=foo && ls & grep "$w" E',
    "w=-r; grep $w E",
    "cat list | xargs -I{} grep {} src",
    'zgrep "$w" E',
]


@pytest.mark.parametrize("line", [*_SEARCHES_WITHOUT_OPTIONS, *_SEARCHES_WITH_UNKNOWN_WORDS])
def test_word_that_may_be_an_option_searches_the_folder(line: str, tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    assert isinstance(judge_command(line, cwd=tmp_path, workspace=tmp_path), Allow)
    (tmp_path / ".env").write_text("x")
    judged = judge_command(line, cwd=tmp_path, workspace=tmp_path)
    assert isinstance(judged, Allow) is (line in _SEARCHES_WITHOUT_OPTIONS)
    assert line in _SEARCHES_WITHOUT_OPTIONS or ".env" in judged.reason


@pytest.mark.parametrize("line", ["grep . *", "wc -l *", "grep . -[R]", "for f in *; do grep . $f; done", "head ?x*"])
def test_file_that_becomes_an_option_asks(line: str, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("x")
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "-R").write_text("x")
    assert isinstance(judge_command(line, cwd=tmp_path, workspace=tmp_path), Allow)
    judged = judge_command(line, cwd=tmp_path / "sub", workspace=tmp_path)
    assert isinstance(judged, Ask) and "-R for an option" in judged.reason
    assert isinstance(judge_command("grep . ./* sub/*", cwd=tmp_path, workspace=tmp_path), Allow)
    (tmp_path / "sub").chmod(0)  # its names cannot be listed, unless by root
    judged = judge_command(line, cwd=tmp_path / "sub", workspace=tmp_path)
    (tmp_path / "sub").chmod(0o700)
    assert isinstance(judged, Ask if os.geteuid() == 0 else Allow)


def test_deny_rule_holds_behind_the_working_folder_of_a_process(tmp_path: Path) -> None:
    judged = judge_command("cat /proc/self/cwd/x/y", cwd=tmp_path, workspace=tmp_path, deny=["Read(x/**)"])
    assert isinstance(judged, Deny)
