"""Random changes of a workspace by tools and by others, and a picture of the workspace to compare."""

import os
import random
import stat
from pathlib import Path
from typing import Any

from callwright import Completed, Executor, Registry
from callwright.policy import AllowEverything
from callwright.system.undo.undo_store import UndoStore
from callwright.toolbox import Bash, Delete, Edit, Move, Read, Write

Picture = dict[str, tuple[object, ...]]


def picture(root: Path) -> Picture:
    """Everything about a tree that an undo must bring back: names, kinds, bytes, modes, targets."""
    found: Picture = {}
    start = len(str(root)) + 1
    for folder, folders, files in os.walk(root):
        for name in (*folders, *files):
            path = f"{folder}/{name}"  # text, because random changes take thousands of pictures
            mode = os.lstat(path).st_mode
            if stat.S_ISLNK(mode):
                found[path[start:]] = ("link", str(Path(path).readlink()))
            elif stat.S_ISDIR(mode):
                found[path[start:]] = ("folder", stat.S_IMODE(mode))
            else:
                found[path[start:]] = ("file", stat.S_IMODE(mode), Path(path).read_bytes())
    return found


class Workbench:
    """A workspace with tools whose changes are recorded."""

    def __init__(self, folder: Path) -> None:
        self.root = Path(os.path.realpath(folder)) / "workspace"
        self.root.mkdir(parents=True)
        self.kept = self.root.parent / "kept"
        tools = (Read(self.root), Write(self.root), Edit(self.root), Delete(self.root), Move(self.root))
        self.executor = Executor(Registry(*tools, Bash(self.root)), AllowEverything())
        self.restart()

    def restart(self) -> None:
        """Forget everything that is only in memory."""
        self.store = UndoStore(self.kept)
        self.recorder = self.store.recorder("session")
        self.executor.state.put(self.recorder)

    @property
    def log(self) -> Any:
        return self.store.open("session")

    def begin_turn(self) -> None:
        self.recorder.begin_turn()

    async def call(self, name: str, **arguments: Any) -> bool:
        """Make a call; whether it completed."""
        return isinstance(await self.executor.run(name, arguments), Completed)

    def undo(self, after: int) -> str:
        plan = self.log.plan_undo(after)
        assert not plan.conflicts
        return self.log.apply(plan)[0]

    def redo(self, restored: str) -> None:
        plan = self.log.plan_redo(restored)
        assert not plan.conflicts
        self.log.apply(plan, redo=restored)


class RandomChanges:
    """Makes random calls, many of which fail, as those of models do."""

    def __init__(self, bench: Workbench, seed: int) -> None:
        self.bench = bench
        self.random = random.Random(seed)

    def plant(self) -> None:
        """Fill the workspace."""
        for number in range(self.random.randrange(8)):
            path = self.bench.root / self.new_name()
            if not any(part.is_file() for part in path.parents) and not path.exists():
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(self.content())
                path.chmod(self.random.choice((0o644, 0o600, 0o755)))
            if number == 3:
                (self.bench.root / "link").symlink_to(self.random.choice(("a", "missing", "d")))

    def content(self) -> bytes:
        lines = self.random.choices(("one", "two", "drei", "", "\u00fc", "x" * 70), k=self.random.randrange(6))
        return "\n".join(lines).encode() + self.random.choice((b"", b"\n", b"\r\n"))

    def new_name(self) -> str:
        depth = self.random.choice((1, 1, 2, 3))
        return "/".join(self.random.choices("a b c d e".split(), k=depth))

    def name(self) -> str:
        """An existing path, mostly."""
        known = sorted(picture(self.bench.root))
        return self.random.choice(known) if known and self.random.random() < 0.8 else self.new_name()

    async def step(self) -> None:
        """Make one change, or fail to."""
        call, name = self.bench.call, self.name()
        match self.random.randrange(9):
            case 0 | 1:
                await call("write", path=self.new_name(), content=self.content().decode(), overwrite=True)
            case 2:
                await call("read", path=name)
                await call("edit", path=name, old_string="one", new_string="1", replace_all=True)
            case 3:
                await call("delete", path=name, recursive=self.random.random() < 0.6)
            case 4 | 5:
                await call("move", source=name, destination=self.new_name(), overwrite=self.random.random() < 0.5)
            case _:
                await call("bash", command=self.line())

    def line(self) -> str:
        """A line of one to three commands."""
        return "; ".join(self.command() for _ in range(self.random.randrange(1, 4)))

    def command(self) -> str:
        old, new = self.name(), self.new_name()
        choices = (
            f"printf '%s' text > {new}",
            f"echo more >> {old}",
            f"rm -rf {old}",
            f"mv {old} {new}",
            f"cp -r {old} {new}",
            f"mkdir -p {new}",
            f"chmod {self.random.choice(('600', '755', '700', '444'))} {old}",
            f"ln -sfn {new} {old}",
            f"sed -i s/o/0/ {old}",
            f"python3 -c \"open('{new}', 'wb').write(bytes(range(200)))\"",
        )
        return self.random.choice(choices)

    def interfere(self) -> str:
        """Change a file as another program does; its path, empty if there is none."""
        files = sorted(path for path, entry in picture(self.bench.root).items() if entry[0] == "file")
        if not files:
            return ""
        path = self.bench.root / self.random.choice(files)
        path.write_bytes(path.read_bytes() + b"by another program")
        return str(path)
