"""Finds project files that change what the tools of a language do, or that they run."""

import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import cast

from callwright.core.json import read_object
from callwright.policy.git_folders import read_settings
from callwright.policy.tool_names import words

RUST_PROGRAMS = words("cargo rustc rustfmt rustdoc rust-analyzer cargo-clippy cargo-fmt clippy-driver rust-gdb")
_CARGO_HARMLESS = {
    "build": words("jobs target target-dir build-dir artifact-dir incremental dep-info-basedir pipelining warnings"),
    "registry": words("default index token protocol"),
    "registries": words("index token protocol"),
    "profile": frozenset("*"),
    **dict.fromkeys(
        words("net http term source cargo-new install patch paths unstable future-incompat-report cache resolver"),
        frozenset("*"),
    ),
}
"""Settings of cargo that name no program, by table; in a table with * any, but for those below."""
_CARGO_RUNS = words("rustflags rustdocflags codegen-backend linker runner credential-provider credential-process")
_CARGO_READS = words("tree metadata pkgid locate-project read-manifest verify-project version help search info owner")
_CHANNEL = re.compile(r"[\w.+-]+")


def _folders_above(folder: str) -> tuple[Path, ...]:
    """Return a folder and those above it, in which tools look for their settings."""
    return (Path(folder), *Path(folder).parents)


def _files_above(folder: str, *names: str, home: bool = True) -> Iterator[Path]:
    """Yield the files of these names in a folder and above it; without `home`, not those in the user's home."""
    left_out = None if home else Path.home().resolve()
    for start in _folders_above(folder):
        for name in names:
            if (start / name).is_file() and start.resolve() != left_out:
                yield start / name


def find_rust_program(folder: str, verb: str = "") -> str:
    """Return the toolchain or cargo setting in this folder or above that names a program; empty if there is none.

    Args:
        folder: Where it would run.
        verb: The sub-command, which an alias may run something for.
    """
    home = Path.home().resolve() / ".cargo"
    for start in _folders_above(folder):
        for name in ("rust-toolchain.toml", "rust-toolchain"):
            file = start / name
            if file.is_file() and _names_toolchain_path(read_settings(file)):
                return f"a toolchain in {file}"
        for name in ("config.toml", "config"):
            file = start / ".cargo" / name
            settings = read_settings(file) if file.is_file() and file.parent.resolve() != home else ""
            if found := _find_cargo_setting(settings, verb):
                return f"{found} in {file}"
        if (start / "target" / ".rustc_info.json").is_symlink():  # cargo writes what it asked the compiler through it
            return f"a link in {start / 'target'}"
    return ""


def _parse_toml(text: str) -> dict[str, object] | None:
    import tomllib  # few lines call such a program

    try:
        return tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError):
        return None


def _names_toolchain_path(text: str) -> bool:
    settings = _parse_toml(text)
    if settings is None:
        return not _CHANNEL.fullmatch(text.strip())  # the old form holds only the name of a channel
    toolchain = settings.get("toolchain")
    if not isinstance(toolchain, dict) or "path" in toolchain:
        return True
    return "/" in str(cast("dict[str, object]", toolchain).get("channel", ""))


def _find_cargo_setting(text: str, verb: str) -> str:
    """Return the setting of cargo that is not known to be harmless; empty if there is none."""
    settings = _parse_toml(text)
    if settings is None:
        return "settings that cannot be parsed"
    for table, value in settings.items():
        known = {*_CARGO_READS, verb} if table == "alias" else _CARGO_HARMLESS.get(table)
        if known is None:
            return table
        keys = list(_list_keys(value, skip=table == "registries"))
        for key in keys:
            harmless = key not in known if table == "alias" else key in known or "*" in known
            if not harmless or key in _CARGO_RUNS:
                return f"{table}.{key}"
    return ""


def _list_keys(value: object, *, skip: bool = False) -> Iterator[str]:
    """Yield the keys of a table and of those in it; the names of registries, which stand above them, are left out."""
    for key, inner in cast("dict[str, object]", value).items() if isinstance(value, dict) else ():
        if not skip:
            yield key
        yield from _list_keys(inner)


