"""Secrets and protected paths behind the wall, tried from the inside."""

import os
import subprocess
import tempfile
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest
from tests.system.conftest import APPROVED, NETWORK, READ_ONLY, WORKSPACE, Attempt, tree
from tests.waiting import LONG_SECONDS

from callwright.core.access import Confinement
from callwright.system.sandbox import bubblewrap
from callwright.system.sandbox.sandbox import Sandbox, find_sandbox
from callwright.system.sandbox.wall import NamedPaths, Wall


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


@pytest.mark.parametrize("name", [".npmrc", ".config/pip/pip.conf"])
def test_settings_of_package_managers_are_masked_without_network(
    complete: Sandbox, attempt: Attempt, home: Path, name: str
):
    """With network they name the index to install from: without them another one would be used."""
    (home / name).parent.mkdir(parents=True, exist_ok=True)
    (home / name).write_text("registry=https://npm.corp.example token=hunter2\n")
    for confinement in (READ_ONLY, WORKSPACE):
        assert "hunter2" not in attempt(complete, f"cat ~/{name}", confinement).stdout
    for confinement in (WORKSPACE | NETWORK, APPROVED):
        assert "hunter2" in attempt(complete, f"cat ~/{name}", confinement).stdout


def test_linked_settings_of_package_managers_are_shown_with_network(complete: Sandbox, attempt: Attempt, home: Path):
    (home / "dot_npmrc").write_text("registry=https://npm.corp.example token=hunter2\n")
    (home / ".npmrc").symlink_to("dot_npmrc")
    assert "hunter2" not in attempt(complete, "cat ~/.npmrc ~/dot_npmrc", WORKSPACE).stdout
    for confinement in (WORKSPACE | NETWORK, APPROVED):
        assert "hunter2" in attempt(complete, "cat ~/.npmrc", confinement).stdout


@pytest.mark.parametrize("linked", [False, True])
def test_rule_hides_settings_of_package_managers_with_network(
    complete: Sandbox, attempt: Attempt, home: Path, linked: bool
):
    npmrc = home / ".npmrc"
    (home / "dot_npmrc" if linked else npmrc).write_text("token=hunter2\n")
    if linked:
        npmrc.symlink_to("dot_npmrc")
    sandbox = replace(complete, hidden=str(npmrc).__eq__, denied=(str(npmrc),), _scans={})
    for confinement in (WORKSPACE | NETWORK, APPROVED):
        assert "hunter2" not in attempt(sandbox, "cat ~/.npmrc ~/dot_npmrc", confinement).stdout


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


