"""The tables of known programs, parsed on first use."""

from collections.abc import Callable, Sequence
from functools import cache
from importlib import import_module
from typing import TypeAlias

from callwright.shell.findings import Judgement
from callwright.shell.rule_tables import ProgramRule, parse_table
from callwright.shell.words import Folders, Word

SpecialJudge: TypeAlias = Callable[[str, Sequence[Word], Folders], Judgement]

_FAMILIES = ("files", "system", "development", "network")
_SPECIAL = {
    "sed": "sed:sed",
    "gsed": "sed:sed",
    "awk": "awk:awk",
    "gawk": "awk:awk",
    "mawk": "awk:awk",
    "nawk": "awk:awk",
    "find": "find:find",
    "gfind": "find:find",
    "fd": "find:fd",
    "fdfind": "find:fd",
    "git": "git:git",
    "curl": "curl_wget:curl",
    "wget": "curl_wget:wget",
    "aws": "cloud:aws",
    "az": "cloud:az",
    "gcloud": "cloud:gcloud",
    "gh": "cloud:gh",
    "kubectl": "cloud:kubectl",
    "yq": "yq:yq",
    "psql": "databases:psql",
    "mysql": "databases:mysql",
    "mariadb": "databases:mysql",
    "sqlite3": "databases:sqlite",
    "duckdb": "databases:sqlite",
    "sqlcmd": "databases:sqlcmd",
    "tar": "archives:tar",
    "bsdtar": "archives:tar",
    "gtar": "archives:tar",
    "unzip": "archives:unzip",
    "zip": "archives:zip_files",
    **dict.fromkeys("bzip2 bunzip2 xz unxz lzma zstd unzstd".split(), "archives:packer"),
    "dpkg": "archives:package",
    "rpm": "archives:package",
    "printf": "builtins:printf",
    "test": "builtins:test",
    "[": "builtins:test",
    "[[": "builtins:test",
    "read": "builtins:read",
    "command": "builtins:command",
    "set": "builtins:set_options",
    "env": "builtins:env",
    "printenv": "builtins:printenv",
    "ps": "builtins:ps",
    "export": "builtins:declare",
    "declare": "builtins:declare",
    "typeset": "builtins:declare",
    "readonly": "builtins:declare",
    "unset": "builtins:unset",
    "jq": "yq:jq",
    "gojq": "yq:jq",
    "xq": "yq:yq",
    "tomlq": "yq:yq",
    "history": "builtins:history",
    "kill": "builtins:kill",
}


READ_UNKNOWN_WORDS = frozenset(
    "printf test [ [[ read ps export declare typeset readonly jq gojq find gfind fd fdfind psql mysql mariadb "
    "sqlcmd".split()
)
"""The programs above whose judges say themselves where a word that may become an option can stand."""


@cache
def _family(name: str) -> dict[str, ProgramRule]:
    return parse_table(import_module(f"{__name__}.{name}").TABLE)


@cache
def _rules() -> dict[str, ProgramRule]:
    rules: dict[str, ProgramRule] = {}
    for family in _FAMILIES:
        rules.update(_family(family))
    return rules


def shows_machine_or_files(name: str) -> bool:
    """Whether a program is in the tables of those that look at files, text and the state of the machine."""
    return name in _family("files") or name in _family("system")


def find_rule(name: str) -> ProgramRule | None:
    """Return the rule of a program, or None."""
    return _rules().get("true" if name == ":" else name)


@cache
def find_special_judge(name: str) -> SpecialJudge | None:
    """Return the function that judges a program with a complex syntax or with known effects, or None."""
    place = _SPECIAL.get(name)
    if place is None:
        writers = import_module("callwright.shell.programs.writers")
        return writers.WRITERS.get(name)
    module, _, function = place.partition(":")
    return getattr(import_module(f"callwright.shell.programs.{module}"), function)


@cache
def known_programs() -> frozenset[str]:
    """Return the names of all programs that can be judged."""
    writers = import_module("callwright.shell.programs.writers")
    return frozenset((*_rules(), *_SPECIAL, *writers.WRITERS))
