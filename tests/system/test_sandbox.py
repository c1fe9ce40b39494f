"""The wall around commands, tried from the inside."""

import os
import pwd
import select
import shutil
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from tests.system.conftest import APPROVED, NETWORK, READ_ONLY, WORKSPACE, Attempt, tree

from callwright.core.access import Confinement, is_below
from callwright.core.errors import UsageError
from callwright.system.sandbox import bubblewrap, landlock, seatbelt
from callwright.system.sandbox.sandbox import Sandbox, find_sandbox
from callwright.system.sandbox.wall import NamedPaths, Wall

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


def test_seatbelt_runs_the_command_behind_its_profile(tmp_path: Path):
    sandbox = Sandbox("seatbelt", (str(tmp_path),))
    with sandbox.confine(("true",), str(tmp_path), READ_ONLY, scratch=tmp_path / "scratch") as confined:
        assert confined.argv[:2] == ("/usr/bin/sandbox-exec", "-p") and confined.argv[-1] == "true"
        assert "(deny file-write*)" in confined.argv[2]


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


@pytest.mark.parametrize("confinement", [READ_ONLY, WORKSPACE])
def test_socket_without_a_file_does_not_stop_commands(
    complete: Sandbox, attempt: Attempt, workspace: Path, monkeypatch: pytest.MonkeyPatch, confinement: Confinement
):
    monkeypatch.chdir(workspace)
    with socket.socket(socket.AF_UNIX) as gone, socket.socket(socket.AF_UNIX) as abstract:
        gone.bind("gone")
        (workspace / "gone").unlink()
        abstract.bind(f"\0callwright-{os.getpid()}-{confinement}")
        assert attempt(complete, "echo ran", confinement).stdout == "ran\n"
    assert {path.name for path in workspace.iterdir()} == {".git", ".env", "AGENTS.md", "sub"}


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


def test_folders_that_do_not_exist_stop_no_command(complete: Sandbox, workspace: Path, tmp_path: Path):
    missing = [tmp_path / "more", tmp_path / "cache"]
    sandbox = find_sandbox("require", roots=[workspace, missing[0]], writable=[missing[1]])
    line = ("bash", "-c", f"echo kept > made; mkdir {missing[1]}; true")
    with sandbox.confine(line, str(workspace), WORKSPACE, scratch=tmp_path / "scratch") as confined:
        subprocess.run(confined.argv, check=True, capture_output=True)
    assert (workspace / "made").read_text() == "kept\n" and not any(folder.exists() for folder in missing)


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


def test_problem_of_bubblewrap_is_told_in_its_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "bwrap").write_text("#!/bin/sh\necho not permitted >&2; exit 1\n")
    (tmp_path / "bwrap").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    assert bubblewrap.find_problem() == "bubblewrap does not work here: not permitted"


@pytest.mark.usefixtures("without_bubblewrap")
def test_sandbox_of_macos_is_complete(workspace: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(seatbelt, "find_problem", str)  # none
    sandbox = find_sandbox("require", roots=[workspace])
    assert sandbox.kind == "seatbelt" and sandbox.complete


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
    sandbox = find_sandbox("prefer", roots=[workspace])
    assert sandbox.kind == "bubblewrap" and sandbox.complete
    assert bubblewrap.find_program() == program