_PROJECT_PROGRAMS = {
    "pnpm": (words("help --version -v"), (".pnpmfile.cjs", ".pnpmfile.mjs", "pnpmfile.js", "package.json5")),
    "uv": (words("--version -V version help self cache tool"), (".venv", "venv")),
    "poetry": (words("--version -V version help about"), (".venv",)),
    "brew": (frozenset[str](), ("Brewfile",)),
    "go": (words("version env doc help"), (".hg",)),  # hg runs the extensions that a repository names
    "ansible-doc": (frozenset[str](), ("ansible.cfg",)),
    "ansible-config": (frozenset[str](), ("ansible.cfg",)),
    "golangci-lint": (
        frozenset[str](),
        (".golangci.yml", ".golangci.yaml", ".golangci.toml", ".golangci.json"),
    ),
}
"""Programs, the sub-commands with which they ignore the project, and what they run in it otherwise."""
_FOLDER_DECIDES = frozenset((*RUST_PROGRAMS, *_PROJECT_PROGRAMS, "npm", "packer", "ruff"))


def folder_decides(name: str) -> bool:
    """Whether the files of the folder a program runs in, or above, decide what it does."""
    return name in _FOLDER_DECIDES or _is_shim(name)


_NPM_SETTINGS = words(
    "git cache logs-dir timing prefix script-shell shell editor browser viewer node-options onload-script init-module"
    " node-gyp globalconfig userconfig tmp"
)
"""Settings of npm that name a program, or a folder that every command writes to."""
_PNPM_SETTINGS = _NPM_SETTINGS | {"pnpmfile", "global-pnpmfile", "use-node-version"}
_NPM_SPACES = " \t\v\f\ufeff\xa0"
_PNPM_RUNS = re.compile(r"pnpm-?file|config-?dependencies", re.IGNORECASE)
_ESCAPES = {"package.json": "\\u", "package.yaml": "\\", "pnpm-workspace.yaml": "\\"}
"""Files with settings of pnpm, and what could spell the name of a setting in another way."""


def _find_npm_setting(folder: str, names: frozenset[str]) -> str:
    for file in _files_above(folder, ".npmrc", home=False):
        for line in re.split(r"[\r\n]+", read_settings(file)):
            if found := _read_npm_key(line, names):
                return f"{found} in {file}"
    return ""


def _read_npm_key(line: str, names: frozenset[str]) -> str:
    """Return the key of a line that is among the names, or that may become one of them; else an empty string."""
    written = line.strip().strip(_NPM_SPACES).partition("=")[0].strip().strip(_NPM_SPACES)
    if not written or written[0] in ";#":
        return ""
    key = written[1:-1] if len(written) > 1 and written[0] == written[-1] and written[0] in "\"'" else written
    if any(mark in key for mark in "\"'\\;#$"):
        return f"{written}, a key that cannot be checked,"
    return key if key.removesuffix("[]").strip().lower() in names else ""


def _find_pnpm_setting(folder: str) -> str:
    for file in _files_above(folder, *_ESCAPES):
        if _PNPM_RUNS.search(text := read_settings(file)) or _ESCAPES[file.name] in text:
            return f"settings in {file}"
    return _find_npm_setting(folder, _PNPM_SETTINGS)


_PACKAGE_MANAGER = re.compile(r"\w+@\d[\w.+-]*")


def _find_other_pnpm(folder: str) -> str:
    """Return the file with which a project names the pnpm that corepack or pnpm itself fetches and runs; else empty.

    A released version is the one of the user's registry, unless the project names another.
    """
    import json  # few lines call pnpm

    named = ""
    for start in _folders_above(folder):
        file = start / "package.json"
        try:
            settings: object = json.loads(read_settings(file)) if file.is_file() else {}
        except (ValueError, RecursionError):
            return str(file)
        found = read_object(settings)
        version = found.get("packageManager")
        if version is not None and not (isinstance(version, str) and _PACKAGE_MANAGER.fullmatch(version)):
            return str(file)
        named = named or (str(file) if version is not None or "devEngines" in found else "")
        if (start / ".corepack.env").exists():
            return str(start / ".corepack.env")
    return named if named and _names_registry(folder) else ""


def _names_registry(folder: str) -> bool:
    files = _files_above(folder, ".npmrc", "pnpm-workspace.yaml", home=False)
    return any("registr" in read_settings(file).lower() for file in files)


_POETRY_HARMLESS = words("installer solver keyring requests publisher repositories http-basic pypi-token certificates")
_POETRY_ENVIRONMENT = words("create in-project options prompt prefer-active-python use-poetry-python")


