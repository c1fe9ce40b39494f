"""Names of files and folders that hold secrets or configure other programs.

Names are compared without case and in composed Unicode, because many file systems do so.
"""

import os
import re
import unicodedata
from collections.abc import Iterable
from functools import lru_cache

_PROTECTED_FOLDERS = frozenset(
    ".git .hg .vscode .idea .zed .fleet .windsurf .continue .direnv .vim"
    " .husky .cargo .devcontainer .yarn .mvn .claude .agents .codex .gemini .qwen .cursor .opencode"
    " .callwright .ssh .gnupg .aws .kube .docker".split()
)
_PROTECTED_NESTED = (
    ".config/git",
    ".config/fish",
    ".config/autostart",
    ".config/systemd",
    ".config/callwright",
    "library/launchagents",
)
PROTECTED_FILES = frozenset(
    ".gitconfig .gitmodules .bashrc .bash_profile .bash_login .bash_aliases .bash_logout .zshrc .zprofile .zshenv"
    " .zlogin .zlogout .profile .kshrc .mkshrc .cshrc .tcshrc .login .xinitrc .xprofile .xsession .xsessionrc"
    " .pam_environment .inputrc .envrc .npmrc .yarnrc .yarnrc.yml .pnp.cjs .pnp.loader.mjs .pnpmfile.cjs"
    " bunfig.toml .bazelrc .bazelversion .bazeliskrc .pre-commit-config.yaml lefthook.yml lefthook.yaml"
    " gradle-wrapper.properties maven-wrapper.properties .devcontainer.json .ripgreprc pyrightconfig.json"
    " .mcp.json .claude.json"
    " .netrc .pypirc .git-credentials .vimrc .exrc"
    # programs read these in the folder they are started in, or in a home folder, and run what they name
    " .hgrc .gdbinit .lldbinit .pdbrc .irbrc .pryrc .rprofile .dir-locals.el .emacs .tmux.conf .screenrc .curlrc"
    " .wgetrc .psqlrc .sqliterc .my.cnf .terraformrc mise.toml .mise.toml mise.local.toml .lefthook.yml .lefthook.yaml"
    " .overcommit.yml .aider.conf.yml opencode.json opencode.jsonc"
    # instructions that agents read and follow
    " agents.md agents.override.md claude.md claude.local.md gemini.md qwen.md callwright.md .cursorrules"
    " .windsurfrules copilot-instructions.md".split()
)
_SECRET_FOLDERS = frozenset(".ssh .gnupg .password-store keychains".split())
_HARMLESS_IN_SSH = ("*.pub", "known_hosts*", "config", "config.d", "authorized_keys")
_SECRET_NESTED = (
    ".aws/credentials",
    ".aws/sso",
    ".aws/cli",
    ".kube/config",
    ".docker/config.json",
    ".config/containers/auth.json",
    ".config/rclone/rclone.conf",
    ".pulumi/credentials.json",
    ".config/sops/age",
    ".cache/huggingface/token",
    ".cache/huggingface/stored_tokens",
    ".kaggle/kaggle.json",
    ".composer/auth.json",
    ".config/composer/auth.json",
    ".config/pypoetry/auth.toml",
    ".config/configstore/firebase-tools.json",
    ".config/stripe/config.toml",
    ".config/ngrok/ngrok.yml",
    ".config/doctl/config.yaml",
    ".config/.wrangler/config",
    ".local/share/com.vercel.cli/auth.json",
    ".config/netlify/config.json",
    ".fly/config.yml",
    ".snowflake/connections.toml",
    ".dbt/profiles.yml",
    ".azure/*",
    ".config/gcloud",
    ".config/gh/hosts.yml",
    ".config/glab-cli",
    ".config/hub",
    ".config/op",
    ".cargo/credentials*",
    ".gem/credentials",
    ".m2/settings*.xml",
    ".gradle/gradle.properties",
    ".terraform.d/credentials*",
    ".claude/.credentials.json",
    ".codex/auth.json",
    ".gemini/oauth_creds.json",
    ".local/share/keyrings",
    ".mozilla/firefox",
    ".config/google-chrome*",
    ".config/chromium",
    ".config/microsoft-edge*",
    ".config/bravesoftware",
    ".config/opera*",
    ".config/vivaldi*",
    "application support/google/chrome",
    "application support/firefox",
    "library/cookies",
    "etc/shadow*",
    "etc/gshadow*",
    "etc/sudoers*",
    "etc/ssh/ssh_host_*_key",
    "proc/*/environ",
    "proc/*/mem",
    "proc/*/task/*/environ",
    "proc/*/task/*/mem",
    "run/secrets",
    "run/user/*/containers/auth.json",
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
    ".databrickscfg",
    ".htpasswd",
    ".*_history",
    ".aws",
    ".kube",
    "dev/sd*",
    "dev/nvme*",
    "dev/mem",
    "dev/kmem",
    "application_default_credentials.json",
    "service-account*.json",
    "kubeconfig",
    "secrets.yml",
    "secrets.yaml",
    "secrets.toml",
    "credentials.json",
    ".envrc",
    "*.tfstate",
    "*.tfstate.*",
)

_INSTALLER_SECRETS = (
    ".npmrc",
    ".yarnrc.yml",
    ".pip/pip.conf",
    ".config/pip/pip.conf",
    "Library/Application Support/pip/pip.conf",
)
"""Settings of package managers in a home folder: tokens, but also the index to install from, so that a command with
network needs them. In a project these names are ordinary."""

