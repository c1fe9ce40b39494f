"""The texts given to the model: the system prompt, AGENTS.md instructions, and the parts of a user prompt."""

import platform
import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import date
from functools import partial
from pathlib import Path

from callwright.agent import default_system_prompt
from callwright.agent.agent import Prompt
from callwright.app.locations import Locations
from callwright.app.run_context import Hidden
from callwright.app.settings import Settings
from callwright.core.content import Part, Text
from callwright.core.escaping import remove_hidden
from callwright.skills import Skills, list_skills
from callwright.system.paths import expand_home, resolve_links, trusted_owners
from callwright.system.sensitive_paths import comparable, is_secret

_NAMES = ("AGENTS.override.md", "AGENTS.md", "CLAUDE.md", ".claude/CLAUDE.md")
_LOCAL_NAME = "CLAUDE.local.md"
"""Beside the others: what one user adds for one project."""
_MAX_BYTES = 32 * 1024
_DEEPEST = 4
_MOST_IMPORTED = 60
_CODE = re.compile(r"^(```|~~~).*?^\1|`[^`\n]*`", re.MULTILINE | re.DOTALL)
_IMPORT = re.compile(r"(?:^|(?<=\s))@([^\s@`]+\.(?:md|markdown|txt))\b")


@dataclass(frozen=True, slots=True)
class UserPrompt:
    """A prompt in parts, joined only when the message to the model is composed.

    Skill names, arguments and `@file` mentions are read from `text` alone. The parts stay separate values because a
    marker inside one string could also be typed by the user, who would then lose the text after it.

    Args:
        text: What the user typed.
        stdin: What was piped into the command.
        hook_notes: Texts that hooks add for the model.
        attachments: Content sent along after the text, such as files the prompt mentions.
        verbatim: Whether the text is sent as written, without reading skill names and `@file` in it.
    """

    text: str
    stdin: str = ""
    hook_notes: tuple[str, ...] = ()
    attachments: tuple[Part, ...] = ()
    verbatim: bool = False

    @classmethod
    def of(cls, prompt: "Prompt | UserPrompt") -> "UserPrompt":
        """Take a text, or the leading text of several parts, as typed; what follows it is attached."""
        if isinstance(prompt, UserPrompt):
            return prompt
        if isinstance(prompt, str):
            return cls(prompt)
        first = prompt[0] if prompt else None
        return cls(first.text, attachments=prompt[1:]) if isinstance(first, Text) else cls("", attachments=prompt)

    @property
    def stdin_block(self) -> str:
        """The piped text between its tags, as it follows the typed text; empty if nothing was piped."""
        return f"\n\n<stdin>\n{self.stdin}\n</stdin>" if self.stdin else ""

    @property
    def submitted(self) -> str:
        """The typed and the piped text, which UserPromptSubmit hooks receive."""
        return self.text + self.stdin_block

    def compose(self, expanded: str | None = None) -> Prompt:
        """Join the parts into what the agent is given.

        Args:
            expanded: Text that replaces the typed and piped parts, as when skills were called.
        """
        body = self.submitted if expanded is None else expanded
        text = "\n\n".join(filter(None, [body, *(f"[hook] {note}" for note in self.hook_notes)]))
        if not self.attachments:
            return text
        return (Text(text), *self.attachments) if text else self.attachments


def instructions_for(locations: Locations, hidden: Hidden | None = None) -> str:
    """Return the instructions of the user and the project, general ones first, cut at a total of 32 KiB.

    Args:
        locations: The working folder and the project.
        hidden: Tells which files must not be read, as those that rules hide.
    """
    texts: list[str] = []
    room = _MAX_BYTES
    for file, _, _ in instruction_files(locations, hidden):
        text = remove_hidden(_read_text(file, room)).strip()
        if text:
            texts.append(f"Instructions from {file}:\n\n{text}")
            # counted in bytes, because a limit in characters would let other scripts take four times as much
            room -= len(text.encode())
    return "\n\n".join(texts)


