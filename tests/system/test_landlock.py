"""Landlock and its filter: tried from the inside on this kernel, and as data for other kernels and machines."""

import ctypes
import errno
import json
import os
import socket
import struct
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace

import pytest

from callwright.core.errors import UsageError
from callwright.system.sandbox import landlock
from callwright.system.sandbox.sandbox import find_sandbox

# what a confined process tries; prints how each attempt ended
ATTEMPTS = """
import ctypes, errno, json, os, socket, sys
handed, port, abstract, folder, file, outside = sys.argv[1:]
libc = ctypes.CDLL(None, use_errno=True)
found = {}

def attempt(name, action, *given):
    try:
        action(*given)
        found[name] = "done"
    except OSError as error:
        found[name] = errno.errorcode[error.errno]

def call(number):
    if libc.syscall(number, 1, None) < 0:
        raise OSError(ctypes.get_errno(), "")

def write(path):
    fd = os.open(path, os.O_WRONLY | os.O_NOCTTY)
    os.write(fd, b"x")
    os.close(fd)

def move():
    os.makedirs(f"{folder}/one")
    open(f"{folder}/one/a", "x").close()
    os.rename(f"{folder}/one/a", f"{folder}/b")

def bind(path):
    socket.socket(socket.AF_UNIX).bind(path)

for family in ("AF_UNIX", "AF_NETLINK", "AF_INET", "AF_INET6", "AF_PACKET"):
    attempt(family, socket.socket, getattr(socket, family), socket.SOCK_DGRAM)
attempt("handed", socket.socket(fileno=int(handed)).connect, ("127.0.0.1", int(port)))
attempt("abstract", socket.socket(socket.AF_UNIX).connect, "\\0" + abstract)
attempt("signal", os.kill, os.getppid(), 0)
attempt("io_uring", call, 425)
attempt("x32", call, 0x40000000 | 39)
for name in ("null", "zero", "full", "tty"):
    attempt(name, write, f"/dev/{name}")
attempt("move", move)
attempt("file", write, file)
attempt("empty file", os.truncate, file, 0)
for name, action, *given in (
    ("write", write, "kept"), ("empty", os.truncate, "kept", 0), ("rmdir", os.rmdir, "sub"),
    ("unlink", os.unlink, "kept"), ("mkdir", os.mkdir, "new"), ("fifo", os.mkfifo, "new"),
    ("link", os.symlink, "x", "new"), ("bind", bind, "new"), ("device", os.mknod, "new", 0o20600, 259),
    ("block", os.mknod, "new", 0o60600, 1793), ("make", os.mknod, "new", 0o100600),
):
    os.chdir(outside)
    attempt(name, action, *given)
found["privileges"] = [line.split()[1] for line in open("/proc/self/status") if line.startswith("NoNewPrivs")][0]
print(json.dumps(found))
"""
REFUSED = dict.fromkeys("write empty rmdir unlink mkdir fifo link bind device block make".split(), "EACCES")
KEPT = {
    **dict.fromkeys(["null", "zero", "move", "file", "empty file", "AF_UNIX", "AF_NETLINK"], "done"),
    "full": "ENOSPC",
    "tty": "ENXIO",
}


def confine(request: landlock.LandlockRequest, *argv: str, fds: Sequence[int] = ()) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-I", "-S", landlock.__file__, json.dumps(request), *argv]
    return subprocess.run(command, pass_fds=fds, start_new_session=True, capture_output=True, text=True, check=False)


@pytest.mark.skipif(landlock.version() < 6 or not landlock.has_seccomp(), reason="this kernel's Landlock is too old")
@pytest.mark.parametrize("network", [False, True])
def test_confined_process_keeps_only_what_was_granted(tmp_path: Path, network: bool):
    folder, file, outside = tmp_path / "folder", tmp_path / "file", tmp_path / "outside"
    folder.mkdir()
    (outside / "sub").mkdir(parents=True)
    for path in (file, outside / "kept"):
        path.write_text("as it was")
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        socket.socket() as handed,
        socket.socket(socket.AF_UNIX) as abstract,
    ):
        name = f"callwright-{os.getpid()}-{network}"
        abstract.bind(f"\0{name}")
        abstract.listen()
        given = [handed.fileno(), server.getsockname()[1], name, folder, file, outside]
        done = confine(
            {"writable": [str(tmp_path / "absent"), str(folder), str(file)], "network": network},
            *(sys.executable, "-I", "-S", "-c", ATTEMPTS, *map(str, given)),
            fds=[handed.fileno()],
        )
    assert done.stderr == ""
    found = json.loads(done.stdout)
    expected = {**KEPT, **REFUSED, "abstract": "EPERM", "signal": "EPERM", "privileges": "1"}
    if network:
        expected |= {"AF_INET": "done", "handed": "done"}
        found = {name: found[name] for name in expected}
    else:
        expected |= dict.fromkeys("AF_INET AF_INET6 AF_PACKET io_uring x32".split(), "EPERM") | {"handed": "EACCES"}
    assert found == expected
    assert sorted(path.name for path in outside.iterdir()) == ["kept", "sub"]
    assert (outside / "kept").read_text() == "as it was"