def _find_poetry_setting(folder: str) -> str:
    """Return the setting of poetry that may lead to an interpreter in the project; empty if there is none."""
    for file in _files_above(folder, "poetry.toml"):
        settings = _parse_toml(read_settings(file))
        if settings is None:
            return f"settings that cannot be parsed in {file}"
        for table, value in settings.items():
            inner = cast("dict[str, object]", value) if isinstance(value, dict) else {"": value}
            if table in _POETRY_HARMLESS or (table == "virtualenvs" and _POETRY_ENVIRONMENT.issuperset(inner)):
                continue
            return f"{table} in {file}"
    return ""


_PATH_VERSION = re.compile(r"^[^#\n]*\bpath:", re.MULTILINE)


def _is_shim(name: str) -> bool:
    """Whether asdf, mise or the like starts a program, in the version that the folder asks for."""
    path = os.environ.get("PATH", "")
    if not name or "shims" not in path:  # asked about every command
        return False
    shims = [part for part in path.split(os.pathsep) if part.rstrip("/").endswith("/shims")]
    return any(os.path.lexists(f"{part}/{name}") for part in shims)


def _find_path_version(folder: str) -> str:
    """Return the file that gives the path of a program instead of its version; empty if there is none."""
    files = _files_above(folder, ".tool-versions", home=False)
    return next((str(file) for file in files if _PATH_VERSION.search(read_settings(file))), "")


_PYTHON_VERSION = re.compile(r"(?:cpython|pypy|graalpy|python)?[@-]?\d+(?:\.\d+){0,2}(?:t|(?:a|b|rc)\d+)?")


def _find_python_path(folder: str) -> str:
    """Return the file that may name an interpreter by its path, which uv would run to ask for its version."""
    for file in _files_above(folder, ".python-version", ".python-versions"):
        lines = [line.strip() for line in read_settings(file).splitlines()]
        if not all(_PYTHON_VERSION.fullmatch(line) for line in lines if line and line[0] != "#"):
            return str(file)
    return ""


def _find_above(folder: str, *names: str) -> str:
    """Return the nearest path of one of these names, a file or a folder; empty if there is none."""
    paths = (start / name for start in _folders_above(folder) for name in names)
    return next((str(path) for path in paths if path.exists()), "")


def _find_packer_plugin(folder: str) -> str:
    """Return the plugin that packer would start in this folder, whatever the sub-command; empty if there is none."""
    plugins = (file for pattern in ("packer-*-*", "*/*/*/packer-plugin-*") for file in Path(folder).glob(pattern))
    return next((str(file) for file in plugins if not file.is_dir()), "")


def find_project_program(arguments: Sequence[str], folder: str) -> str:
    """Return the file of the project, or its virtual environment, that a package manager would run; else empty.

    Args:
        arguments: The words of the call, its program first.
        folder: Where it would run.
    """
    name = arguments[0].rpartition("/")[2]
    if _is_shim(name) and (versions := _find_path_version(folder)):
        return versions
    verb = next((word for word in arguments[1:] if word[:1] != "-"), arguments[1] if arguments[1:] else "")
    if name in RUST_PROGRAMS:
        return find_rust_program(folder, verb)
    if name == "npm":
        return _find_npm_setting(folder, _NPM_SETTINGS)
    if name == "packer":
        return _find_packer_plugin(folder)
    ignoring, files = _PROJECT_PROGRAMS.get(name, (frozenset[str](), ()))
    if name == "poetry" and (plugins := _find_above(folder, ".poetry")):
        return plugins  # whatever the sub-command
    if name == "pnpm" and (other := _find_other_pnpm(folder)):
        return other  # as above
    if verb in ignoring or (name == "brew" and verb != "bundle"):
        return ""
    if found := _find_above(folder, *files):
        return found
    if name == "pnpm":
        return _find_pnpm_setting(folder)
    if name == "poetry":
        return _find_poetry_setting(folder)
    return _find_python_path(folder) if name == "uv" else ""


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
    yield from _files_above(folder, *_RUFF_FILES)
    yield from (user / name for name in _RUFF_FILES if (user / name).is_file())


def _read_ruff_settings(file: Path) -> str | None:
    """Return the setting of a file that changes files, an empty string, or None if the file is not about ruff."""
    parsed = _parse_toml(read_settings(file))
    if parsed is None:
        return "settings that cannot be parsed"
    found: object = cast("object", parsed)
    for name in ("tool", "ruff") if file.name == "pyproject.toml" else ():
        found = read_object(found).get(name)
    if not isinstance(found, dict):
        return None
    settings = cast("dict[str, object]", found)
    # what another file adds to these settings is not followed
    return next((name for name in _RUFF_CHANGES if settings.get(name)), "")