def instruction_files(locations: Locations, hidden: Hidden | None = None) -> list[tuple[Path, str, str]]:
    """Return the instruction files in order, each with its owner (User, Project) and the reason it is loaded."""
    found: dict[Path, tuple[Path, str, str]] = {}
    for file in _files(locations):
        kind = "User" if file.parent in (locations.home, locations.claude) else "Project"
        if kind == "Project" and _is_withheld(file.resolve(), hidden):
            continue  # a link in the repository may lead to a file of the user's
        withheld = partial(_is_withheld, hidden=hidden) if kind == "Project" else None
        found.setdefault(file.resolve(), (file, kind, "session_start"))
        root = (file.parent if kind == "User" else locations.project).resolve()
        for imported in _imports(file, root, withheld):
            found.setdefault(imported, (imported, kind, "include"))
    return list(found.values())


def unread_instructions(locations: Locations, hidden: Hidden | None = None) -> Iterator[str]:
    """Yield a text for each file that a user may take for instructions and that is not read, or not wholly."""
    files = instruction_files(locations, hidden)
    read = {file.resolve() for file, _, _ in files}
    for folder, file in _project_files(locations):
        if not file.resolve().is_relative_to(locations.project):
            yield f"{file} is not read: it is a link out of the project"
        other = folder / "CLAUDE.md"
        if file.name.startswith("AGENTS") and other.resolve() not in read and _says_more(other, file):
            yield f"{other} is not read, because there is {file}; write @CLAUDE.md there to import it"
    for folder in dict.fromkeys((locations.claude / "rules", locations.project / ".claude" / "rules")):
        if folder.is_dir():
            yield f"{folder} is not read; import the rules with @ in AGENTS.md or CLAUDE.md"
    if (size := sum(len(_read_bytes(file).strip()) for file, _, _ in files)) > _MAX_BYTES:
        yield f"the instructions have {size} bytes or more; the model gets the first {_MAX_BYTES}"
    for folder, name in _instruction_folders(locations):
        yield f"{folder / name} is not read: it is a folder; write the instructions in a file of this name"
    for file, kind, _ in files:
        text = _read_text(file)
        if not _is_utf8(_read_bytes(file)[:_MAX_BYTES]):
            yield f"{file} is not UTF-8 text, and the model does not get some of its characters; save it as UTF-8"
        if remove_hidden(text) != text:
            yield f"{file} has invisible characters, which the model does not get; remove them"
        own = next(
            (folder for folder in (locations.home, locations.claude) if file.is_relative_to(folder)), file.parent
        )
        root = (locations.project if kind == "Project" else own).resolve()
        for name, target in _mentioned_files(file):
            if not target.is_relative_to(root):
                yield f"{file}: @{name} is not read: it lies outside of {root}"


def _says_more(file: Path, read: Path) -> bool:
    """Whether a file loses anything by not being read: it is no copy, and says more than "see AGENTS.md"."""
    text = _read_bytes(file).strip()
    return text not in (b"", _read_bytes(read).strip()) and b"AGENTS.md" not in text


def _files(locations: Locations) -> Iterator[Path]:
    own = (locations.home / "AGENTS.md", locations.claude / "CLAUDE.md")
    yield from [file for file in own if file.is_file()][:1]
    for folder, file in _project_files(locations):
        if not file.resolve().is_relative_to(locations.project):
            continue  # a link out of the repository could expose any file of the user
        if folder == locations.cwd or file.lstat().st_uid in trusted_owners(locations.cwd):
            yield file


def _project_files(locations: Locations) -> Iterator[tuple[Path, Path]]:
    """Yield the folders of the project from its root on, with each file that may hold instructions."""
    # outside of a repository the project is the working folder itself
    inner = locations.cwd.relative_to(locations.project) if locations.cwd.is_relative_to(locations.project) else Path()
    deeper = (locations.project.joinpath(*inner.parts[:depth]) for depth in range(1, len(inner.parts) + 1))
    for folder in (locations.project, *deeper):
        found = next((folder / name for name in _NAMES if (folder / name).is_file()), None)
        for file in (found, folder / _LOCAL_NAME):
            if file is not None and file.is_file():
                yield folder, file


def _instruction_folders(locations: Locations) -> Iterator[tuple[Path, str]]:
    for folder in dict.fromkeys((locations.home, locations.project, locations.cwd)):
        yield from ((folder, name) for name in _NAMES if (folder / name).is_dir())


def _is_utf8(data: bytes) -> bool:
    try:
        data.decode("utf-8")
    except UnicodeDecodeError as error:
        # the limit may have cut a character
        return error.reason == "unexpected end of data" and len(data) == _MAX_BYTES
    return True


