"""The environment commands run in: no pagers, no prompts, no code from variables, git's hooks into reading off."""

import os
from collections.abc import Mapping

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
    "TOOLWRIGHT": "1",
}
# settings with which a repository could run programs while it is only looked at
_GIT_SETTINGS = {
    "core.fsmonitor": "false",
    "core.pager": "cat",
    "core.askPass": "",
    "safe.bareRepository": "explicit",
    "protocol.ext.allow": "never",
    "log.showSignature": "false",
}


def command_environment(base: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the variables a command gets: those of `base` (ours by default), made safe for running unattended."""
    given = os.environ if base is None else base
    kept = {name: value for name, value in given.items() if name not in _DROPPED and not name.startswith(_FUNCTION)}
    return {**kept, **_PINNED, **_git_settings(kept)}


def _git_settings(given: Mapping[str, str]) -> dict[str, str]:
    # settings somebody already passes this way stay, ours come after them and win
    count = given.get("GIT_CONFIG_COUNT", "")
    first = int(count) if count.isdecimal() else 0
    variables = {"GIT_CONFIG_COUNT": str(first + len(_GIT_SETTINGS))}
    for place, (name, value) in enumerate(_GIT_SETTINGS.items(), first):
        variables[f"GIT_CONFIG_KEY_{place}"] = name
        variables[f"GIT_CONFIG_VALUE_{place}"] = value
    return variables