SYSTEM_SECRETS = tuple(name for name in _SECRET_NESTED if name.startswith("etc/"))
"""Patterns below the root."""
HOME_SECRETS = (
    tuple(
        name.replace("application support", "Library/Application Support").replace("library/", "Library/")
        for name in (*_SECRET_NESTED, *(folder for folder in _SECRET_FOLDERS if folder != ".ssh"))
        if not name.startswith(("etc/", "proc/", "run/"))
    )
    + _INSTALLER_SECRETS
)
"""Patterns below a home folder; single files such as `.netrc` are found by `is_secret`."""


def _in_any_case(name: str) -> str:
    return "".join(f"[{letter}{letter.upper()}]" if letter.islower() else letter for letter in name)


GIT_ATTRIBUTES = "".join(
    f"{_in_any_case(name)} {attribute}\n"
    for attribute, names in (
        ("-diff", (*(name for name in _SECRET_FILES if "/" not in name), ".env", ".env.*")),
        ("!diff", [f".env.*{kind}" for kind in "example sample template dist defaults schema test".split()]),
        ("-diff", [f"**/{name}/**" for name in (*_SECRET_FOLDERS, *_SECRET_NESTED)]),
        ("-diff", [f"**/{name}" for name in _SECRET_NESTED]),
        ("!diff", [f"**/.ssh/{name}" for name in _HARMLESS_IN_SSH]),
    )
    for name in names
    if " " not in name
)
"""Attributes with which git shows that a committed secret differs, but not its content."""

_TEMPLATE = r"\.env\..*(?:example|sample|template|dist|defaults|schema|test)\Z"


def _pattern(names: Iterable[str], *, below: bool) -> str:
    """Return a pattern for the names as whole components; `below` also matches what lies inside them."""
    translated = ("[^/]*".join(map(re.escape, name.split("*"))) for name in names)
    return rf"/(?:{'|'.join(translated)}){'(?:/|$)' if below else '$'}"


_PROTECTED = re.compile(
    f"{_pattern((*_PROTECTED_FOLDERS, *_PROTECTED_NESTED), below=True)}|{_pattern(PROTECTED_FILES, below=False)}"
)
_SECRET_FOLDER = re.compile(_pattern(_SECRET_FOLDERS, below=True))
_HARMLESS = re.compile(_pattern(_HARMLESS_IN_SSH, below=False))
_SECRET = re.compile(f"{_pattern(_SECRET_NESTED, below=True)}|{_pattern(_SECRET_FILES, below=False)}")
_ABOVE_SECRET = re.compile(
    _pattern(
        dict.fromkeys(
            "/".join(name.split("/")[:depth]) for name in _SECRET_NESTED for depth in range(1, name.count("/") + 1)
        ),
        below=False,
    )
)
_INSTALLER = tuple(f"/{name.casefold()}" for name in _INSTALLER_SECRETS)
_ENVIRONMENT = re.compile(rf"/(?!{_TEMPLATE})\.env(?:\.[^/]*)?$")
_TRAILING = re.compile(r"(?<=[^/. ])[. ]+(?=/|$)")


# HFS+ ignores them in names, so that .g<U+200C>it is .git there
_IGNORED = dict.fromkeys((*range(0x200C, 0x2010), *range(0x202A, 0x202F), *range(0x206A, 0x2070), 0x200B, 0xFEFF))


def comparable(path: str) -> str:
    """Return a path in the form names are compared in: one leading slash, composed, without case and trailing dots."""
    plain = path if path.isascii() else unicodedata.normalize("NFC", path.translate(_IGNORED))
    return _TRAILING.sub("", "/" + plain.casefold().strip("/"))


READABLE_OF_OURS = ("skills", "commands", "agents")
"""Folders inside our own one that models and commands may read."""


def own_home() -> str:
    """Return our folder in the user's home: settings, trust, sessions, OAuth tokens."""
    return os.path.abspath(os.path.expanduser(os.environ.get("CALLWRIGHT_HOME") or "~/.callwright"))  # noqa: PTH100, PTH111 - compared as text


@lru_cache(maxsize=8)
def _own_folders(home: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys((comparable(home), comparable(os.path.realpath(home)))))


@lru_cache(maxsize=8)
def _installer_paths(home: str) -> frozenset[str]:
    homes = (comparable(home), comparable(os.path.realpath(home)), "/root")
    return frozenset(f"{folder}{name}" for folder in homes for name in _INSTALLER)


def is_installer_secret(path: str) -> bool:
    """Whether a comparable path holds the settings of a package manager for this user or root.

    Not for any folder in `/home`, which is a project in many containers.
    """
    # the home folder is looked up only for such names
    return path.endswith(_INSTALLER) and path in _installer_paths(os.path.expanduser("~"))  # noqa: PTH111 - compared as text


def is_ours(path: str) -> bool:
    """Whether a comparable path lies in our own folder, but for what models may read there."""
    for folder in _own_folders(own_home()):
        if path == folder or path.startswith(folder + "/"):
            return path[len(folder) + 1 :].partition("/")[0] not in READABLE_OF_OURS
    return False


def is_protected(path: str) -> bool:
    """Whether writing to a comparable path changes how other programs, or this one, behave."""
    return _PROTECTED.search(path) is not None or is_environment(path)


def is_secret(path: str) -> bool:
    """Whether a comparable path may hold a private key or a password, or lies in our own folder."""
    if is_ours(path):
        return True
    if _SECRET_FOLDER.search(path):
        return not _HARMLESS.search(path)
    return _SECRET.search(path) is not None or is_environment(path) or is_installer_secret(path)


def may_hold_secret(path: str) -> bool:
    """Whether a comparable path is a folder by whose name a file in it is a secret: `.aws` of `.aws/credentials`."""
    return _ABOVE_SECRET.search(path) is not None


def is_environment(path: str) -> bool:
    """Whether a comparable path is a real .env file, and not its template."""
    return _ENVIRONMENT.search(path) is not None