def _imports(file: Path, root: Path, withheld: Hidden | None) -> list[Path]:
    """Return the text files that a file imports with @, recursively; those outside its root or withheld are ignored."""
    found: dict[Path, None] = {}
    level = [file]
    for _ in range(_DEEPEST):  # breadth first, each once: files that import each other would never end
        named = [target for each in level for _, target in _mentioned_files(each) if target.is_relative_to(root)]
        level = [target for target in named if target not in found and (withheld is None or not withheld(target))]
        found |= dict.fromkeys(level[: _MOST_IMPORTED - len(found)])
        level = [target for target in dict.fromkeys(level) if target in found]
    return list(found)


def _is_withheld(file: Path, hidden: Hidden | None) -> bool:
    """Whether the model could not read a file unasked: a repository may name it, or lead to it."""
    return is_secret(comparable(str(file))) or (hidden is not None and hidden(file))


def _mentioned_files(file: Path) -> Iterator[tuple[str, Path]]:
    """Yield the text files that a file imports with @, as it names them and where they are."""
    # examples in code blocks mention files without meaning them
    text = _CODE.sub("", _read_bytes(file).decode("utf-8", errors="ignore"))
    for name in list(dict.fromkeys(_IMPORT.findall(text)))[:_MOST_IMPORTED]:
        with suppress(OSError, ValueError):  # too long, or with a NUL: there is no such file
            target = resolve_links(file.parent / expand_home(name))
            if target.is_file():
                yield name, target


def _read_text(file: Path, most_bytes: int = _MAX_BYTES) -> str:
    text = _read_bytes(file)[:most_bytes].decode("utf-8", errors="ignore").removeprefix("\ufeff")
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _read_bytes(file: Path) -> bytes:
    try:
        with file.open("rb") as stream:
            return stream.read(_MAX_BYTES + 1)
    except OSError:
        return b""


INIT_PROMPT = """\
Write the file AGENTS.md at the root of this project: what an agent must know to work here. Look at the layout, the \
build files, the tests and an existing README first. Write: what the project is, in two sentences; the commands to \
build, test, lint and run one test; the layout of the folders; conventions that the code follows and a newcomer would \
not guess. Under 60 lines, facts only, nothing that every project has. If AGENTS.md exists, improve it."""
_ROLE = """\
You are callwright, a coding agent in a terminal. You work on the user's files in the working folder, with the tools \
you are given. Read before you change, change as little as the task needs, follow the style you find, and run the \
tests that prove it works. The user may have to approve your calls: describe briefly what a command is for. Answer \
in short Markdown."""

_COMPACT_ROLE = """\
You are a coding agent in a terminal. You work on the user's files in the working folder with your tools. You do not \
know what the files contain: find it out with a tool instead of guessing, and do the work with tools instead of \
describing it. Read a file before you change it, and change as little as the task needs. When a call fails, read what \
it says and change something before you try again. When it is done, or you have what was asked for, answer in a few \
words."""
"""For small models, which follow a few short sentences better than many."""


def system_prompt(
    locations: Locations,
    settings: Settings,
    skills: Skills,
    *,
    more: str = "",
    compact: bool = False,
    hidden: Hidden | None = None,
) -> str:
    """Return the system prompt: role, environment, instructions and skills, in this order.

    Args:
        locations: The working folder and the project.
        settings: May add instructions.
        skills: Listed for the model.
        more: Text to add at the end.
        compact: Whether the model is small, and has the compact tool set.
        hidden: Tells which files must not be read, as those that rules hide.
    """
    environment = "\n".join(
        [
            f"Working folder: {locations.cwd}",
            f"Repository: {locations.project if (locations.project / '.git').exists() else 'none'}",
            f"System: {platform.system()} {platform.machine()}",
            f"Date: {date.today().isoformat()}",
        ]
    )
    offered = list_skills(skills)
    parts = [
        _COMPACT_ROLE if compact else default_system_prompt(_ROLE),
        environment,
        instructions_for(locations, hidden),
        settings.last("instructions") or "",
        f"Skills (load one with the tool skill when it fits):\n{offered}" if offered else "",
        more,
    ]
    return "\n\n".join(part for part in parts if part)
