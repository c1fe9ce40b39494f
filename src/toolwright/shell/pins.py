"""The environment that keeps a line proven read-only from running what a repository's settings name."""

_PINNED = {
    "core.fsmonitor": "false",
    "core.pager": "cat",
    "core.hooksPath": "/dev/null",
    "core.alternateRefsCommand": "",
    "diff.external": "",
    "safe.bareRepository": "explicit",
    "log.showSignature": "false",
    "protocol.ext.allow": "never",
    "submodule.recurse": "false",
}
SAFE_ENVIRONMENT = {
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_PAGER": "cat",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_CONFIG_COUNT": str(len(_PINNED)),
    **{f"GIT_CONFIG_KEY_{place}": key for place, key in enumerate(_PINNED)},
    **{f"GIT_CONFIG_VALUE_{place}": value for place, value in enumerate(_PINNED.values())},
}
"""Set these for a line that runs because it was proven read-only: a repository's settings then run nothing, and
looking does not rewrite the index."""
