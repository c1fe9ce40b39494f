"""The wall around commands, tried from the inside."""

import os
import pwd
import select
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from tests.waiting import LONG_SECONDS

from callwright.core.access import Confinement, is_below
from callwright.core.errors import UsageError
from callwright.system.sandbox import bubblewrap, landlock, seatbelt, wall as walls
from callwright.system.sandbox.sandbox import Sandbox, SandboxKind, find_sandbox
from callwright.system.sandbox.scan import FolderScan, has_more_folders
from callwright.system.sandbox.wall import NamedPaths, Wall

READ_ONLY, WORKSPACE, NETWORK, APPROVED = (
    Confinement.READ_ONLY,
    Confinement.WORKSPACE,
    Confinement.NETWORK,
    Confinement.APPROVED,
)
Attempt = Callable[..., subprocess.CompletedProcess[str]]


def runnable() -> list[SandboxKind]:
    kinds: list[SandboxKind] = []
    if not bubblewrap.find_problem():
        kinds.append("bubblewrap")
    if landlock.version() >= 3 and landlock.has_seccomp():
        kinds.append("landlock")
    return kinds


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "home"
    (folder / ".ssh").mkdir(parents=True)
    (folder / ".ssh" / "id_rsa").write_text("PRIVATE KEY\n")
    (folder / ".ssh" / "known_hosts").write_text("a host\n")
    (folder / ".aws").mkdir()
    (folder / ".aws" / "credentials").write_text("aws_secret = hunter2\n")
    (folder / ".bash_history").write_text("export TOKEN=hunter2\n")
    monkeypatch.setenv("HOME", str(folder))
    return folder


@pytest.fixture
def workspace(tmp_path: Path, home: Path) -> Path:
    folder = tmp_path / "workspace"
    (folder / ".git" / "hooks").mkdir(parents=True)
    (folder / ".git" / "config").write_text("[core]\n")
    (folder / ".env").write_text("SECRET=hunter2\n")
    (folder / "AGENTS.md").write_text("Be careful.\n")
    (folder / "sub" / ".vscode").mkdir(parents=True)
    (folder / "sub" / "server.key").write_text("PRIVATE KEY\n")
    (tmp_path / "file").write_text("as it was")
    return folder


@pytest.fixture(params=["bubblewrap", "landlock"])
def sandbox(request: pytest.FixtureRequest, workspace: Path) -> Sandbox:
    if request.param not in runnable():
        pytest.skip(f"{request.param} does not work on this machine")
    return Sandbox(request.param, (str(workspace),))


@pytest.fixture
def complete(workspace: Path) -> Sandbox:
    if "bubblewrap" not in runnable():
        pytest.skip("bubblewrap does not work on this machine")
    return find_sandbox("require", roots=[workspace])


@pytest.fixture
def without_bubblewrap(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path / "nothing here"))


@pytest.fixture
def attempt(tmp_path: Path, workspace: Path) -> Attempt:
    def run(
        sandbox: Sandbox, line: str, confinement: Confinement = READ_ONLY, named: NamedPaths | None = None
    ) -> subprocess.CompletedProcess[str]:
        scratch = tmp_path / "scratch"
        with sandbox.confine(
            ("bash", "-c", line), str(workspace), confinement, scratch=scratch, named=named or NamedPaths()
        ) as confined:
            return subprocess.run(
                confined.argv, cwd=workspace, capture_output=True, text=True, timeout=LONG_SECONDS, check=False
            )

    return run