@pytest.mark.skipif(landlock.version() < 3, reason="this kernel has no Landlock")
@pytest.mark.parametrize("broken", ["writable", "program"])
def test_command_does_not_run_if_it_cannot_be_confined(tmp_path: Path, broken: str):
    (tmp_path / "file").touch()
    below = str(tmp_path / "file" / "below")  # cannot be opened: not a folder
    argv = ("touch", str(tmp_path / "ran")) if broken == "writable" else (below,)
    done = confine({"writable": [below if broken == "writable" else str(tmp_path)], "network": True}, *argv)
    assert (done.returncode, done.stdout) == (126, "")
    assert done.stderr.startswith(f"cannot run {argv[0]} in the sandbox: [Errno 20]")
    assert not (tmp_path / "ran").exists()


@pytest.mark.skipif(landlock.version() < 3, reason="this kernel has no Landlock")
def test_command_does_not_run_if_the_kernel_refuses_a_rule(tmp_path: Path):
    # the output is a pipe, and there are no rules for pipes
    done = confine({"writable": ["/proc/self/fd/1"], "network": True}, "touch", str(tmp_path / "ran"))
    assert (done.returncode, done.stdout) == (126, "")
    assert done.stderr.startswith(f"cannot run touch in the sandbox: [Errno {errno.EBADFD}]")
    assert not (tmp_path / "ran").exists()


class Kernel:
    """The system calls of `landlock`, recorded: for versions of Landlock that this machine does not have."""

    def __init__(self, version: int, failing: int = 0) -> None:
        self.version = version
        self.failing = failing
        self.calls: list[int] = []
        self.attributes = b""
        self.rules: dict[str, int] = {}
        self.filter: list[tuple[int, int, int, int]] = []

    def syscall(self, number: int, *given: object) -> int:
        match (number, *given):
            case (444, None, _, 1):
                return self.version
            case (444, bytes(attributes), ctypes.c_size_t(), 0):
                self.attributes = attributes
                return self._end(number, os.open(os.devnull, os.O_RDONLY))
            case (445, int(), 1, bytes(rule), 0):
                rights, fd = struct.unpack("=Qi", rule)
                self.rules[str(Path(f"/proc/self/fd/{fd}").readlink())] = rights
            case _:
                assert number == 446
        return self._end(number, 0)

    def prctl(self, option: int, *given: object) -> int:
        if option == 22:
            assert isinstance(given[1], bytes)
            lines, address = struct.unpack("@HP", given[1])
            self.filter = [*struct.iter_unpack("=HBBI", ctypes.string_at(address, lines * 8))]
        return self._end(option, 0)

    def _end(self, call: int, result: int) -> int:
        self.calls.append(call)
        ctypes.set_errno(1)
        return -1 if call == self.failing else result

    def allows(self, machine: int, number: int, argument: int) -> bool:
        data = struct.pack("=IIQQ", number, machine, 0, argument)
        place = value = 0
        while True:
            code, if_true, if_false, operand = self.filter[place]
            place += 1
            match code:
                case 0x20:
                    value = int.from_bytes(data[operand : operand + 4], sys.byteorder)
                case 0x15 | 0x35:
                    place += if_true if (value == operand if code == 0x15 else value >= operand) else if_false
                case _:
                    assert operand in (0x7FFF0000, 0x00050001)  # allowed, or refused with EPERM
                    return operand == 0x7FFF0000


X86, ARM, X86_32, ARM_32 = 0xC000003E, 0xC00000B7, 0x40000003, 0x40000028


