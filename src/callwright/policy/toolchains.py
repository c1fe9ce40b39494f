"""Finds project files that change what the tools of a language do, or that they run."""

import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import cast

from callwright.policy.git_folders import read_start
from callwright.policy.tool_names import words

RUST_PROGRAMS = words("cargo rustc rustfmt rustdoc rust-analyzer cargo-clippy cargo-fmt clippy-driver rust-gdb")
_CARGO_RUNS = re.compile(r"rustc|wrapper|runner|linker|credential|rustdoc|\[env\]|include|rustflags")


def find_rust_program(folder: str) -> str:
    """Return the toolchain or cargo setting in this folder or above that names a program; empty if there is none."""
    home = Path.home() / ".cargo"
    for start in (Path(folder), *Path(folder).parents):
        for name in ("rust-toolchain.toml", "rust-toolchain"):
            file = start / name
            if file.is_file() and _names_toolchain_path(read_start(file)):
                return f"a toolchain in {file}"
        for name in ("config.toml", "config"):
            file = start / ".cargo" / name
            if file.is_file() and file.parent != home and _CARGO_RUNS.search(read_start(file)):
                return f"a program in {file}"
    return ""


def _names_toolchain_path(text: str) -> bool:
    import tomllib  # few lines call such a program

    try:
        toolchain = tomllib.loads(text).get("toolchain")
    except tomllib.TOMLDecodeError:
        return "/" in text or "path" in text  # the old form holds only the name of a channel
    return not isinstance(toolchain, dict) or "path" in toolchain


_PROJECT_PROGRAMS = {
    "pnpm": (words("help --version -v"), (".pnpmfile.cjs", ".pnpmfile.mjs", "pnpmfile.js")),
    "uv": (words("--version -V version help self cache tool"), (".venv", "venv")),
    "poetry": (words("--version -V version help about"), (".venv",)),
    "brew": (frozenset[str](), ("Brewfile",)),
    "ansible-doc": (frozenset[str](), ("ansible.cfg",)),
    "ansible-config": (frozenset[str](), ("ansible.cfg",)),
}
"""Programs, the sub-commands with which they ignore the project, and what they run in it otherwise."""
FOLDER_DECIDES = frozenset((*RUST_PROGRAMS, *_PROJECT_PROGRAMS, "npm", "ruff"))
"""Programs for which the files of the folder they run in, or above, decide what they do."""


_NPM_SETTINGS = re.compile(
    r"^\s*(?:git|cache|logs-dir|timing|prefix|script-shell|shell|editor|browser|viewer|node-options|onload-script|"
    r"init-module|node-gyp|globalconfig|userconfig|tmp)(?=\s*(?:=|$))",
    re.MULTILINE | re.IGNORECASE,
)
"""Settings of npm that name a program, or a folder that every command writes to."""


def _find_npm_setting(folder: str) -> str:
    home = Path.home()
    for start in (Path(folder), *Path(folder).parents):
        file = start / ".npmrc"
        if start != home and file.is_file() and (found := _NPM_SETTINGS.search(read_start(file))):
            return f"{found[0].strip()} in {file}"
    return ""


def find_project_program(arguments: Sequence[str], folder: str) -> str:
    """Return the file of the project, or its virtual environment, that a package manager would run; else empty.

    Args:
        arguments: The words of the call, its program first.
        folder: Where it would run.
    """
    name = arguments[0].rpartition("/")[2]
    if name in RUST_PROGRAMS:
        return find_rust_program(folder)
    if name == "npm":
        return _find_npm_setting(folder)
    ignoring, files = _PROJECT_PROGRAMS.get(name, (frozenset[str](), ()))
    verb = next((word for word in arguments[1:] if word[:1] != "-"), arguments[1] if arguments[1:] else "")
    if verb in ignoring or (name == "brew" and verb != "bundle"):
        return ""
    for start in (Path(folder), *Path(folder).parents):
        for file in files:
            if (start / file).exists():
                return str(start / file)
    return ""


_RUFF_FILES = (".ruff.toml", "ruff.toml", "pyproject.toml")
_RUFF_CHANGES = ("fix", "fix-only", "extend")


def find_ruff_fixes(folder: str) -> str:
    """Return the setting with which `ruff check` would change files in this folder; empty if there is none.

    Ruff takes it from the nearest settings above the folder, else from those of the user.
    """
    for file in _list_ruff_files(folder):
        found = _read_ruff_settings(file)
        if found is not None:
            return f"{found} in {file}" if found else ""
    return ""


def _list_ruff_files(folder: str) -> Iterator[Path]:
    user = Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config") / "ruff"
    for start in (Path(folder), *Path(folder).parents, user):
        for name in _RUFF_FILES:
            if (start / name).is_file():
                yield start / name


def _read_ruff_settings(file: Path) -> str | None:
    """Return the setting of a file that changes files, an empty string, or None if the file is not about ruff."""
    import tomllib  # as above

    try:
        found: object = tomllib.loads(read_start(file))
    except tomllib.TOMLDecodeError:
        return "settings that cannot be parsed"
    for name in ("tool", "ruff") if file.name == "pyproject.toml" else ():
        found = cast("dict[str, object]", found).get(name) if isinstance(found, dict) else None
    if not isinstance(found, dict):
        return None
    settings = cast("dict[str, object]", found)
    # what another file adds to these settings is not followed
    return next((name for name in _RUFF_CHANGES if settings.get(name)), "")
