"""Names that are worth a question wherever they turn up: what configures other programs, what holds secrets.

Names are compared without case and in composed Unicode, because many file systems do so.
"""

import unicodedata
from collections.abc import Sequence
from fnmatch import fnmatchcase

from toolwright.policy.names import words

PROTECTED_FOLDERS = words(
    ".git .vscode .idea .husky .cargo .devcontainer .yarn .mvn .claude .agents .codex .gemini .qwen .cursor .opencode"
    " .toolwright .ssh .gnupg .aws .kube .docker"
)
PROTECTED_NESTED = (
    (".config", "git"),
    (".config", "fish"),
    (".config", "autostart"),
    (".config", "systemd"),
    (".config", "toolwright"),
    ("library", "launchagents"),
)
PROTECTED_FILES = words(
    ".gitconfig .gitmodules .bashrc .bash_profile .bash_login .bash_aliases .bash_logout .zshrc .zprofile .zshenv"
    " .zlogin .zlogout .profile .inputrc .envrc .npmrc .yarnrc .yarnrc.yml .pnp.cjs .pnp.loader.mjs .pnpmfile.cjs"
    " bunfig.toml .bazelrc .bazelversion .bazeliskrc .pre-commit-config.yaml lefthook.yml lefthook.yaml"
    " gradle-wrapper.properties maven-wrapper.properties .devcontainer.json .ripgreprc pyrightconfig.json"
    " .mcp.json .claude.json"
    " .netrc .pypirc .git-credentials .vimrc .exrc"
)
_SECRET_FOLDERS = words(".ssh .gnupg .password-store keychains")
_HARMLESS_IN_SSH = ("*.pub", "known_hosts*", "config", "config.d", "authorized_keys")
_SECRET_NESTED = (
    (".aws", "credentials"),
    (".aws", "sso"),
    (".aws", "cli"),
    (".kube", "config"),
    (".docker", "config.json"),
    (".azure", "*"),
    (".config", "gcloud"),
    (".config", "gh", "hosts.yml"),
    (".config", "glab-cli"),
    (".config", "hub"),
    (".config", "op"),
    (".cargo", "credentials*"),
    (".gem", "credentials"),
    (".m2", "settings*.xml"),
    (".gradle", "gradle.properties"),
    (".terraform.d", "credentials*"),
    (".claude", ".credentials.json"),
    (".codex", "auth.json"),
    (".gemini", "oauth_creds.json"),
    (".local", "share", "keyrings"),
    (".mozilla", "firefox"),
    (".config", "google-chrome*"),
    (".config", "chromium"),
    (".config", "microsoft-edge*"),
    (".config", "bravesoftware"),
    (".config", "opera*"),
    (".config", "vivaldi*"),
    ("application support", "google", "chrome"),
    ("application support", "firefox"),
    ("library", "cookies"),
    ("etc", "shadow*"),
    ("etc", "gshadow*"),
    ("etc", "sudoers*"),
    ("etc", "ssh", "ssh_host_*_key"),
    ("proc", "*", "environ"),
    ("proc", "*", "mem"),
    ("run", "secrets"),
)
_SECRET_FILES = (
    "id_rsa",
    "id_dsa",
    "id_ecdsa",
    "id_ecdsa_sk",
    "id_ed25519",
    "id_ed25519_sk",
    "*.ppk",
    "*.p12",
    "*.pfx",
    "*.jks",
    "*.keystore",
    "*.kdbx",
    "*.key",
    "*key.pem",
    "*private*.pem",
    ".netrc",
    "_netrc",
    ".git-credentials",
    ".pypirc",
    ".pgpass",
    ".my.cnf",
    ".mylogin.cnf",
    ".s3cfg",
    ".boto",
    ".vault-token",
    ".dockercfg",
    ".htpasswd",
    "application_default_credentials.json",
    "service-account*.json",
    "kubeconfig",
    "secrets.yml",
    "secrets.yaml",
    "secrets.toml",
    "credentials.json",
)
_TEMPLATES = frozenset(("example", "sample", "template", "dist", "defaults", "schema", "test"))


def components_of(path: str) -> tuple[str, ...]:
    """Split a path into names in the spelling they are compared in."""
    plain = path if path.isascii() else unicodedata.normalize("NFC", path)
    return tuple(part.rstrip(" .") or part for part in plain.casefold().split("/") if part)


def is_protected(names: Sequence[str]) -> bool:
    """Whether writing there changes how other programs, or this one, behave."""
    if not names:
        return False
    last = names[-1]
    return (
        last in PROTECTED_FILES
        or is_environment(last)
        or not PROTECTED_FOLDERS.isdisjoint(names)
        or any(_contains(names, nested) for nested in PROTECTED_NESTED)
    )


def is_secret(names: Sequence[str]) -> bool:
    """Whether reading there may hand out a private key or a password."""
    if not names:
        return False
    last = names[-1]
    if not _SECRET_FOLDERS.isdisjoint(names):
        return not any(fnmatchcase(last, pattern) for pattern in _HARMLESS_IN_SSH)
    return (
        is_environment(last)
        or any(fnmatchcase(last, pattern) for pattern in _SECRET_FILES)
        or any(_contains(names, nested) for nested in _SECRET_NESTED)
    )


def is_environment(name: str) -> bool:
    """Whether a file is a real .env file, and not its template."""
    stem, _, rest = name.partition(".env")
    return name == ".env" or (not stem and rest.startswith(".") and rest.rpartition(".")[2] not in _TEMPLATES)


def _contains(names: Sequence[str], nested: Sequence[str]) -> bool:
    size = len(nested)
    return any(
        all(fnmatchcase(given, wanted) for given, wanted in zip(names[start : start + size], nested, strict=True))
        for start in range(len(names) - size + 1)
    )
