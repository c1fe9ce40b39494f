"""The environment of commands: no pagers, no prompts, no code from variables, caches where a wall lets them be."""

from collections.abc import Mapping

from callwright.core.access import Confinement
from callwright.shell.git_env import ALWAYS_SETTINGS, READ_ONLY_SETTINGS, READ_ONLY_VARIABLES, git_environment
from callwright.system.sandbox.wall import GIT_ATTRIBUTES_PLACE, SHARED_CACHES, git_attributes_file

# with these bash could run something else than the line that the policies judged
_DROPPED = frozenset(
    "BASH_ENV ENV SHELLOPTS BASHOPTS PROMPT_COMMAND PS4 CDPATH GLOBIGNORE IFS POSIXLY_CORRECT"
    " GIT_EXTERNAL_DIFF GIT_DIR GIT_WORK_TREE GIT_INDEX_FILE GIT_CONFIG_PARAMETERS RIPGREP_CONFIG_PATH"
    " LESSOPEN LESSCLOSE OLDPWD".split()
)
_FUNCTION = "BASH_FUNC_"
_PINNED = {
    "PAGER": "cat",
    "MANPAGER": "cat",
    "GIT_PAGER": "cat",
    "SYSTEMD_PAGER": "cat",
    "GIT_EDITOR": "true",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_OPTIONAL_LOCKS": "0",
    "TERM": "dumb",
    "CALLWRIGHT": "1",
}


def command_environment(base: Mapping[str, str], *, looking: bool = False) -> dict[str, str]:
    """Return the environment of a command, made safe for unattended runs.

    Args:
        base: The variables to start from.
        looking: The line is proven to be read-only, so git's hooks are switched off too.
    """
    kept = {name: value for name, value in base.items() if name not in _DROPPED and not name.startswith(_FUNCTION)}
    # settings passed already stay; ours come after them and win
    settings = git_environment(READ_ONLY_SETTINGS if looking else ALWAYS_SETTINGS, after=_count_settings(kept))
    return {**kept, **_PINNED, **(READ_ONLY_VARIABLES if looking else {}), **settings}


_CACHES = {
    "PIP_CACHE_DIR": "pip",
    "UV_CACHE_DIR": "uv",
    "npm_config_cache": "npm",
    "YARN_CACHE_FOLDER": "yarn",
    "GOCACHE": "go-build",
}
"""Caches outside the workspace, for every walled command."""
_READ_ONLY_CACHES = {
    **_CACHES,
    "XDG_CACHE_HOME": "xdg",
    "PYTHONPYCACHEPREFIX": "pycache",
    "MYPY_CACHE_DIR": "mypy",
    "RUFF_CACHE_DIR": "ruff",
    "CARGO_TARGET_DIR": "cargo-target",
    "COVERAGE_FILE": "coverage",
    "HYPOTHESIS_STORAGE_DIRECTORY": "hypothesis",
    "JEST_CACHE_DIRECTORY": "jest",
}
"""Caches that programs keep in the workspace too, for commands that cannot write there."""


_WALLED_GIT = {"core.checkStat": "minimal", "core.trustctime": "false"}
"""Git compares size and time of a file, so it takes a masked secret for unchanged."""


def hide_committed_secrets(base: Mapping[str, str], *, mounted: bool = False) -> dict[str, str]:
    """Return the variables with which git shows that a committed secret differs, but not its content.

    Args:
        base: The command's environment.
        mounted: The command finds the attributes where bubblewrap mounts them.
    """
    place = GIT_ATTRIBUTES_PLACE if mounted else git_attributes_file()
    return git_environment({"core.attributesFile": place}, after=_count_settings(base))


def _count_settings(environment: Mapping[str, str]) -> int:
    count = environment.get("GIT_CONFIG_COUNT", "")
    return int(count) if count.isdecimal() else 0


def walled_environment(base: Mapping[str, str], temporary: str, confinement: Confinement) -> dict[str, str]:
    """Return the variables that send temporary files and caches to where a walled command can write.

    Args:
        base: The command's environment.
        temporary: The private temporary folder as the command sees it.
        confinement: What the command may use.
    """
    writes = Confinement.WORKSPACE in confinement
    caches = _CACHES if writes else _READ_ONLY_CACHES
    # a line that ran unasked must not prepare what an approved command takes from its cache
    place = SHARED_CACHES if writes else ".cache-of-readers"
    found = {name: f"{temporary}/{place}/{folder}" for name, folder in caches.items()}
    found |= {"TMPDIR": temporary, "TMP": temporary, "TEMP": temporary}
    found |= git_environment(_WALLED_GIT, after=_count_settings(base))
    if not writes:
        given = base.get("PYTEST_ADDOPTS", "")
        found["PYTEST_ADDOPTS"] = f"{given} -p no:cacheprovider".strip()
        found["npm_config_update_notifier"] = "false"
    return found
