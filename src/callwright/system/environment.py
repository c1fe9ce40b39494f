"""The environment that commands, hooks and servers are started with: no credentials, no programs of the folder."""

import os
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import lru_cache

_SECRET_NAME = re.compile(
    r"""
    (?:^|_)(?:KEY|PASS|PASSWD|PWD|PW|AUTH|CREDS?|DSN|PAT|JWT|NETRC|LICENSE|SIGNING)S?\d*(?:$|_)   # whole words
    |(?:API|ACCESS|PRIVATE|SECRET|AUTH|ENC|ENCRYPTION|MASTER|DEPLOY|SIGNING)KEYS?\d*(?:$|_)       # APIKEY, AUTHKEY
    |(?:TOKEN|SECRET|PASSPHRASE|CREDENTIAL|COOKIE|BEARER|WEBHOOK)S?\d*(?:$|_)                     # also AUTHTOKEN
    |PASSWORD|CONNECTION_?STRING|CONN_?STR(?:$|_)
    """,
    re.VERBOSE,
)
_SECRET_PREFIXES = ("AWS_", "AZURE_", "ARM_CLIENT_", "ALICLOUD_", "TF_VAR_", "VAULT_", "OP_SESSION_", "BW_")
_NOT_SECRET = frozenset("PWD AWS_REGION AWS_DEFAULT_REGION AWS_CA_BUNDLE AWS_PAGER AZURE_CONFIG_DIR".split())
_SECRET_VALUE = re.compile(
    r"""
    \A\s*-----BEGIN[ ]
    |://[^/\s:@]*:[^/\s@]+@                                     # a password inside an address
    |\A(?:sk-|sk_live_|rk_live_|gh[pousr]_|github_pat_|glpat-|xox[abeprs]-|AKIA|ASIA|AIza|ya29\.|npm_|pypi-|hf_|eyJ[\w-]{8,}\.)
    |(?:Password|Pwd|AccountKey|SharedAccessKey)=[^;]+          # a connection string
    """,
    re.VERBOSE,
)


def is_credential(name: str, value: str = "") -> bool:
    """Return whether an environment variable looks like a credential, by its name or its value."""
    upper = name.upper().replace("-", "_").replace(".", "_")
    if _SECRET_VALUE.search(value):
        return True
    if upper in _NOT_SECRET:
        return False
    return upper.startswith(_SECRET_PREFIXES) or _SECRET_NAME.search(upper) is not None


def without_credentials(environment: Mapping[str, str] | None = None, *, passed: Iterable[str] = ()) -> dict[str, str]:
    """Return an environment without the variables that look like credentials.

    Args:
        environment: The variables; those of this process by default.
        passed: Names to keep nevertheless; `*` stands for any characters.
    """
    given = os.environ if environment is None else environment
    kept_names = tuple(passed)
    return {
        name: value
        for name, value in given.items()
        if not is_credential(name, value) or any(fnmatchcase(name, pattern) for pattern in kept_names)
    }


def safe_search_path(path: str) -> str:
    """Return a `PATH` without empty and relative entries, which would find programs in the working folder."""
    return os.pathsep.join(folder for folder in path.split(os.pathsep) if os.path.isabs(folder))  # noqa: PTH117 - text


def program_folders(roots: Sequence[str]) -> tuple[str, ...]:
    """Return the folders inside a workspace from which programs are started by their plain name.

    Those are entries of PATH, and the environment of the Python that runs this. Who writes there decides what hooks,
    MCP servers and the user's own shell start next.

    Args:
        roots: The folders of the workspace.
    """
    return _program_folders(tuple(roots), os.environ.get("PATH", ""), sys.prefix)


@lru_cache(maxsize=8)
def _program_folders(roots: tuple[str, ...], path: str, prefix: str) -> tuple[str, ...]:
    named = [prefix, *safe_search_path(path).split(os.pathsep)]
    places = {place for folder in named if folder for place in (os.path.normpath(folder), os.path.realpath(folder))}
    return tuple(sorted(place for place in places if any(place.startswith(root.rstrip("/") + "/") for root in roots)))
