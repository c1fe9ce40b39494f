"""The git settings that keep a look at a repository from running what its own settings name."""

from collections.abc import Mapping

ALWAYS = {
    "core.fsmonitor": "false",
    "core.pager": "cat",
    "core.askPass": "",
    "safe.bareRepository": "explicit",
    "protocol.ext.allow": "never",
    "log.showSignature": "false",
}
"""Harmless to whatever a person asks git to do."""
LOOKING = {
    **ALWAYS,
    "core.hooksPath": "/dev/null",
    "core.alternateRefsCommand": "",
    "submodule.recurse": "false",
}
"""For lines that were proven to only look: hooks have no business in them."""


def git_environment(settings: Mapping[str, str], *, after: int = 0) -> dict[str, str]:
    """Variables that pass settings to every git a line starts; `after` counts those already passed this way."""
    variables = {"GIT_CONFIG_COUNT": str(after + len(settings))}
    for place, (name, value) in enumerate(settings.items(), after):
        variables[f"GIT_CONFIG_KEY_{place}"] = name
        variables[f"GIT_CONFIG_VALUE_{place}"] = value
    return variables


SAFE_ENVIRONMENT = {
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_PAGER": "cat",
    "GIT_TERMINAL_PROMPT": "0",
    **git_environment(LOOKING),
}
"""What a line that runs because it was proven read-only relies on: looking does not rewrite the index either.

Programs that show differences or filter content cannot be switched off this way; a guard looks for them.
"""
