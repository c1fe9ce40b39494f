"""Loads rules from settings files and reports problems: unknown tools, useless or broad rules, failing examples."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Literal, TypeAlias, cast

from callwright.core.access import Access
from callwright.core.errors import UsageError
from callwright.core.json import DuplicateKey, make_unique_object, parse_strictly
from callwright.policy.decide import Policies
from callwright.policy.dry_run import DryRunCall, dry_run_call
from callwright.policy.paths import PathContext
from callwright.policy.rules.matching import Rules
from callwright.policy.rules.patterns import CommandPattern, command_pattern
from callwright.policy.rules.rule import Rule, RuleKind, parse_rule
from callwright.policy.rules.too_broad import why_too_broad
from callwright.policy.tool_names import (
    FILE_FAMILIES,
    RESOURCE_FAMILIES,
    canonical,
    is_group,
    is_known,
    names_tool,
    nearest_name,
)

RuleProblemKind: TypeAlias = Literal["unknown tool", "unreachable", "never matches", "too broad", "example fails"]
_PRIMARY_FIELDS = ("command:", "file_path:", "path:", "url:")
_SEPARATORS = re.compile(r"&&|\|\||[;|\n]|(?<![<>&\d])&(?![&>])|(?<!-)>|<")
_QUOTED = re.compile(r"'[^']*'|\"[^\"]*\"|\\.")


@dataclass(frozen=True, slots=True)
class RuleProblem:
    """A rule that does not do what its author probably expects."""

    kind: RuleProblemKind
    rule: Rule
    text: str

    def __str__(self) -> str:
        return f"{self.rule.source}: {self.kind}: {self.text}"


def check_rules(rules: Sequence[Rule], tools: Iterable[str] = ()) -> tuple[RuleProblem, ...]:
    """Return the first problem of each rule.

    Args:
        rules: Rules that apply together.
        tools: Names of tools that exist beside the common ones; of a group, `group:NAME`.
    """
    tools = frozenset(tools)
    known = frozenset(canonical(name) for name in tools)
    strict = [rule for rule in rules if rule.restricts and not rule.session]
    # once for each tool: thousands of rules are often about a few
    naming = {
        tool: [each for each in strict if names_tool(each.tool, (tool,), "")] for tool in {rule.tool for rule in rules}
    }
    found = (_first_problem(rule, naming[rule.tool], tools, known) for rule in rules)
    return tuple(problem for problem in found if problem is not None)


def _first_problem(
    rule: Rule, rules: Sequence[Rule], tools: frozenset[str], known: frozenset[str]
) -> RuleProblem | None:
    checks: tuple[tuple[RuleProblemKind, str], ...] = (
        ("unknown tool", _why_unknown(rule, tools, known)),
        ("never matches", _why_never_matches(rule)),
        ("unreachable", _why_unreachable(rule, rules)),
        ("too broad", _why_broad(rule)),
    )
    return next((RuleProblem(kind, rule, text) for kind, text in checks if text), None)


def _why_unknown(rule: Rule, tools: frozenset[str], known: frozenset[str]) -> str:
    group, near = rule.tool.removeprefix("group:"), ""
    if rule.tool in known or (is_known(rule.tool) and (group == rule.tool or is_group(group))):
        return ""
    if group == rule.tool:
        missing, near = f"tool {rule.text.partition('(')[0]}", nearest_name(rule.tool, tools)
    else:
        missing = f"group {group!r}"
    # settings may allow tools of other programs, and an allow rule for an unknown tool allows nothing
    if not rule.restricts and not near and rule.scope != "command line":
        return ""
    advice = f"; did you mean {near}?" if near else ""
    return f"there is no {missing}, so it {'protects' if rule.restricts else 'allows'} nothing{advice}"


def _why_never_matches(rule: Rule) -> str:
    specifier = rule.specifier or ""
    if not rule.restricts and "*" in rule.tool and not re.match(r"mcp__[^*]+?__", rule.tool):
        return "an allow rule may use * in a tool's name only after mcp__server__"
    if specifier.startswith(_PRIMARY_FIELDS) and rule.tool in (*FILE_FAMILIES, "bash", "webfetch"):
        return f"write the pattern without {specifier.partition(':')[0]}:"
    if rule.tool == "bash" and specifier:
        return _why_command_never_matches(rule, specifier)
    if rule.tool == "webfetch" and specifier and not rule.restricts and not specifier.startswith("domain:"):
        return "write WebFetch(domain:example.com)"
    if rule.tool in FILE_FAMILIES | RESOURCE_FAMILIES and specifier.startswith("!"):
        return "patterns cannot be negated; write a rule of the other kind"
    if rule.tool in FILE_FAMILIES and re.match(r"\$\{?\w|~\w|file:", specifier):
        return (
            "variables, ~user and file: are not replaced in a pattern; write ~/x for the home folder, //x for the root"
        )
    if rule.tool in FILE_FAMILIES and re.search(r"\{[^{}]*,[^{}]*\}", specifier):
        return "braces stand for themselves in a pattern; write one rule for each name"
    if rule.tool in (*FILE_FAMILIES, "webfetch") and re.search(r",\s", specifier):
        return "a rule has one pattern; write one rule for each"
    if rule.tool in RESOURCE_FAMILIES and specifier and ":" not in specifier and not specifier.startswith("*"):
        return f"a resource is named by a URI; write its scheme too, such as db://{specifier.lstrip('/')}"
    return ""


def _why_command_never_matches(rule: Rule, specifier: str) -> str:
    if _SEPARATORS.search(_QUOTED.sub("", specifier)):
        return "a line is judged command by command and redirects by Edit rules; write one rule for each command"
    if ":*" in specifier[:-2] and "\\:*" not in specifier:
        return "`:*` means `anything` only at the end; write a space and * instead"
    if not rule.restricts and re.match(r"[A-Za-z_]\w*=", specifier):
        return "variables are judged apart from the command behind them; write the rule without them"
    if not rule.restricts and re.match(r"find\b.*-exec\b", specifier):
        return "no rule allows what find runs by -exec"
    pattern = command_pattern(specifier)
    if not rule.restricts and not pattern.exact and re.match(r"(env|watch|setsid|ionice|flock)\b", specifier):
        return "the wildcard could stand for any program; only a rule without * matches"
    return ""


def _why_unreachable(rule: Rule, rules: Sequence[Rule]) -> str:
    stricter = {"allow": ("deny", "ask"), "ask": ("deny",), "deny": ()}[rule.kind]
    for other in rules:
        if other.kind in stricter and _includes(other, rule):
            return f"{other.source} always decides first"
    return ""


def _includes(wide: Rule, narrow: Rule) -> bool:
    if wide.specifier is None:
        return True
    if narrow.specifier is None:
        return False
    if narrow.tool == "bash":
        return _includes_command(command_pattern(wide.specifier), narrow.specifier)
    return wide.specifier in (narrow.specifier, "**", "//**") and wide.base in ("", narrow.base)


def _includes_command(wide: CommandPattern, narrow: str) -> bool:
    """Match samples of the narrow pattern, with a private-use character in place of its wildcards."""
    pattern = command_pattern(narrow)
    filled = "\ue000".join(pattern.forms[0].pieces)
    return wide.matches(filled) and (not pattern.bounded or wide.matches(f"{filled} \ue000"))


def _why_broad(rule: Rule) -> str:
    if rule.restricts:
        return ""
    if rule.tool == "bash":
        return why_too_broad(command_pattern(rule.specifier or "*"))
    specifier = rule.specifier or ""
    if rule.tool == "edit" and re.fullmatch(r"(//|~)[/*]*", specifier):
        return "it allows writing nearly anywhere"
    if rule.tool == "webfetch" and not specifier.removeprefix("domain:").strip("*."):
        return "it allows every address, also for sending data out"
    if rule.tool in RESOURCE_FAMILIES - {"readresource"} and not specifier.strip("*:/"):
        return "it allows changing every resource"
    return ""


_KINDS: tuple[RuleKind, ...] = ("deny", "ask", "allow")
_RESTRICTING = ("deny", "denied", "denies", "ask", "block", "forbid", "disallow")
_OTHER_WORDS = ("mask", "task")


@dataclass(frozen=True, slots=True)
class LoadedRules:
    """Rules and their problems."""

    rules: tuple[Rule, ...] = ()
    problems: tuple[RuleProblem, ...] = ()


@dataclass(frozen=True, slots=True)
class _RuleEntry:
    rule: Rule
    match: tuple[str, ...] = ()
    not_match: tuple[str, ...] = ()


def load_rules(*files: str | Path, tools: Iterable[str] = (), cwd: str | Path | None = None) -> LoadedRules:
    """Read `{"permissions": {"deny": […], "ask": […], "allow": […]}}` from each file.

    An entry is a rule's text, or `{"rule": …, "match": […], "not_match": […]}` with examples that are tried at once.

    Args:
        files: Settings files in JSON.
        tools: Names of tools that exist beside the common ones; of a group, `group:NAME`.
        cwd: The folder that relative paths in examples start from.

    Raises:
        UsageError: A file or rule cannot be read. No protection is dropped silently.
    """
    entries = [entry for file in files for entry in _entries(Path(file))]
    rules = tuple(dict.fromkeys(entry.rule for entry in entries))
    here = PathContext.of(cwd or Path.cwd())
    failed = [
        problem
        for entry in entries
        for problem in check_examples(entry.rule, here, match=entry.match, not_match=entry.not_match)
    ]
    return LoadedRules(rules, (*check_rules(rules, tools), *failed))


def _entries(file: Path) -> Iterable[_RuleEntry]:
    try:
        content = parse_strictly(file.read_text("utf-8-sig"), _make_object)
    except (OSError, ValueError) as error:
        raise UsageError(f"the rules in {file} cannot be read: {error}") from None
    sections = list(_sections(_mapping(content, file), file))
    folder = file.resolve().parent
    # `/docs/*` in project/.callwright/settings.json means project/docs, not .callwright/docs
    base = str(folder.parent if folder.name.startswith(".") else folder)
    for kind in _KINDS:
        for section in sections:
            for item in _list(kind, section, file):
                yield _entry(kind, item, file, base)


def _make_object(pairs: Sequence[tuple[str, object]]) -> object:
    """Make an object, or an error in its place if a key is repeated: only in the rules that matters."""
    try:
        return make_unique_object(pairs)
    except DuplicateKey as error:
        return error


def _sections(settings: Mapping[str, object], file: Path) -> Iterator[Mapping[str, object]]:
    """Yield what may hold lists of rules: `permissions`, and the file itself, beside it only for deny and ask rules."""
    kinds = _KINDS
    if "permissions" in settings:
        yield _mapping(settings["permissions"], file)
        kinds = ("deny", "ask")
    else:
        objects = (key for key, value in settings.items() if isinstance(value, (Mapping, DuplicateKey)))
        for near in get_close_matches("permissions", objects, n=1, cutoff=0.8):
            raise UsageError(f"{near!r} in {file} is not known, and its rules would be lost; write 'permissions'")
    yield {key: value for key, value in settings.items() if key in kinds or (key not in _KINDS and _has_rules(value))}


def _has_rules(value: object) -> bool:
    """Whether a list may hold rules: other programs have lists such as `deniedMcpServers` with objects of their own."""
    items = cast("list[object]", value) if isinstance(value, list) else []
    return any(isinstance(item, str) or (isinstance(item, Mapping) and "rule" in item) for item in items)


def _list(kind: RuleKind, section: Mapping[str, object], file: Path) -> list[object]:
    for key, value in section.items():
        if key not in _KINDS and isinstance(value, list) and find_misspelt_list(key) == kind:
            raise UsageError(f"{key!r} in {file} is not known, and its rules would be lost; write {kind!r}")
    listed = section.get(kind, [])
    if not isinstance(listed, list):
        raise UsageError(f"{kind} in {file} must be a list of rules, not {listed!r}")
    return cast("list[object]", listed)


def find_misspelt_list(key: str) -> str | None:
    """Return the list of rules that an unknown key means, if deny or ask rules under the wrong name would be lost."""
    key = key.strip().casefold()
    if key.startswith(_RESTRICTING):
        return "ask" if key.startswith("ask") else "deny"
    if key in _OTHER_WORDS:
        return None
    return next(iter(get_close_matches(key, ("deny", "ask"), n=1, cutoff=0.8)), None)


def _mapping(value: object, file: Path) -> Mapping[str, object]:
    if isinstance(value, DuplicateKey):
        raise UsageError(f"the rules in {file} cannot be read: {value}")
    if not isinstance(value, Mapping):
        raise UsageError(f"the rules in {file} must be an object with deny, ask and allow")
    return cast("Mapping[str, object]", value)


def _entry(kind: RuleKind, item: object, file: Path, base: str) -> _RuleEntry:
    if isinstance(item, str):
        return _RuleEntry(parse_rule(kind, item, written_in=str(file), base=base))
    fields = _mapping(item, file)
    text = fields.get("rule")
    if not isinstance(text, str):
        raise UsageError(f"an entry of {kind} in {file} has no rule: {item!r}")
    rule = parse_rule(kind, text, written_in=str(file), base=base)
    return _RuleEntry(rule, _texts(fields.get("match", ()), file), _texts(fields.get("not_match", ()), file))


def _texts(value: object, file: Path) -> tuple[str, ...]:
    if not isinstance(value, (list, tuple)) or not all(
        isinstance(item, str) for item in cast("Sequence[object]", value)
    ):
        raise UsageError(f"match and not_match in {file} must be lists of examples, not {value!r}")
    return tuple(cast("Sequence[str]", value))


def check_examples(
    rule: Rule, here: PathContext, *, match: Iterable[str], not_match: Iterable[str]
) -> Iterator[RuleProblem]:
    """Try a rule on its own examples, and yield a problem for each that fails."""
    for example in match:
        if not _applies(rule, example, here):
            yield RuleProblem("example fails", rule, f"it does not match {example!r}")
    for example in not_match:
        if _applies(rule, example, here):
            yield RuleProblem("example fails", rule, f"it matches {example!r}")


def _applies(rule: Rule, example: str, here: PathContext) -> bool:
    access, call = dry_run_call(rule.tool, example, here.cwd)
    return concerns(rule, (access,), call, here)


def concerns(rule: Rule, accesses: Iterable[Access], call: DryRunCall, here: PathContext) -> bool:
    """Whether a rule, without any other, decides about anything a call touches."""
    alone = Policies(Rules([rule], here))
    return any(rule.source in alone.decide(access, call).source for access in accesses)
