"""The environment commands run in: no pagers, no prompts, no code from variables, git's hooks into reading off."""

import os
from collections.abc import Mapping

from callwright.shell.pins import ALWAYS, LOOKING, git_environment

# these make bash run or mean something else than the line that was judged
_DROPPED = frozenset(
    {
        "BASH_ENV",
        "ENV",
        "SHELLOPTS",
        "BASHOPTS",
        "PROMPT_COMMAND",
        "PS4",
        "CDPATH",
        "GLOBIGNORE",
        "IFS",
        "POSIXLY_CORRECT",
    }
    | {
        "GIT_EXTERNAL_DIFF",
        "GIT_DIR",
        "GIT_WORK_TREE",
        "GIT_INDEX_FILE",
        "GIT_CONFIG_PARAMETERS",
        "RIPGREP_CONFIG_PATH",
    }
    | {"LESSOPEN", "LESSCLOSE", "OLDPWD"}
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


def command_environment(base: Mapping[str, str] | None = None, *, looking: bool = False) -> dict[str, str]:
    """Return the variables a command gets: those of `base` (ours by default), made safe for running unattended.

    A line that was proven to be `looking` only gets git's hooks switched off as well.
    """
    given = os.environ if base is None else base
    kept = {name: value for name, value in given.items() if name not in _DROPPED and not name.startswith(_FUNCTION)}
    count = kept.get("GIT_CONFIG_COUNT", "")
    after = int(count) if count.isdecimal() else 0  # what somebody already passes stays, ours comes after and wins
    return {**kept, **_PINNED, **git_environment(LOOKING if looking else ALWAYS, after=after)}
