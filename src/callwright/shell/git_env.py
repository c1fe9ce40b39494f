"""Git settings, passed by environment, that keep read-only git commands from running programs a repository names."""

from collections.abc import Mapping

ALWAYS_SETTINGS = {
    "core.fsmonitor": "false",
    "core.pager": "cat",
    "core.askPass": "",
    "safe.bareRepository": "explicit",
    "protocol.ext.allow": "never",
    "log.showSignature": "false",
}
"""Settings that are safe for any git command."""
READ_ONLY_SETTINGS = {
    **ALWAYS_SETTINGS,
    "core.hooksPath": "/dev/null",
    "core.alternateRefsCommand": "",
    "submodule.recurse": "false",
}
"""Settings for lines that are proven read-only; they also turn hooks off."""


def git_environment(settings: Mapping[str, str], *, after: int = 0) -> dict[str, str]:
    """Return the variables that pass settings to every git process of a line.

    Args:
        settings: Git settings by name.
        after: How many settings the environment already passes this way; they are kept.
    """
    variables = {"GIT_CONFIG_COUNT": str(after + len(settings))}
    for place, (name, value) in enumerate(settings.items(), after):
        variables[f"GIT_CONFIG_KEY_{place}"] = name
        variables[f"GIT_CONFIG_VALUE_{place}"] = value
    return variables


READ_ONLY_VARIABLES = {
    "GIT_NO_LAZY_FETCH": "1",
    "RUFF_NO_CACHE": "true",
    "RUSTUP_AUTO_INSTALL": "0",
    "GOTOOLCHAIN": "local",
    "GOPROXY": "off",
    "GONOPROXY": "none",
    "CARGO_NET_OFFLINE": "true",
    "UV_OFFLINE": "1",
    "PIP_DISABLE_PIP_VERSION_CHECK": "1",
    "npm_config_update_notifier": "false",
}
"""Variables for lines that are proven read-only.

They keep git from fetching what a partial clone left out, ruff from writing a cache, Rust and Go from downloading
the version of themselves that a project names, and package managers from fetching packages or asking for newer versions
of themselves.
"""
SAFE_ENVIRONMENT = {
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_PAGER": "cat",
    "GIT_TERMINAL_PROMPT": "0",
    **READ_ONLY_VARIABLES,
    **git_environment(READ_ONLY_SETTINGS),
}
"""The environment a proven read-only line must run with; `GIT_OPTIONAL_LOCKS` keeps git from rewriting the index.

Programs configured to show differences or filter content cannot be turned off this way; a guard checks for them.
"""