@pytest.mark.parametrize(("name", "machine", "call"), [("x86_64", X86, 41), ("aarch64", ARM, 198)])
def test_filter_lets_through_local_sockets_of_its_machine(
    monkeypatch: pytest.MonkeyPatch, name: str, machine: int, call: int
):
    kernel = Kernel(7)
    monkeypatch.setattr(landlock, "_libc", kernel)
    monkeypatch.setattr(landlock.os, "uname", lambda: SimpleNamespace(machine=name))
    assert landlock.has_seccomp()
    landlock.confine({"writable": [], "network": True})
    assert kernel.filter == [] and kernel.calls == [38, 444, *[445] * len(kernel.rules), 446]
    landlock.confine({"writable": [], "network": False})
    families = [family for family in range(50) if kernel.allows(machine, call, family)]
    assert families == [socket.AF_UNIX, 16]
    assert all(kernel.allows(machine, number, 2) for number in (0, call - 1, call + 1, 424, 426, 0x3FFFFFFF))
    assert not any(kernel.allows(machine, number, 1) for number in (425, 0x40000000, 0x40000000 + call, 0xFFFFFFFF))
    others = {X86, ARM, X86_32, ARM_32, 0} - {machine}
    assert not any(kernel.allows(other, number, 1) for other in others for number in (0, call, 359, 425))


@pytest.mark.parametrize("network", [False, True])
def test_rights_follow_the_version_of_the_kernel(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, network: bool):
    (tmp_path / "file").touch()
    monkeypatch.setattr(landlock.os, "uname", lambda: SimpleNamespace(machine="x86_64"))
    writes, move, truncate = 0b1_1111_1111_0010, 1 << 13, 1 << 14
    for version in range(1, 9):
        kernel = Kernel(version)
        monkeypatch.setattr(landlock, "_libc", kernel)
        landlock.confine({"writable": [str(tmp_path), str(tmp_path / "file")], "network": network})
        rights = writes | (move if version > 1 else 0) | (truncate if version > 2 else 0)
        numbers = struct.unpack(f"={len(kernel.attributes) // 8}Q", kernel.attributes)
        tcp = 0 if network else 0b11
        assert numbers == ((rights,) if version < 4 else (rights, tcp) if version < 6 else (rights, tcp, 0b11))
        assert kernel.rules[str(tmp_path)] == rights
        assert kernel.rules[str(tmp_path / "file")] == kernel.rules["/dev/null"] == rights & (0b10 | truncate)


@pytest.mark.parametrize("failing", [38, 444, 445, 446, 22])
def test_every_failure_of_the_kernel_is_an_error(monkeypatch: pytest.MonkeyPatch, failing: int):
    monkeypatch.setattr(landlock, "_libc", Kernel(7, failing))
    monkeypatch.setattr(landlock.os, "uname", lambda: SimpleNamespace(machine="x86_64"))
    with pytest.raises(PermissionError):
        landlock.confine({"writable": [], "network": False})


def test_no_landlock_where_there_is_none(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(landlock, "_libc", Kernel(-1))
    assert landlock.version() == 0
    monkeypatch.setattr(landlock, "_libc", Kernel(7))
    assert landlock.version() == 7
    monkeypatch.setattr(landlock.os, "uname", lambda: SimpleNamespace(machine="riscv64"))
    assert not landlock.has_seccomp()
    with pytest.raises(KeyError):  # the network cannot be turned off, so nothing may run
        landlock.confine({"writable": [], "network": False})
    monkeypatch.setattr(landlock.os, "uname", lambda: SimpleNamespace(machine="x86_64"))
    monkeypatch.setattr(landlock.sys, "platform", "darwin")
    assert landlock.version() == 0 and not landlock.has_seccomp()


@pytest.mark.usefixtures("without_bubblewrap")
@pytest.mark.parametrize(
    ("version", "machine", "kind"),
    [
        (-1, "x86_64", "none"),
        (2, "x86_64", "none"),  # a file outside could still be emptied
        (3, "x86_64", "landlock"),
        (7, "aarch64", "landlock"),
        (7, "riscv64", "none"),  # the network cannot be turned off
    ],
)
def test_landlock_is_used_only_with_all_that_it_needs(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, version: int, machine: str, kind: str
):
    monkeypatch.setattr(landlock, "_libc", Kernel(version))
    monkeypatch.setattr(landlock.os, "uname", lambda: SimpleNamespace(machine=machine))
    sandbox = find_sandbox("prefer", roots=[tmp_path])
    assert sandbox.kind == kind and not sandbox.complete
    assert ("secrets can be read" if kind == "landlock" else "install bubblewrap") in sandbox.describe()
    assert "or read secrets" not in sandbox.describe()
    with pytest.raises(UsageError, match="commands cannot be confined here"):
        find_sandbox("require", roots=[tmp_path])
