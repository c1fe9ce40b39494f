"""Lines that only a read-only wall makes safe: what they run is not proven, but behind the wall it changes nothing.

The list holds programs that are run to look at something: checkers, test runners, interpreters with a program on the
command line. A program that exists to write (an installer, a formatter that rewrites) is not in it: behind the wall it
would only fail.
"""

import re
from collections.abc import Callable, Sequence
from typing import TypeAlias

from callwright.core.access import DeletePath, Reach, WritePath
from callwright.shell.plan import ShellPlan, SimpleCommand, Verdict

_Fits: TypeAlias = Callable[[Sequence[str]], bool]
_SYSTEM_FOLDERS = ("/bin/", "/usr/bin/", "/usr/local/bin/")
_PLAIN_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+-]*")
_QUERY = re.compile(r"\s*(?:select|explain|pragma|with|\.tables|\.schema|\.indexes|\.dbinfo)\b", re.IGNORECASE)
_VERSIONED = re.compile(r"(python|ruby|node|php|lua|perl|pip)[\d.]*\Z")


def is_walled(plan: ShellPlan) -> bool:
    """Whether a line may run unasked behind a complete read-only wall.

    Every command in it must be read-only or in the list; the words that are not literal may be anything, because the
    wall holds whatever they become.
    """
    if plan.problem or plan.dangers or not plan.commands:
        return False
    return all(map(_fits, plan.commands))


def _fits(command: SimpleCommand) -> bool:
    if command.words[:1] in (("sqlite3",), ("duckdb",)):
        return not command.redirected and _queries(command.words[1:])
    if any(isinstance(access, (WritePath, DeletePath, Reach)) for access in command.accesses):
        return False
    if command.verdict is Verdict.READ_ONLY or not command.words:
        return command.verdict is Verdict.READ_ONLY
    if command.verdict is not Verdict.UNKNOWN:
        return False
    name, *arguments = command.words
    for folder in _SYSTEM_FOLDERS:
        name = name.removeprefix(folder)
    if not _PLAIN_NAME.fullmatch(name):
        return False
    fits = _PROGRAMS.get(_VERSIONED.sub(r"\1", name))
    return fits is not None and fits(arguments)


def _queries(arguments: Sequence[str]) -> bool:
    """Whether a database program is given questions only; it counts as a writer, because it opens the file to write."""
    operands = [argument for argument in arguments if argument[:1] != "-"]
    return len(operands) > 1 and all(map(_QUERY.match, operands[1:]))


def _any(_: Sequence[str]) -> bool:
    return True


def _without(*flags: str) -> _Fits:
    """Accept any arguments but these flags, which make the program write."""
    return lambda arguments: not any(argument.split("=")[0] in flags for argument in arguments)


def _with(*flags: str) -> _Fits:
    """Accept arguments that hold one of these flags."""
    return lambda arguments: any(argument.split("=")[0] in flags for argument in arguments)


def _first(**subcommands: _Fits) -> _Fits:
    """Accept these sub-commands; an underscore stands for a dash or a colon."""
    known = {name.replace("_", "-"): fits for name, fits in subcommands.items()}

    def fits(arguments: Sequence[str]) -> bool:
        operands = [place for place, argument in enumerate(arguments) if argument[:1] != "-"]
        if not operands:
            return bool(arguments) and arguments[-1] in ("--version", "-V", "-v", "--help", "-h")
        found = known.get(arguments[operands[0]])
        return found is not None and found(arguments[operands[0] + 1 :])

    return fits


def _script(arguments: Sequence[str]) -> bool:
    """Accept `test`, `lint` and the like as the script of a package."""
    return bool(arguments) and arguments[0] in _CHECKING_SCRIPTS


_CHECKING_SCRIPTS = frozenset(
    ("test", "tests", "test:unit", "unit", "lint", "check", "typecheck", "type-check", "types", "tsc", "verify")
)
_MODULES: dict[str, _Fits] = {
    **dict.fromkeys(
        "pytest unittest json.tool py_compile compileall ast tokenize dis site sysconfig platform timeit doctest mypy"
        " flake8 pylint pyright bandit vulture this calendar trace symtable inspect".split(),
        _any,
    ),
    "pip": _first(list=_any, show=_any, freeze=_any, check=_any, inspect=_any, help=_any, debug=_any),
    "ruff": _first(check=_without("--fix", "--unsafe-fixes", "--add-noqa"), format=_with("--check", "--diff")),
    "black": _with("--check", "--diff"),
    "isort": _with("--check", "--check-only", "--diff", "-c"),
    "coverage": _first(report=_any, run=_any),
}