def test_paths_of_deny_rules_outside_the_workspace_are_masked(
    home: Path, tmp_path: Path, attempt: Attempt, complete: Sandbox
):
    for name in ("home/notes/plan", "home/one", "data/deep/er/a.pem", "data/deep/a.txt"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(f"content of {name}\n")
    denied = tuple(f"{tmp_path}/{name}" for name in ("home/notes", "home/one", "data", "missing"))
    above = (f"{home}/notes/", f"{home}/one")
    found = find_sandbox(
        "require", roots=complete.roots, hidden=lambda path: path.startswith(above) or path.endswith(".pem")
    )
    hiding = replace(found, denied=denied)
    named = NamedPaths(reads=(str(home), f"{tmp_path}/data"))  # keeps them visible below /tmp
    line = "cat ~/notes/plan ~/one ../data/deep/er/a.pem ../data/deep/a.txt"
    assert attempt(complete, line, named=named).stdout.count("content of") == 4
    for confinement in (READ_ONLY, WORKSPACE):
        done = attempt(hiding, line, confinement, named)
        assert done.stdout.count("content of") == 1 and "content of data/deep/a.txt" in done.stdout


def test_deny_rule_for_a_system_folder_leaves_programs_runnable(attempt: Attempt, complete: Sandbox):
    hiding = find_sandbox("require", roots=complete.roots, hidden=lambda path: path.startswith(("/etc/", "/usr/")))
    hiding = replace(hiding, denied=("/etc", "/usr", "/usr/bin", "/etc/passwd"))
    done = attempt(hiding, "ls /etc/group && grep -c root: /etc/passwd")
    assert done.stdout == "/etc/group\n0\n"


def test_large_place_of_a_deny_rule_counts_as_unsearched(home: Path, tmp_path: Path, complete: Sandbox):
    for number in range(5):
        (tmp_path / "data" / str(number)).mkdir(parents=True)
    found = find_sandbox("require", roots=complete.roots, hidden=lambda path: path.endswith(".pem"))
    hiding = replace(found, denied=(f"{tmp_path}/data", str(home), "/"))
    for most, unsearched in ((10, ()), (3, (f"{tmp_path}/data",))):
        wall, _ = replace(hiding, max_folders=most, roots=(), _scans={}).wall(
            READ_ONLY, str(tmp_path), tmp_path / "scratch"
        )
        assert wall.unsearched == unsearched


def _is_lock(path: str) -> bool:
    return path.endswith(".lock")


def test_many_unwritable_paths_become_whole_folders(workspace: Path, attempt: Attempt, complete: Sandbox):
    for number in range(500):
        folder = workspace / f"f{number % 50}"
        folder.mkdir(exist_ok=True)
        (folder / f"{number}.lock").write_text("as it was")
    kept = replace(complete, unwritable=_is_lock, _scans={})
    attempt(kept, "for each in f*/*.lock; do echo x > $each; done; echo x > new.lock; echo x > rest", WORKSPACE)
    assert {file.read_text() for file in workspace.glob("f*/*.lock")} == {"as it was"}
    assert (workspace / "rest").exists() and not (workspace / "new.lock").exists()


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
    # these look like harmless settings, or cannot be looked at as such
    "echo '# evil' > sub/CLAUDE.md",
    "git init -q other && echo '# evil' > other/.git/commondir",
    "mkdir -p other/.git && echo evil > other/.git/hooks",
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


@pytest.mark.parametrize(
    ("line", "link"),
    [
        ("ln -s {outside} .git/worktrees", ".git/worktrees"),
        ("ln -s {outside}/app .git/modules", ".git/modules"),
        ("mkdir .git/worktrees; ln -s {outside}/app .git/worktrees/x", ".git/worktrees/x"),
        ("ln -s {outside}/app .git/info", ".git/info"),
        ("ln -s {outside} missing", "missing"),
    ],
)
def test_link_out_of_the_workspace_is_moved_away_not_what_lies_behind_it(
    complete: Sandbox, workspace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: str, link: str
):
    outside = tmp_path / "outside"
    for name in ("app/hooks/pre-commit", "app/config", "app/attributes", "bin/tool"):
        (outside / name).parent.mkdir(parents=True, exist_ok=True)
        (outside / name).write_text("theirs")
    monkeypatch.setenv("PATH", os.pathsep.join((str(workspace / "missing/bin"), os.environ["PATH"])))
    before = tree(outside)
    argv = ("bash", "-c", line.format(outside=outside))
    with complete.confine(argv, str(workspace), WORKSPACE, scratch=tmp_path / "scratch") as confined:
        subprocess.run(confined.argv, cwd=workspace, check=True, timeout=LONG_SECONDS)
    assert tree(outside) == before and len(before) == 4
    assert confined.removed == [str(workspace / link)] and not os.path.lexists(workspace / link)


def test_workspace_that_the_user_replaced_by_a_link_stays(complete: Sandbox, workspace: Path, tmp_path: Path):
    with complete.confine(("true",), str(workspace), WORKSPACE, scratch=tmp_path / "scratch") as confined:
        workspace.rename(tmp_path / "moved")
        workspace.symlink_to("moved")
        (tmp_path / "moved/new/.vscode").mkdir(parents=True)
    assert workspace.is_symlink() and (tmp_path / "moved/new/.vscode").is_dir() and confined.removed == []


@pytest.mark.parametrize(
    ("line", "confinement"),
    [
        ("echo evil > ../home/inner/made; cat moved/server.key", WORKSPACE),
        ("cat moved/server.key", READ_ONLY),
        (":", WORKSPACE),
    ],
)
def test_folder_replaced_while_the_wall_is_built_stops_the_command(
    complete: Sandbox, workspace: Path, home: Path, tmp_path: Path, line: str, confinement: Confinement
):
    inner = home / "inner"
    (inner / ".vscode").mkdir(parents=True)
    (inner / "server.key").write_text("a decoy\n")
    argv = ("bash", "-c", line)
    with complete.confine(argv, str(workspace), confinement, scratch=tmp_path / "scratch") as confined:
        (workspace / "sub").rename(workspace / "moved")  # as a command in the background can
        (workspace / "sub").symlink_to("../home/inner")
        ended = subprocess.run(
            confined.argv, cwd=workspace, capture_output=True, text=True, timeout=LONG_SECONDS, check=False
        )
    assert (ended.returncode, ended.stdout, ended.stderr[:7]) == (1, "", "bwrap: ")
    assert sorted(tree(inner).values()) == [b"a decoy\n"]


@pytest.mark.parametrize("name", ["two words", "back\\slash", "line\nbreak", "tab\tand\udcff", "*", "--"])
def test_odd_names_stop_no_command(complete: Sandbox, attempt: Attempt, workspace: Path, name: str):
    (workspace / name / ".vscode").mkdir(parents=True)
    (workspace / name / ".env").write_text("SECRET=hunter2\n")
    for confinement in (READ_ONLY, WORKSPACE):
        ended = attempt(complete, "cat ./*/.env; touch ./*/.vscode", confinement)
        assert "masked" in ended.stdout and "hunter2" not in ended.stdout and ended.stderr.count("Read-only") == 2


def test_new_pipe_in_place_of_settings_is_moved_away(complete: Sandbox, attempt: Attempt, workspace: Path):
    attempt(complete, "git init -q other; rm other/.git/config; mkfifo other/.git/config", WORKSPACE)
    assert (workspace / "other" / ".git").is_dir() and not (workspace / "other" / ".git" / "config").exists()


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


def test_only_a_complete_sandbox_depends_on_the_search_for_secrets(tmp_path: Path):
    (tmp_path / "a" / "b").mkdir(parents=True)
    roots = (str(tmp_path),)
    assert "more than 1 folders" in Sandbox("bubblewrap", roots, max_folders=1).find_unsearched()
    assert Sandbox("bubblewrap", roots).find_unsearched() == ""
    assert Sandbox("landlock", roots, gaps=("x",), max_folders=1).find_unsearched() == ""
    assert Sandbox("none", roots, max_folders=1).find_unsearched() == ""


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
    hook = "mkdir -p other/.git/hooks; echo x > other/.git/hooks/a.sample"
    attempt(complete, f"git init -q other; {hook}; echo x > other/made.key", WORKSPACE)
    assert (workspace / "other" / ".git" / "hooks" / "a.sample").is_file()
    assert (workspace / "other" / ".git" / "config").is_file()
    assert (workspace / "other" / "made.key").is_file()  # a secret, but it configures nothing


def test_approved_line_may_write_what_it_names(complete: Sandbox, attempt: Attempt, workspace: Path, tmp_path: Path):
    outside = tmp_path / "outside"
    outside.mkdir()
    named = NamedPaths(writes=(str(outside / "new"), str(workspace / "AGENTS.md")))
    attempt(complete, f"echo x > {outside}/new; echo x > AGENTS.md; echo x > .git/config", APPROVED, named)
    assert (outside / "new").read_text() == "x\n" == (workspace / "AGENTS.md").read_text()
    assert (workspace / ".git" / "config").read_text() == "[core]\n"


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


@pytest.mark.slow
def test_more_secrets_than_mounts_stay_hidden(complete: Sandbox, attempt: Attempt, workspace: Path):
    for number in range(450):
        folder = workspace / f"part{number}"
        folder.mkdir()
        (folder / ".env").write_text("SECRET=hunter2\n")
    done = attempt(complete, "cat part*/.env | grep -c hunter2; ls part*/ | wc -l")
    assert done.stdout.split()[0] == "0"


def test_caches_of_writing_commands_are_read_only_for_others(complete: Sandbox, attempt: Attempt):
    assert attempt(complete, "echo first > /tmp/.cache/x", WORKSPACE).returncode != 0  # not made yet
    assert attempt(complete, "echo evil > /tmp/.cache/x").returncode != 0
    assert attempt(complete, "echo kept > /tmp/.cache/x", WORKSPACE).returncode == 0
    assert attempt(complete, "echo evil > /tmp/.cache/x; cat /tmp/.cache/x").stdout == "kept\n"


def test_every_folder_of_the_workspace_is_protected(attempt: Attempt, workspace: Path, tmp_path: Path):
    if bubblewrap.find_problem():
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


def test_masks_in_the_workspace_cannot_be_replaced(
    complete: Sandbox, attempt: Attempt, workspace: Path, monkeypatch: pytest.MonkeyPatch
):
    private = workspace / "tmp/callwright-x"
    private.mkdir(parents=True)
    monkeypatch.setattr("callwright.system.sandbox.wall.output_folder", lambda: private)
    assert "masked" in attempt(complete, "cat .env").stdout
    attempt(complete, "for mask in tmp/*/masks/*; do ln -sf ~/.ssh/id_rsa $mask; done; mv tmp moved", WORKSPACE)
    assert "PRIVATE" not in attempt(complete, "cat .env").stdout
    assert not any(path.is_symlink() for path in (private / "masks").iterdir())


@pytest.mark.parametrize(
    "line", ["touch /tmp/.cache", "ln -s nowhere /tmp/.cache", "mkdir /tmp/x; ln -s x /tmp/.cache"]
)
def test_what_a_command_puts_in_place_of_the_caches_stops_no_other(complete: Sandbox, attempt: Attempt, line: str):
    attempt(complete, line, WORKSPACE)
    ended = attempt(complete, "touch /tmp/.cache/made; echo ran", READ_ONLY)
    assert ended.stdout == "ran\n" and "Read-only file system" in ended.stderr