def tree(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


CHANGES = [
    "echo changed > file",
    "echo changed > ../file",
    "> ../file",
    "rm ../file",
    "mv ../file moved",
    "ln -s x ../new",
    "mkdir ../new",
    "truncate -s0 ../file",
    "echo changed > /proc/self/root$PWD/../file",
    "ln -s .. /tmp/up; echo changed > /tmp/up/file",
]


@pytest.mark.parametrize("line", CHANGES)
def test_read_only_changes_nothing(sandbox: Sandbox, attempt: Attempt, workspace: Path, line: str):
    before = tree(workspace.parent)
    attempt(sandbox, line)
    after = {path: text for path, text in tree(workspace.parent).items() if "/scratch/" not in path}
    assert after == before


@pytest.mark.parametrize("line", CHANGES[1:])
def test_workspace_changes_nothing_outside(sandbox: Sandbox, attempt: Attempt, tmp_path: Path, line: str):
    attempt(sandbox, line, WORKSPACE)
    assert (tmp_path / "file").read_text() == "as it was"
    assert {path.name for path in tmp_path.iterdir()} <= {"file", "workspace", "home", "scratch"}


def test_workspace_can_be_written_and_the_rest_read(sandbox: Sandbox, attempt: Attempt, tmp_path: Path):
    line = "mkdir d && echo new > d/a && mv d/a b && ln b c && cat b ../file > both; cat both; : >/dev/null"
    done = attempt(sandbox, line, WORKSPACE, NamedPaths(reads=(str(tmp_path / "file"),)))
    assert (done.stdout, done.stderr, done.returncode) == ("new\nas it was", "", 0)


def test_kernel_settings_are_read_only(sandbox: Sandbox, attempt: Attempt):
    # the same value again, so that a sandbox that fails this test does no harm
    line = 'value=$(cat /proc/sys/kernel/core_pattern); echo "$value" > /proc/sys/kernel/core_pattern'
    assert attempt(sandbox, line, APPROVED).returncode != 0


@pytest.mark.parametrize("kind", ["SOCK_STREAM", "SOCK_DGRAM"])
def test_network_is_off_unless_allowed(sandbox: Sandbox, attempt: Attempt, kind: str):
    with socket.socket(type=getattr(socket, kind)) as server:
        server.bind(("127.0.0.1", 0))
        if kind == "SOCK_STREAM":
            server.listen()
        address = ("127.0.0.1", server.getsockname()[1])
        line = f'{sys.executable} -c "import socket; s = socket.socket(type=socket.{kind}); s.connect({address});'
        line += " s.send(b'out')\""
        for confinement, reached in ((READ_ONLY, False), (WORKSPACE, False), (NETWORK, True), (APPROVED, True)):
            attempt(sandbox, line, confinement)
            assert bool(select.select([server], [], [], 0.05)[0]) is reached
            if reached:
                server.recv(100) if kind == "SOCK_DGRAM" else server.accept()[0].close()


def test_other_processes_cannot_be_signalled(sandbox: Sandbox, attempt: Attempt):
    if sandbox.kind == "landlock" and landlock.version() < 6:
        pytest.skip("this kernel's Landlock does not cover signals")
    assert attempt(sandbox, f"kill -0 {os.getpid()}", APPROVED).returncode != 0


def test_exit_code_is_kept(sandbox: Sandbox, attempt: Attempt):
    assert attempt(sandbox, "exit 7").returncode == 7


@pytest.mark.parametrize(
    "line",
    [
        "cat .env",
        "grep -r . .",
        "cat sub/*.key",
        "cat ~/.ssh/id_rsa",
        "cat ~/.aws/credentials",
        "cat ~/.bash_history",
        "cp .env /tmp/x; cat /tmp/x",
        "tar cf - . ~/.ssh 2>/dev/null | strings",
        "cat /proc/self/root$PWD/.env",
    ],
)
@pytest.mark.parametrize("confinement", [READ_ONLY, WORKSPACE, APPROVED])
def test_secrets_are_masked(complete: Sandbox, attempt: Attempt, line: str, confinement: Confinement):
    done = attempt(complete, line, confinement)
    assert "hunter2" not in done.stdout + done.stderr
    assert "PRIVATE KEY" not in done.stdout + done.stderr


def test_files_beside_secrets_stay_readable(complete: Sandbox, attempt: Attempt):
    assert attempt(complete, "cat ~/.ssh/known_hosts").stdout == "a host\n"


def test_named_secret_is_shown_only_if_approved(complete: Sandbox, attempt: Attempt, workspace: Path):
    named = NamedPaths(reads=(str(workspace / ".env"),))
    assert "hunter2" not in attempt(complete, "cat .env", WORKSPACE | NETWORK, named).stdout
    done = attempt(complete, "cat .env sub/server.key", APPROVED, named)
    assert "hunter2" in done.stdout and "PRIVATE KEY" not in done.stdout


def test_masked_file_counts_as_unchanged_for_git(complete: Sandbox, attempt: Attempt, workspace: Path):
    line = "rm -rf .git; git init -q; git add -A; git -c user.name=a -c user.email=a@b commit -qm x"
    subprocess.run(["bash", "-c", line], cwd=workspace, check=True, capture_output=True)
    for name in (".env", "sub/server.key"):  # older than the index, which git trusts then
        os.utime(workspace / name, (1_000_000_000, 1_000_000_000))
    subprocess.run(["git", "status", "--short"], cwd=workspace, check=True, capture_output=True)
    assert attempt(complete, "git -c core.checkStat=minimal status --short").stdout == ""


def test_own_folder_is_masked_wherever_it_lies(
    attempt: Attempt, workspace: Path, monkeypatch: pytest.MonkeyPatch, complete: Sandbox
):
    ours = workspace / "agent-home"
    (ours / "mcp-tokens").mkdir(parents=True)
    (ours / "mcp-tokens" / "x.json").write_text("hunter2")
    (ours / "skills").mkdir()
    (ours / "skills" / "SKILL.md").write_text("a skill")
    monkeypatch.setenv("CALLWRIGHT_HOME", str(ours))
    for confinement in (READ_ONLY, WORKSPACE):
        line = "cat agent-home/mcp-tokens/x.json; cat agent-home/skills/SKILL.md; touch agent-home/trust.json"
        assert attempt(complete, line, confinement).stdout == "a skill"
    assert not (ours / "trust.json").exists()


@pytest.mark.parametrize("root", ["", "skills/mine", "plans/a/b"])
def test_own_folder_is_masked_around_a_workspace_in_it(
    complete: Sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, root: str
):
    ours = tmp_path / "agent-home"
    for name in ("mcp-tokens/x.json", "plans/a/token", "plans/token"):
        (ours / name).parent.mkdir(parents=True, exist_ok=True)
        (ours / name).write_text("hunter2")
    for name in ("skills/other/SKILL.md", "skills/mine/SKILL.md", "plans/a/b/notes"):
        (ours / name).parent.mkdir(parents=True, exist_ok=True)
        (ours / name).write_text("shown")
    monkeypatch.setenv("CALLWRIGHT_HOME", str(ours))
    sandbox, named = find_sandbox("require", roots=[ours / root]), NamedPaths(reads=(str(ours),))
    argv = ("bash", "-c", f"grep -rhs . {ours}; touch made; touch {ours}/mcp-tokens/y {ours}/plans/y")
    for confinement in (READ_ONLY, WORKSPACE):
        scratch = tmp_path / "scratch"
        with sandbox.confine(argv, str(ours / root), confinement, scratch=scratch, named=named) as walled:
            done = subprocess.run(walled.argv, capture_output=True, text=True, check=False)
        assert "hunter2" not in done.stdout
        assert done.stdout.count("shown") == (2 if root != "plans/a/b" else 3)
        assert (ours / root / "made").exists() is (confinement is WORKSPACE)
    assert not (ours / "mcp-tokens" / "y").exists() and not (ours / "plans" / "y").exists()


def test_paths_of_deny_rules_are_masked(workspace: Path, attempt: Attempt, complete: Sandbox):
    (workspace / "private").mkdir()
    (workspace / "private" / "plan.txt").write_text("hunter2")
    hidden = find_sandbox("require", roots=[workspace], hidden=lambda path: "/private/" in path)
    assert "hunter2" in attempt(complete, "grep -r . private").stdout
    assert "hunter2" not in attempt(hidden, "grep -r . private").stdout


PROTECTED = [
    "echo evil > .git/hooks/pre-commit",
    "echo evil > .git/config",
    "echo evil > AGENTS.md; rm -f AGENTS.md; mv AGENTS.md x",
    "echo evil > .env",
    "mv .git away && mkdir -p .git/hooks && echo evil > .git/hooks/pre-commit",
    "rm -rf .git && mkdir -p .git/hooks && echo evil > .git/hooks/pre-commit",
    "mv .git/hooks .git/other && mkdir .git/hooks && echo evil > .git/hooks/pre-commit",
    "mkdir -p new && mount --bind new .git/hooks && echo evil > .git/hooks/pre-commit",
    "unshare -rm sh -c 'umount .git/hooks; echo evil > .git/hooks/pre-commit'",
    "unshare -rm sh -c 'umount .git/hooks .git; echo evil > .git/hooks/pre-commit'",
    "mv sub old && mkdir -p sub/.vscode && echo evil > sub/.vscode/tasks.json",
    "ln -s .git g && echo evil > g/hooks/pre-commit; rm -f g",
    "git config core.hooksPath evil",
    "echo evil > .mcp.json",
    "echo evil > sub/CLAUDE.md",
    "mkdir -p .callwright && echo evil > .callwright/settings.json",
    "echo /evil > .git/commondir",
    "git init -q other && echo '[core]\n fsmonitor = evil' > other/.git/config",
    "git init -q other && echo evil > other/.git/hooks/post-checkout",
]
LINKED = [
    "git init -q other; mv other/.git/hooks other/hidden; ln -s ../hidden other/.git/hooks",
    "git init -q other; mv other/.git/config other/hidden; ln -s ../hidden other/.git/config",
    "git init -q other; mv other/.git hidden; ln -s ../hidden other/.git",
]


@pytest.mark.parametrize("line", PROTECTED)
def test_protected_paths_cannot_be_changed(complete: Sandbox, attempt: Attempt, workspace: Path, line: str):
    before = tree(workspace)
    attempt(complete, line, WORKSPACE)
    after = {path: text for path, text in tree(workspace).items() if b"evil" in text}
    assert after == {}
    assert {path: text for path, text in tree(workspace).items() if path in before} == before


@pytest.mark.parametrize("line", LINKED)
def test_new_protected_link_is_moved_away(complete: Sandbox, attempt: Attempt, workspace: Path, line: str):
    attempt(complete, line, WORKSPACE)
    made = [workspace / "other" / ".git" / name for name in ("", "hooks", "config")]
    assert (workspace / "other").is_dir() and not any(path.is_symlink() for path in made)


@pytest.mark.parametrize(("confinement", "stays"), [(WORKSPACE, False), (APPROVED, True)])
def test_new_protected_path_is_moved_away_unless_approved(
    complete: Sandbox, workspace: Path, tmp_path: Path, confinement: Confinement, stays: bool
):
    line = "mkdir -p new/.git/hooks; echo evil > new/.git/hooks/pre-commit"
    made = workspace / "new" / ".git" / "hooks"
    named = NamedPaths(writes=(str(made),))
    with (
        suppress(KeyboardInterrupt),  # a command that is cancelled leaves nothing either
        complete.confine(
            ("bash", "-c", line), str(workspace), confinement, scratch=tmp_path / "scratch", named=named
        ) as confined,
    ):
        subprocess.run(confined.argv, cwd=workspace, check=True, timeout=LONG_SECONDS)
        assert made.exists()
        raise KeyboardInterrupt
    assert made.exists() is stays
    assert confined.removed == ([] if stays else [str(made)])


@pytest.mark.parametrize("confinement", [READ_ONLY, WORKSPACE, APPROVED, Confinement.UNCONFINED])
def test_writable_roots_are_those_that_a_command_can_change(tmp_path: Path, confinement: Confinement):
    walled, bare = Sandbox("bubblewrap", (str(tmp_path),)), Sandbox("none", (str(tmp_path),))
    assert walled.writable_roots(confinement) == (() if confinement is READ_ONLY else (str(tmp_path),))
    assert bare.writable_roots(confinement) == (str(tmp_path),)


def test_sandbox_describes_itself(tmp_path: Path):
    assert Sandbox("none", mode="off").describe() == "off: commands are not confined"
    assert Sandbox("none", gaps=("no bwrap",)).describe() == "commands are not confined: no bwrap"
    assert Sandbox("bubblewrap").describe().startswith("bubblewrap: commands that were not approved cannot write")
    assert "not covered" not in Sandbox("bubblewrap").describe()
    assert Sandbox("landlock", gaps=("secrets", "modes")).describe().endswith("; not covered: secrets; modes")


def test_only_a_complete_sandbox_depends_on_the_search_for_secrets(tmp_path: Path):
    (tmp_path / "a" / "b").mkdir(parents=True)
    roots = (str(tmp_path),)
    assert "more than 1 folders" in Sandbox("bubblewrap", roots, max_folders=1).find_unsearched()
    assert Sandbox("bubblewrap", roots).find_unsearched() == ""
    assert Sandbox("landlock", roots, gaps=("x",), max_folders=1).find_unsearched() == ""
    assert Sandbox("none", roots, max_folders=1).find_unsearched() == ""


def test_seatbelt_runs_the_command_behind_its_profile(tmp_path: Path):
    sandbox = Sandbox("seatbelt", (str(tmp_path),))
    with sandbox.confine(("true",), str(tmp_path), READ_ONLY, scratch=tmp_path / "scratch") as confined:
        assert confined.argv[:2] == ("/usr/bin/sandbox-exec", "-p") and confined.argv[-1] == "true"
        assert "(deny file-write*)" in confined.argv[2]


def test_new_protected_path_is_found_although_the_time_of_its_folder_was_set_back(
    complete: Sandbox, attempt: Attempt, workspace: Path, monkeypatch: pytest.MonkeyPatch
):
    later = time.time_ns() + 10**12
    monkeypatch.setattr("callwright.system.sandbox.scan.time.time_ns", lambda: later)
    assert attempt(complete, "true", WORKSPACE).returncode == 0
    line = "touch -r sub /tmp/old; mkdir sub/.idea; echo evil > sub/.idea/x; touch -r /tmp/old sub; ls sub/.idea"
    assert attempt(complete, line, WORKSPACE).stdout == "x\n"
    assert not (workspace / "sub" / ".idea").exists()


@pytest.mark.parametrize(
    ("line", "restored"),
    [
        ("rm CLAUDE.md; echo evil > CLAUDE.md", "CLAUDE.md"),
        ("ln -sf /tmp/evil CLAUDE.md", "CLAUDE.md"),
        ("rm CLAUDE.md", "CLAUDE.md"),
        ("rm -r deep; mkdir deep; echo evil > deep/CLAUDE.md", "deep/CLAUDE.md"),
        ("rm .husky; mkdir .husky; echo evil > .husky/pre-commit", ".husky"),
        ("echo evil > scripts/pre-commit; mv scripts old; mkdir scripts; echo evil > scripts/pre-commit", ".husky"),
        ("rm -r deep", ""),
        ("rm -r deep; ln -s ../outside deep", ""),
    ],
)
def test_protected_links_and_their_targets_stay(
    complete: Sandbox, attempt: Attempt, workspace: Path, tmp_path: Path, line: str, restored: str
):
    for folder in (workspace / "scripts", workspace / "deep", tmp_path / "outside"):
        folder.mkdir()
    (workspace / "scripts" / "pre-commit").write_text("as it was")
    (tmp_path / "outside" / "CLAUDE.md").write_text("of another project")
    links = {"CLAUDE.md": "AGENTS.md", "deep/CLAUDE.md": "../AGENTS.md", ".husky": "scripts"}
    links |= {".cursor": ".", "sub/GEMINI.md": "nowhere"}  # the workspace itself, and nothing
    for name, target in links.items():
        (workspace / name).symlink_to(target)
    attempt(complete, f"touch made; {line}", WORKSPACE)
    assert (workspace / "made").exists()
    assert (workspace / "AGENTS.md").read_text() == "Be careful.\n"
    assert (workspace / "scripts" / "pre-commit").read_text() == "as it was"
    assert (tmp_path / "outside" / "CLAUDE.md").read_text() == "of another project"
    assert {path.name for path in (tmp_path / "outside").iterdir()} == {"CLAUDE.md"}
    kept = {
        name
        for name, target in links.items()
        if (path := workspace / name).is_symlink() and str(path.readlink()) == target
    }
    assert kept == links.keys() - (set() if restored else {"deep/CLAUDE.md"})


def test_new_repository_is_left_alone(complete: Sandbox, attempt: Attempt, workspace: Path):
    attempt(complete, "git init -q other; echo x > other/made.key", WORKSPACE)
    assert (workspace / "other" / ".git" / "config").is_file()
    assert (workspace / "other" / "made.key").is_file()  # a secret, but it configures nothing


def test_approved_line_may_write_what_it_names(complete: Sandbox, attempt: Attempt, workspace: Path, tmp_path: Path):
    outside = tmp_path / "outside"
    outside.mkdir()
    named = NamedPaths(writes=(str(outside / "new"), str(workspace / "AGENTS.md")))
    attempt(complete, f"echo x > {outside}/new; echo x > AGENTS.md; echo x > .git/config", APPROVED, named)
    assert (outside / "new").read_text() == "x\n" == (workspace / "AGENTS.md").read_text()
    assert (workspace / ".git" / "config").read_text() == "[core]\n"


def test_temporary_folders_are_private_and_kept(complete: Sandbox, attempt: Attempt, tmp_path: Path):
    name = f"probe-{os.getpid()}"
    attempt(complete, f"echo kept > /tmp/{name}; echo x > /var/tmp/{name}; echo x > /dev/shm/{name}")
    assert attempt(complete, f"cat /tmp/{name}").stdout == "kept\n"
    assert not any(Path(folder, name).exists() for folder in ("/tmp", "/var/tmp", "/dev/shm"))


@pytest.mark.parametrize("name", ["daemon", "link/daemon", "{workspace}/daemon", "{workspace}/link/daemon", "{home}/d"])
@pytest.mark.parametrize("confinement", [READ_ONLY, APPROVED])
def test_daemons_behind_local_sockets_are_out_of_reach(
    complete: Sandbox,
    attempt: Attempt,
    workspace: Path,
    home: Path,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    confinement: Confinement,
):
    (workspace / "link").symlink_to("sub")
    monkeypatch.chdir(workspace)
    named = name.format(workspace=workspace, home=home)
    real = os.path.realpath(named)
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(named)
        server.listen()
        program = f"import socket; socket.socket(socket.AF_UNIX).connect('{real}')"
        subprocess.run([sys.executable, "-c", program], check=True)
        assert attempt(complete, f'{sys.executable} -c "{program}"', confinement).returncode != 0


def test_sockets_outside_of_temporary_folders_are_out_of_reach(complete: Sandbox, attempt: Attempt):
    folder = Path(pwd.getpwuid(os.getuid()).pw_dir)
    if not os.access(folder, os.W_OK) or is_below(str(folder), ("/tmp", "/var/tmp", "/run")):
        pytest.skip(f"{folder} cannot be used for the test")
    with tempfile.TemporaryDirectory(dir=folder) as place, socket.socket(socket.AF_UNIX) as server:
        server.bind(f"{place}/daemon")
        server.listen()
        program = f"import socket; socket.socket(socket.AF_UNIX).connect('{place}/daemon')"
        assert attempt(complete, f'{sys.executable} -c "{program}"', APPROVED).returncode != 0


def test_root_in_the_sandbox_has_no_privileges(complete: Sandbox, attempt: Attempt):
    assert attempt(complete, "grep CapEff /proc/self/status", APPROVED).stdout.split()[1].strip("0") == ""


def test_off_changes_nothing(tmp_path: Path):
    sandbox = find_sandbox("off", roots=["/"])
    assert not sandbox.confines
    with sandbox.confine(("a", "b"), "/", READ_ONLY, scratch=tmp_path) as confined:
        assert confined.argv == ("a", "b")


@pytest.mark.usefixtures("without_bubblewrap")
def test_require_fails_and_names_what_to_install(workspace: Path):
    with pytest.raises(UsageError, match=r"bubblewrap is not installed.*install bubblewrap"):
        find_sandbox("require", roots=[workspace])


@pytest.mark.usefixtures("without_bubblewrap")
def test_prefer_names_what_is_not_covered(workspace: Path):
    sandbox = find_sandbox("prefer", roots=[workspace])
    assert sandbox.kind in ("landlock", "none")
    assert not sandbox.complete
    assert ("protected paths" if sandbox.kind == "landlock" else "install bubblewrap") in sandbox.describe()


@pytest.mark.parametrize("mode", ["maybe", "", None, True, "Prefer"])
def test_invalid_mode_is_refused(mode: str):
    with pytest.raises(UsageError, match="expected"):
        find_sandbox(mode, roots=["/"])  # pyright: ignore[reportArgumentType] - what is tested


def test_relative_folder_of_path_does_not_count(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    (tmp_path / "bwrap").write_text("#!/bin/sh\n")
    (tmp_path / "bwrap").chmod(0o755)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", ":.")
    assert bubblewrap.find_program() == ""


@pytest.mark.parametrize(
    "line",
    [
        "echo planted > .venv/bin/ls",
        "echo planted > .venv/bin/tool",
        "mv .venv old && mkdir -p .venv/bin && echo planted > .venv/bin/ls",
        "rm -rf .venv && mkdir -p .venv/bin && echo planted > .venv/bin/ls",
        "echo planted > outward/ls",
        "ln -sfn sub outward && echo planted > sub/ls",
        "mkdir -p missing/bin && echo planted > missing/bin/ls",
        "echo planted > env/lib/module.py",
    ],
)
def test_programs_that_start_by_their_name_cannot_be_planted(
    complete: Sandbox, attempt: Attempt, workspace: Path, monkeypatch: pytest.MonkeyPatch, line: str
):
    for folder in (".venv/bin", "env/lib", "../elsewhere"):
        (workspace / folder).mkdir(parents=True)
    (workspace / ".venv/bin/tool").write_text("as it was\n")
    (workspace / "outward").symlink_to("../elsewhere")
    entries = [str(workspace / folder) for folder in (".venv/bin", "outward", "missing/bin")]
    monkeypatch.setenv("PATH", os.pathsep.join([*entries, os.environ["PATH"]]))
    monkeypatch.setattr(sys, "prefix", str(workspace / "env"))
    attempt(complete, line, WORKSPACE)
    started = [*entries, str(workspace / "env")]
    assert [path.read_text() for folder in started for path in Path(folder).rglob("*") if path.is_file()] == [
        "as it was\n"
    ]
    attempt(complete, "echo changed > .venv/other", WORKSPACE)  # only the folder of the programs is protected
    assert (workspace / ".venv/other").exists()


@pytest.mark.parametrize(
    "place", ["workspace/.venv/bin", "link", "linked program", "extra", "workspace/outward", "link to outward"]
)
def test_bubblewrap_that_a_command_could_have_written_does_not_count(
    complete: Sandbox, workspace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str
):
    program, extra = bubblewrap.find_program(), tmp_path / "extra"
    for folder in (workspace / ".venv" / "bin", extra, tmp_path / "linked program"):
        folder.mkdir(parents=True)
        (folder / "bwrap").write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\nexit 0\n")
        (folder / "bwrap").chmod(0o755)
    (tmp_path / "linked program" / "bwrap").unlink()
    (tmp_path / "linked program" / "bwrap").symlink_to(workspace / ".venv" / "bin" / "bwrap")
    (tmp_path / "link").symlink_to(workspace / ".venv" / "bin")
    # real programs elsewhere, but a command can change the links to them
    (tmp_path / "elsewhere").mkdir()
    shutil.copy(extra / "bwrap", tmp_path / "elsewhere")
    (workspace / "outward").symlink_to(tmp_path / "elsewhere")
    (workspace / "programs").mkdir()
    (workspace / "programs" / "bwrap").symlink_to(tmp_path / "elsewhere" / "bwrap")
    (tmp_path / "link to outward").symlink_to(workspace / "programs")
    monkeypatch.setenv("PATH", f"{tmp_path / place}{os.pathsep}{os.environ['PATH']}")
    sandbox = find_sandbox("require", roots=[workspace], writable=[extra])
    for confinement in (READ_ONLY, WORKSPACE):
        with sandbox.confine(("true",), str(workspace), confinement, scratch=tmp_path / "scratch") as confined:
            assert confined.argv[0] == program
            subprocess.run(confined.argv, check=True)
    assert not (tmp_path / "ran").exists()
    assert bubblewrap.find_program(("/",)) == program  # a workspace that holds the whole system
    if Path("/bin/bwrap").exists():
        monkeypatch.setenv("PATH", "/bin")
        assert bubblewrap.find_program(("/",)) == "/bin/bwrap"


def test_link_does_not_bring_back_what_the_wall_replaces(complete: Sandbox, attempt: Attempt, workspace: Path):
    with tempfile.NamedTemporaryFile(dir="/tmp", prefix="not-shown-") as file:
        for number, target in enumerate(("/", "/proc", "/tmp", "/dev")):
            link = workspace / f"link{number}"
            link.symlink_to(target)
            line = f"ls /tmp /proc; ls -d {file.name} /proc/{os.getpid()}; [[ -e /dev/kmsg ]] && echo /dev/kmsg"
            done = attempt(complete, line, READ_ONLY, NamedPaths(reads=(str(link),)))
            shown = done.stdout.split()
            assert "meminfo" in shown and str(os.getpid()) not in shown
            assert Path(file.name).name not in shown and "/dev/kmsg" not in shown


def test_secret_from_a_pipe_is_masked(complete: Sandbox, attempt: Attempt, workspace: Path):
    pipe = workspace / "sub" / ".env"
    os.mkfifo(pipe)
    with os.fdopen(os.open(pipe, os.O_RDWR), "wb", 0) as writer:
        writer.write(b"SECRET=hunter2\n")
        for confinement in (READ_ONLY, APPROVED):
            assert "hunter2" not in attempt(complete, "timeout 5 head -1 sub/.env", confinement).stdout
        named = NamedPaths(reads=(str(pipe),))
        assert "hunter2" in attempt(complete, "timeout 5 head -1 sub/.env", APPROVED, named).stdout


def test_secret_that_is_gone_by_now_does_not_stop_the_command(complete: Sandbox, tmp_path: Path):
    gone = (str(tmp_path / "absent" / ".env"), str(tmp_path / "folder"))
    wall = Wall(str(tmp_path), tmp_path / "scratch", visible=(str(tmp_path),), masked=gone)
    argv = bubblewrap.wrap_command(("echo", "ran"), wall)
    assert subprocess.run(argv, capture_output=True, text=True, check=True).stdout == "ran\n"


def test_sockets_below_a_real_var_run_are_hidden(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    def find_sockets(_: object) -> set[str]:
        hidden = {"/run/other.sock", "/tmp/hidden/s", "/var/tmp/hidden/s", "/dev/log"}
        return {*hidden, "/var/run/docker.sock", "/srv/s", "/tmp/shown/s"}

    monkeypatch.setattr(bubblewrap, "_find_sockets", find_sockets)
    argv = bubblewrap.wrap_command(("true",), Wall("/", tmp_path, visible=("/tmp/shown",)))
    covered = {argv[place + 1] for place, word in enumerate(argv) if word == "/dev/null"}
    assert covered == {"/var/run/docker.sock", "/srv/s", "/tmp/shown/s"}


def test_seatbelt_profile_orders_its_rules(tmp_path: Path):
    wall = Wall("/w", tmp_path, ("/w",), (), ('/w/.git/hoo"ks',), ("/h/.ssh/id_rsa",))
    profile = seatbelt.make_profile(wall).splitlines()
    writes = [line for line in profile if "file-write*" in line]
    assert writes[0] == "(deny file-write*)"
    assert '(subpath "/w")' in writes[1] and f'(subpath "{tmp_path}")' in writes[1]
    assert writes[2] == r'(deny file-write* (subpath "/w/.git/hoo\"ks"))'
    assert writes[3] == '(deny file-read* file-write* (subpath "/h/.ssh/id_rsa"))'
    assert "(deny network*)" in profile
    assert "(deny network*)" not in seatbelt.make_profile(Wall("/w", tmp_path, network=True))


def test_scan_sees_every_change(workspace: Path):
    scan = FolderScan(str(workspace))
    for place in ("sub/.env", "sub/deep/.env.local", "sub/deep/id_rsa"):
        assert str(workspace / place) not in scan.find().secrets
        (workspace / place).parent.mkdir(exist_ok=True)
        (workspace / place).write_text("x")
        assert str(workspace / place) in scan.find().secrets
        (workspace / place).unlink()
        assert str(workspace / place) not in scan.find().secrets


def test_large_folder_is_scanned_in_part(tmp_path: Path):
    for number in range(20):
        (tmp_path / str(number)).mkdir()
    assert FolderScan(str(tmp_path)).find().complete
    assert not FolderScan(str(tmp_path), max_folders=5).find().complete


@pytest.mark.parametrize(("most", "found"), [(22, False), (21, True), (5, True)])
def test_too_many_folders_are_noticed(tmp_path: Path, most: int, found: bool):
    for number in range(20):
        (tmp_path / "one" / str(number)).mkdir(parents=True)
        for name in ("node_modules", ".git"):  # not searched, so not counted
            (tmp_path / name / str(number)).mkdir(parents=True)
    assert has_more_folders(str(tmp_path), most) is found
    assert FolderScan(str(tmp_path), max_folders=most).find().complete is not found


@pytest.mark.slow
def test_more_secrets_than_mounts_stay_hidden(complete: Sandbox, attempt: Attempt, workspace: Path):
    for number in range(450):
        folder = workspace / f"part{number}"
        folder.mkdir()
        (folder / ".env").write_text("SECRET=hunter2\n")
    done = attempt(complete, "cat part*/.env | grep -c hunter2; ls part*/ | wc -l")
    assert done.stdout.split()[0] == "0"


@pytest.mark.parametrize(
    "program",
    [
        "#!/no/such/interpreter\n",
        "#!/bin/sh\necho not permitted >&2; exit 1\n",
        # a machine that lacks only one of the things the wall is made of
        *(f'#!/bin/sh\ncase "$*" in *{part}*) exit 1;; esac\n' for part in ("--unshare-net", "--proc", "--tmpfs /run")),
    ],
)
def test_bubblewrap_that_does_not_work_is_not_relied_on(
    workspace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, program: str
):
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "bwrap").write_text(program)
    (tmp_path / "bin" / "bwrap").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/usr/bin:/bin")
    with pytest.raises(UsageError, match="bubblewrap does not"):
        find_sandbox("require", roots=[workspace])


def test_bubblewrap_that_hangs_is_not_relied_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "bwrap").write_text("#!/bin/sh\nexec sleep 600\n")
    (tmp_path / "bwrap").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setattr(bubblewrap, "_PROBE_SECONDS", 0.05)
    assert bubblewrap.find_problem().startswith("bubblewrap does not start")


def test_bubblewrap_that_works_is_used(workspace: Path):
    program = shutil.which("bwrap") or "false"
    if subprocess.run([program, "--ro-bind", "/", "/", "--proc", "/proc", "true"], check=False).returncode:
        pytest.skip("bubblewrap does not work on this machine")
    assert find_sandbox("prefer", roots=[workspace]).kind == "bubblewrap"
    assert bubblewrap.find_program() == program


def test_caches_of_writing_commands_are_read_only_for_others(complete: Sandbox, attempt: Attempt):
    assert attempt(complete, "echo first > /tmp/.cache/x", WORKSPACE).returncode != 0  # not made yet
    assert attempt(complete, "echo evil > /tmp/.cache/x").returncode != 0
    assert attempt(complete, "echo kept > /tmp/.cache/x", WORKSPACE).returncode == 0
    assert attempt(complete, "echo evil > /tmp/.cache/x; cat /tmp/.cache/x").stdout == "kept\n"


def test_every_folder_of_the_workspace_is_protected(attempt: Attempt, workspace: Path, tmp_path: Path):
    if "bubblewrap" not in runnable():
        pytest.skip("bubblewrap does not work on this machine")
    other = tmp_path / "another"
    (other / "deep" / "sub" / ".vscode").mkdir(parents=True)
    (other / "deep" / "sub" / ".vscode" / "tasks.json").write_text("as it was")
    sandbox = find_sandbox("require", roots=[workspace, other])
    moving = "mv {0}/sub {0}/old; mv {0} {0}.old; mkdir -p {0}/sub/.vscode; echo evil > {0}/sub/.vscode/tasks.json"
    attempt(sandbox, f"touch {other}/new; {moving.format(other / 'deep')}", WORKSPACE)
    assert (other / "new").exists()
    assert (other / "deep" / "sub" / ".vscode" / "tasks.json").read_text() == "as it was"


@pytest.mark.parametrize("writes", [True, False])
def test_workspace_inside_a_masked_folder_stays_a_workspace(complete: Sandbox, tmp_path: Path, writes: bool):
    inside, masked = tmp_path / "ours" / "project", tmp_path / "ours"
    inside.mkdir(parents=True)
    (inside / "file").write_text("shown\n")
    (masked / "token").write_text("hunter2\n")
    roots = (str(inside),)
    wall = Wall(str(inside), tmp_path / "scratch", roots if writes else (), (str(tmp_path),), (), (str(masked),))
    line = "cat file; cat ../token ../*; echo x > made; echo x > ../made"
    argv = bubblewrap.wrap_command(("bash", "-c", line), wall)
    assert subprocess.run(argv, capture_output=True, text=True, check=False).stdout == "shown\n"
    assert (inside / "made").exists() is writes
    assert {path.name for path in masked.iterdir()} == {"project", "token"}


@pytest.mark.parametrize(
    ("reads", "writes", "shown", "written"),
    [
        ("", "", False, False),
        ("sub/server.key", "", True, False),
        ("sub/*.key", "", True, False),
        ("sub/*.txt", "", False, False),
        ("*", "", False, False),
        ("s*/s*", "", True, False),
        ("*/*/*", "", False, False),
        ("sub/?erver.key", "", True, False),
        ("sub/[st]erver.key", "", True, False),
        ("?env", "", False, False),
        ("key", "", True, False),
        ("", "sub/server.key", True, False),
        ("", ".git/hooks", False, True),
        ("", ".git/hooks/pre-commit", False, True),
        ("", ".git", False, True),
        ("", ".git/hook", False, False),
        ("", "hooks", False, True),
        (".git/hooks", "", False, False),
    ],
)
def test_approved_line_opens_what_it_names_and_nothing_else(
    complete: Sandbox, attempt: Attempt, workspace: Path, reads: str, writes: str, shown: bool, written: bool
):
    (workspace / "key").symlink_to("sub/server.key")
    (workspace / "hooks").symlink_to(".git/hooks")
    named = NamedPaths(*(tuple(str(workspace / path) for path in paths.split()) for paths in (reads, writes)))
    done = attempt(complete, "cat sub/server.key .env; echo x > .git/hooks/pre-commit", APPROVED, named)
    assert ("PRIVATE KEY" in done.stdout) is shown and "hunter2" not in done.stdout
    assert (workspace / ".git" / "hooks" / "pre-commit").exists() is written


def test_secret_that_may_be_read_is_still_not_written(complete: Sandbox, attempt: Attempt, workspace: Path):
    named = NamedPaths(reads=(str(workspace / ".env"),))
    assert "hunter2" in attempt(complete, "cat .env; echo evil > .env", APPROVED, named).stdout
    assert (workspace / ".env").read_text() == "SECRET=hunter2\n"


def test_named_file_of_a_home_folder_does_not_open_the_folder(complete: Sandbox, attempt: Attempt, home: Path):
    (home / ".profile").write_text("old\n")
    (home / "notes").mkdir()
    line = f"for place in .profile .new notes/a; do echo new > {home}/$place; done"
    names = NamedPaths(writes=tuple(str(home / name) for name in (".profile", ".absent", "notes/a")))
    attempt(complete, line, APPROVED, names)
    assert (home / ".profile").read_text() == "new\n" == (home / "notes" / "a").read_text()
    assert not (home / ".new").exists()


@pytest.mark.parametrize(
    ("path", "opened"),
    [
        ("/srv/data/x", "/srv/data"),
        ("/srv/x", ""),
        ("/home/someone/x", ""),
        ("/Users/someone/x", ""),
        ("/home/someone/project/x", "/home/someone/project"),
        ("/etc/cron.d/x", ""),
        ("/usr/local/bin/x", ""),
        ("/dev/shm/x", ""),
        ("/proc/sys/kernel/x", ""),
        ("/sys/kernel/mm/x", ""),
        ("/srv/homes/me/x", ""),
        ("/srv/homes/x", ""),
        ("/srv/homes/me/project/x", "/srv/homes/me/project"),
        ("relative/x", ""),
        ("/w/sub/x", ""),
    ],
)
def test_named_paths_open_no_part_of_the_system(path: str, opened: str, monkeypatch: pytest.MonkeyPatch):
    def is_folder(path: str) -> bool:
        return not path.endswith("/x")

    monkeypatch.setenv("HOME", "/srv/homes/me")
    monkeypatch.setattr(os.path, "isdir", is_folder)
    monkeypatch.setattr(os.path, "realpath", str)
    assert [*NamedPaths(writes=(path,)).folders_to_open(("/w",))] == ([opened] if opened else [])


def test_named_temporary_folder_is_not_shown_as_a_whole(complete: Sandbox, attempt: Attempt):
    with tempfile.NamedTemporaryFile(dir="/tmp", prefix="not-shown-") as file:
        done = attempt(complete, "ls /tmp", READ_ONLY, NamedPaths(reads=("/tmp",)))
        assert done.returncode == 0 and Path(file.name).name not in done.stdout


def test_secrets_of_the_user_are_looked_for_every_few_seconds(home: Path, monkeypatch: pytest.MonkeyPatch):
    now = [time.monotonic() + 1000]
    monkeypatch.setattr(walls.time, "monotonic", lambda: now[0])
    assert str(home / ".netrc") not in walls.user_secrets()
    (home / ".netrc").write_text("machine a password b\n")
    now[0] += 4
    assert str(home / ".netrc") not in walls.user_secrets()
    now[0] += 4
    assert str(home / ".netrc") in walls.user_secrets()
    other = home.parent / "other"
    other.mkdir()
    (other / ".netrc").write_text("machine a password b\n")
    monkeypatch.setenv("HOME", str(other))
    assert str(other / ".netrc") in walls.user_secrets()
    monkeypatch.setattr(walls, "_user_secrets", type(walls._user_secrets)())  # pyright: ignore[reportPrivateUsage]


def test_mask_is_made_again_when_it_is_gone(tmp_path: Path):
    (tmp_path / "key").write_text("PRIVATE KEY\n" * 9)
    mask = Path(walls.mask_file(str(tmp_path / "key")))
    mask.unlink()
    assert walls.mask_file(str(tmp_path / "key")) == str(mask)
    assert b"PRIVATE" not in mask.read_bytes()
    kept, masked = (tmp_path / "key").stat(), mask.stat()
    assert (kept.st_size, kept.st_mtime_ns) == (masked.st_size, masked.st_mtime_ns)


def test_forgotten_mask_is_made_again_by_a_user_who_may_not_write_it(tmp_path: Path):
    (tmp_path / "key").write_text("PRIVATE KEY\n")
    with Path(walls.mask_file(str(tmp_path / "key"))).open("rb") as first:
        walls._mask_file.cache_clear()  # pyright: ignore[reportPrivateUsage]
        assert walls.mask_file(str(tmp_path / "key")) == first.name
        assert os.fstat(first.fileno()).st_nlink == 0  # a new file, not the old one written again


def test_path_that_cannot_be_moved_away_is_not_reported_as_gone(tmp_path: Path):
    assert not walls.move_away(str(tmp_path / "absent"))
    (tmp_path / "made").write_text("x")
    assert walls.move_away(str(tmp_path / "made")) and not (tmp_path / "made").exists()


def test_scan_reads_only_folders_that_changed(workspace: Path, monkeypatch: pytest.MonkeyPatch):
    read: list[str] = []
    real = os.scandir

    def scandir(path: str) -> object:
        read.append(str(path))
        return real(path)

    monkeypatch.setattr("callwright.system.sandbox.scan.os.scandir", scandir)
    later = time.time_ns() + 10**12
    monkeypatch.setattr("callwright.system.sandbox.scan.time.time_ns", lambda: later)
    scan = FolderScan(str(workspace))
    assert str(workspace / ".env") in scan.find().secrets and str(workspace / "sub") in read
    read.clear()
    assert str(workspace / ".env") in scan.find().secrets
    assert [path for path in read if ".git" not in path] == []
    (workspace / "sub" / "id_rsa").write_text("x")
    assert str(workspace / "sub" / "id_rsa") in scan.find().secrets and str(workspace / "sub") in read


def test_scan_goes_on_past_a_folder_that_is_gone_or_cannot_be_read(workspace: Path, monkeypatch: pytest.MonkeyPatch):
    real = os.scandir

    def scandir(path: str) -> object:
        if str(path) == str(workspace / "closed"):
            raise PermissionError
        if str(path) == str(workspace):
            (workspace / "gone").mkdir(exist_ok=True)
        found = real(path)
        if str(path) == str(workspace / "sub"):
            (workspace / "gone").rmdir()
        return found

    (workspace / "closed").mkdir()
    monkeypatch.setattr("callwright.system.sandbox.scan.os.scandir", scandir)
    found = FolderScan(str(workspace)).find()
    assert found.complete and {str(workspace / ".env"), str(workspace / "sub" / "server.key")} == found.secrets


@pytest.mark.parametrize("ago_ms", [1, -1])
def test_scan_does_not_trust_a_folder_that_changed_a_moment_ago(
    workspace: Path, monkeypatch: pytest.MonkeyPatch, ago_ms: int
):
    now = 1_700_000_000_000_000_000
    monkeypatch.setattr("callwright.system.sandbox.scan.time.time_ns", lambda: now)
    scan = FolderScan(str(workspace))
    for name in ("id_rsa", "id_ed25519"):
        # as on a disk whose clock is too coarse to tell the changes apart
        os.utime(workspace / "sub", ns=(now, now - ago_ms * 1_000_000))
        assert str(workspace / "sub" / name) not in scan.find().secrets
        (workspace / "sub" / name).write_text("x")
        os.utime(workspace / "sub", ns=(now, now - ago_ms * 1_000_000))
        assert str(workspace / "sub" / name) in scan.find().secrets


def test_parts_of_repositories_that_run_programs_are_protected(workspace: Path):
    git = workspace / ".git"
    made = (
        "modules/a/objects/x modules/a/config modules/b/c/hooks/pre-commit modules/b/c/config"
        " modules/b/c/modules/d/config worktrees/w/config.worktree info/attributes commondir description"
    )
    for name in made.split():
        (git / name).parent.mkdir(parents=True, exist_ok=True)
        (git / name).touch()
    for name in (".GIT", ".gıt"):
        (workspace / "other" / name / "hooks").mkdir(parents=True)
    found = {path.removeprefix(f"{workspace}/") for path in FolderScan(str(workspace)).find().protected}
    inside = {path for path in found if path.casefold().startswith((".git", "other"))}
    names = "hooks config modules/a/config modules/b/c/hooks modules/b/c/config worktrees/w/config.worktree"
    assert inside == {f".git/{name}" for name in f"{names} info/attributes commondir".split()} | {"other/.GIT/hooks"}


def test_scan_follows_no_link(workspace: Path):
    (workspace / "up").symlink_to("..")
    found = FolderScan(str(workspace), max_folders=30).find()
    assert found.complete and not has_more_folders(str(workspace), 30)
    assert not any("/up/" in path for path in found.secrets | found.protected)