def _python(arguments: Sequence[str]) -> bool:
    for place, argument in enumerate(arguments):
        if argument[:1] != "-":
            return False
        if argument.startswith("-c") or argument in ("-V", "-VV", "--version", "--help", "-h"):
            return True
        if argument == "-m":
            module, *rest = arguments[place + 1 :] or ("",)
            fits = _MODULES.get(module)
            return fits is not None and fits(rest)
        if argument in ("-W", "-X"):
            return False
    return False


_NPM = _first(test=_any, t=_any, ls=_any, list=_any, run=_script, run_script=_script, explain=_any, why=_any)
_CHECKERS: dict[str, _Fits] = {
    "tsc": _with("--noEmit", "--version", "-v", "--showConfig", "--listFiles"),
    "eslint": _without("--fix", "-o", "--output-file"),
    "prettier": _with("--check", "-c", "-l", "--list-different"),
    "stylelint": _without("--fix", "-o", "--output-file"),
    "jest": _without("-u", "--updateSnapshot", "--init"),
    "vitest": _first(run=_without("-u", "--update"), list=_any, related=_any),
    "mocha": _any,
    "biome": _first(check=_without("--write", "--apply"), lint=_without("--write", "--apply"), ci=_any),
}
_PROGRAMS: dict[str, _Fits] = {
    **dict.fromkeys(
        "pytest py.test mypy dmypy pyright basedpyright flake8 pylint bandit vulture shellcheck hadolint yamllint"
        " actionlint markdownlint golangci-lint staticcheck cppcheck".split(),
        _any,
    ),
    **{name: _MODULES[name] for name in ("ruff", "black", "isort", "coverage", "pip")},
    **_CHECKERS,
    "python": _python,
    "pypy": _python,
    "node": _with("-e", "--eval", "-p", "--print", "-v", "--version", "-c", "--check", "-pe", "--test"),
    "deno": _first(check=_any, lint=_without("--fix"), eval=_any, info=_any, test=_any),
    "bun": _first(test=_any),
    "ruby": _with("-e", "-c", "-v", "--version", "-wc"),
    "perl": lambda arguments: (
        _with("-e", "-ne", "-E", "-c", "-v", "-pe", "-lne", "-lane", "-nle")(arguments)
        and not any(argument.startswith("-i") for argument in arguments)
    ),
    "php": _with("-r", "-l", "-v", "-m", "-i"),
    "lua": _with("-e", "-v"),
    "bash": _with("-n", "--version"),
    "sh": _with("-n"),
    "zsh": _with("-n", "--version"),
    "make": _with("-n", "--dry-run", "--just-print", "--recon", "-q", "--question", "-p", "--version", "-v"),
    "gmake": _with("-n", "--dry-run", "--just-print"),
    "ninja": _with("-n", "-t", "--version"),
    "go": _first(
        vet=_any, test=_without("-o", "-c", "-coverprofile", "-fuzz"), list=_any, doc=_any, env=_without("-w", "-u")
    ),
    "gofmt": _without("-w"),
    "cargo": _first(check=_any, test=_any, clippy=_without("--fix"), tree=_any, metadata=_any, fmt=_with("--check")),
    "rustc": _with("--version", "-V", "--print", "--explain"),
    "rustfmt": _with("--check"),
    "npm": _NPM,
    "pnpm": _NPM,
    "yarn": _first(test=_any, run=_script, lint=_any, why=_any, list=_any, info=_any),
    "npx": _first(**_CHECKERS),
    "gcc": _with("-fsyntax-only", "--version", "-v"),
    "cc": _with("-fsyntax-only", "--version"),
    "clang": _with("-fsyntax-only", "--version"),
    "g++": _with("-fsyntax-only", "--version"),
    "clang-tidy": _without("--fix", "-fix", "--fix-errors"),
    "clang-format": _without("-i"),
    **dict.fromkeys("export declare typeset readonly unset alias shopt".split(), _any),
}
"""By program, without the number of its version."""
