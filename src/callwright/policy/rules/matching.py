"""Matches rules with accesses, and the policy that decides by deny, ask and allow rules.

A match is certain, possible or excluded. Deny and ask rules act on a possible match, allow rules only on a certain one.
"""

from collections.abc import Iterable
from os import PathLike, fspath
from pathlib import Path

from callwright.core.access import (
    Access,
    Allow,
    Ask,
    Decision,
    DeletePath,
    DeleteResource,
    Deny,
    Reach,
    ReadPath,
    ReadResource,
    RunCommand,
    UseTool,
    WritePath,
    WriteResource,
)
from callwright.core.errors import check_kind
from callwright.core.uri import uri_readings
from callwright.policy.base import Policy, Subject, Tier
from callwright.policy.paths import PathContext, PossiblePaths, possible_paths
from callwright.policy.rules.arguments import fits_value, iterate_given, parse_named_arguments
from callwright.policy.rules.command_patterns import covers, may_name, names_command
from callwright.policy.rules.folders import ANY_NAME, find_in_folders, is_denied_folder, may_hold_denied, may_use_denied
from callwright.policy.rules.hosts import by_domain, by_named_host, by_remote
from callwright.policy.rules.patterns import (
    PathPattern,
    command_pattern,
    path_pattern,
)
from callwright.policy.rules.resource_patterns import resource_pattern
from callwright.policy.rules.rule import NAMED_ARGUMENTS, Match, Rule, match_if
from callwright.policy.shell_line import PartOfLine, is_unclear, paths_for_call, plan_without_redirects
from callwright.policy.tool_names import (
    FILE_FAMILIES,
    JUDGED_BY_ACCESS,
    RESOURCE_FAMILIES,
    canonical,
    families_of,
    family_of,
    identities,
    names_one_server,
    names_tool,
)
from callwright.shell.plan import Verdict

# the argument a specifier without a key is compared with
_PRIMARY = {
    "skill": ("name", "skill", "command"),
    "agent": ("subagent_type", "agent", "agent_type", "name"),
    "websearch": ("query",),
}
_SHOW_NAMES = frozenset({"read", "glob", "ls"})  # of a folder
_NAMED_BY_GROUP = RESOURCE_FAMILIES | {"", "bash"}


def match(rule: Rule, access: Access, subject: Subject, here: PathContext) -> Match:
    """Compare a rule with one access of a call. Resolves links and globs, changes nothing."""
    if not rule.may_cover(subject.spec):
        return Match.NO
    if "*" in rule.tool and not rule.restricts and not names_one_server(rule.tool):
        return Match.NO  # `allow *` would cover tools that are added later, unseen
    if rule.specifier is None:
        return match_if(_names_whole_tool(rule, access, subject))
    found = _by_argument(rule, access, subject)
    match access:
        case RunCommand() if names_tool(rule.tool, ("bash",), ""):
            found = max(found, _by_command(rule, subject))
        case RunCommand() if rule.kind == "deny" and rule.tool in JUDGED_BY_ACCESS and is_unclear(subject):
            found = max(found, Match.MAYBE)
        case RunCommand() if rule.restricts and names_tool(rule.tool, FILE_FAMILIES, ""):
            found = max(found, _by_trees(rule, subject, here))
        case RunCommand() if rule.restricts and names_tool(rule.tool, ("webfetch",), ""):
            found = max(found, by_named_host(rule, subject), by_remote(rule, access, subject))
        case ReadPath(path) | WritePath(path) | DeletePath(path) if _about_files(rule, access, subject):
            places = paths_for_call(path, subject, here)
            by_path = _by_path(rule, access, places, here)
            found = max(found, by_path or _by_contents(rule, access, subject, places, here))
        case Reach(url) if names_tool(rule.tool, ("webfetch",), ""):
            found = max(found, by_domain(rule, url), by_remote(rule, access, subject))
        case ReadResource(uri) | WriteResource(uri) | DeleteResource(uri) if names_tool(
            rule.tool, families_of(access), ""
        ):
            found = max(found, _by_resource(rule, access, uri))
        case _:
            pass
    return max(found, _by_owner(rule, access, subject, here))


def hides(rule: Rule, path: str, here: PathContext) -> bool:
    """Whether a deny rule is about reading a path, with any tool."""
    if rule.specifier is None:
        # a denied tool such as glob is not offered; only `Read` is about reading with any tool
        return names_tool(rule.tool, ("read",), "")
    if not _is_about_reading(rule):
        return False
    return _by_path(rule, ReadPath(path), possible_paths(path, here, shell=False), here) > Match.NO


def forbids_writing(rule: Rule, path: str, here: PathContext) -> bool:
    """Whether a deny rule is about changing a path, or everything below it."""
    if not names_tool(rule.tool, ("edit",), ""):
        return False
    return rule.specifier is None or any(map(_pattern(rule, here).matches, (path, f"{path}/{ANY_NAME}")))


def _is_about_reading(rule: Rule) -> bool:
    return names_tool(rule.tool, FILE_FAMILIES - {"edit"}, "")


def _names_whole_tool(rule: Rule, access: Access, subject: Subject) -> bool:
    names = families_of(access)
    if rule.restricts or not isinstance(subject, PartOfLine):
        # `Bash` allows a command but never what its line writes to: an Edit rule decides about a redirect
        names |= identities(subject.spec)
    grouped = rule.restricts or family_of(access) in _NAMED_BY_GROUP
    return names_tool(rule.tool, names, subject.spec.group if grouped else "")


def _about_files(rule: Rule, access: Access, subject: Subject) -> bool:
    families = {family_of(access)}
    if rule.kind == "deny":
        families.add("read")  # a file that may not be read may not be replaced either
    if rule.kind == "ask" and (isinstance(access, DeletePath) or _may_move(access, subject)):
        families.add("read")  # in another place it could be read unasked
    if isinstance(access, ReadPath) and (rule.restricts or canonical(subject.spec.name) in FILE_FAMILIES):
        families |= FILE_FAMILIES - {"read", "edit"} if rule.restricts else {canonical(subject.spec.name)}
    return names_tool(rule.tool, families, "")


def _may_move(access: Access, subject: Subject) -> bool:
    """Whether a call that writes to a path may move what is there: mv removes it, a tool only writes."""
    by_tool = isinstance(access, WritePath) and not isinstance(subject, PartOfLine)
    return by_tool and canonical(subject.spec.name) not in FILE_FAMILIES


def _by_path(rule: Rule, access: Access, places: PossiblePaths, here: PathContext) -> Match:
    pattern = _pattern(rule, here)
    if not rule.restricts:
        return match_if(places.known and all(pattern.matches(place) for place in places.all))
    if any(pattern.matches(place) for place in places.all):
        return Match.YES
    if isinstance(access, DeletePath) and any(pattern.below(place) for place in places.all):
        return Match.YES  # removing a folder removes the protected files in it
    return Match.NO if places.known else Match.MAYBE


def _by_trees(rule: Rule, subject: Subject, here: PathContext) -> Match:
    """Match files that a command reads without naming them: `grep -r . secret` reads what `Read(secret/**)` denies."""
    if not isinstance(subject, PartOfLine) or (command := subject.command) is None:
        return Match.NO
    if command.verdict is not Verdict.DESTRUCTIVE and not _is_about_reading(rule):
        return Match.NO
    return Match.MAYBE if may_use_denied(_pattern(rule, here), command, subject.named) else Match.NO


def _by_contents(rule: Rule, access: Access, subject: Subject, places: PossiblePaths, here: PathContext) -> Match:
    """Match files in a folder that is removed or moved: `mv secret b` takes them from under `Read(secret/**)`."""
    if not rule.restricts or not (isinstance(access, DeletePath) or _may_move(access, subject)):
        return Match.NO
    pattern = _pattern(rule, here)
    return Match.YES if is_denied_folder(pattern, places) else Match(may_hold_denied(pattern, places))


def _pattern(rule: Rule, here: PathContext) -> PathPattern:
    base = rule.base or here.cwd
    return path_pattern(rule.specifier or "**", base=base, cwd=here.cwd, home=here.home, wide=rule.restricts)


def _by_resource(rule: Rule, access: Access, uri: str) -> Match:
    pattern = resource_pattern(rule.specifier or "**")
    if not rule.restricts:
        return match_if(pattern.allows(uri))
    if rule.specifier == "*" or pattern.catches(uri):
        return Match.YES
    if isinstance(access, DeleteResource) and pattern.may_lie_below(uri):
        return Match.YES  # deleting a table deletes the rows the rule protects
    return Match.NO if uri_readings(uri) else Match.MAYBE


def _by_command(rule: Rule, subject: Subject) -> Match:
    if not isinstance(subject, PartOfLine):
        return Match.MAYBE
    pattern = command_pattern(rule.specifier or "*")
    if not rule.restricts:
        return match_if(covers(pattern, subject))
    if pattern.anything:
        return Match.YES
    if subject.command is None:
        return Match.MAYBE if subject.plan.problem else Match.NO
    if names_command(pattern, subject.command):
        return Match.YES
    return Match.MAYBE if may_name(pattern, subject.command) else Match.NO


def _by_owner(rule: Rule, access: Access, subject: Subject, here: PathContext) -> Match:
    """Match what an allowed command itself writes inside the workspace; its redirects are judged separately."""
    if (
        rule.restricts
        or not isinstance(access, (WritePath, DeletePath, Reach))
        or not names_tool(rule.tool, ("bash",), "")
    ):
        return Match.NO
    if not isinstance(subject, PartOfLine) or subject.command is None:
        return Match.NO
    if subject.command.redirected and access not in plan_without_redirects(subject.command).accesses:
        return Match.NO
    if not covers(command_pattern(rule.specifier or "*"), subject):
        return Match.NO
    if isinstance(access, Reach):
        return Match.YES
    places = paths_for_call(access.path, subject, here)
    return match_if(places.known and all(here.inside(real) for real in places.real))


def _by_argument(rule: Rule, access: Access, subject: Subject) -> Match:
    if rule.tool in JUDGED_BY_ACCESS and ":" not in (rule.specifier or ""):
        return Match.NO
    if not names_tool(rule.tool, identities(subject.spec), subject.spec.group):
        return Match.NO
    if not rule.restricts and (rule.tool in RESOURCE_FAMILIES or not isinstance(access, UseTool)):
        return Match.NO
    arguments, family = subject.arguments, canonical(subject.spec.name)
    if NAMED_ARGUMENTS.fullmatch(rule.specifier or "") and (named := parse_named_arguments(rule, arguments, family)):
        return match_if(all(fits_value(value, arguments[key]) for key, value in named))
    primary = _PRIMARY.get(family, ())
    if rule.restricts and not primary and not isinstance(access, UseTool):
        return Match.NO
    given = iterate_given(arguments, primary, rule)
    return match_if(any(fits_value(rule.specifier or "", each) for each in given))


class Rules(Policy):
    """Decides by a set of rules. Deny beats ask beats allow; their order and origin never matter.

    Args:
        rules: From `rules_of`, `parse_rule` or `load_rules(…).rules`.
        here: The folders that path patterns start from; the current folder by default.
        filtered: Tools that read whole folders leave out what `withholds` names, so that they need no question.
    """

    tier = Tier.RULE

    def __init__(self, rules: Iterable[Rule], here: PathContext | None = None, *, filtered: bool = False) -> None:
        distinct = dict.fromkeys(rules)
        for rule in distinct:
            check_kind("a rule", rule, Rule, 'write rules_of(allow=["Read(docs/**)"])')
        self.here = here or PathContext.of(Path.cwd())
        self._filtered = filtered
        self.rules = tuple(sorted(distinct, key=lambda rule: (rule.text, rule.written_in, rule.base)))
        self._by_kind = {
            kind: tuple(rule for rule in self.rules if rule.kind == kind) for kind in ("deny", "ask", "allow")
        }
        # a rule that asks about every call of a tool is not about certain files
        asking = (rule for rule in self._by_kind["ask"] if rule.specifier)
        self._asking = tuple(rule for rule in asking if names_tool(rule.tool, FILE_FAMILIES, ""))

    def judge(self, access: Access, subject: Subject) -> Decision | None:
        found, sure = self._strictest(self._by_kind["deny"], access, subject)
        if found and sure:
            return Deny(f"the rule {found.text} forbids it", found.source)
        doubtful = found
        found, _ = self._strictest(self._by_kind["ask"], access, subject)
        if doubtful:
            return Ask(
                f"the rule {doubtful.text} may forbid it, because what would run is not certain",
                doubtful.source,
                firm=True,
            )
        if found:
            return Ask(f"the rule {found.text} asks for approval", found.source)
        found, sure = self._strictest(self._by_kind["allow"], access, subject)
        return Allow(f"the rule {found.text} allows it", found.source) if found and sure else None

    def hides(self, path: str | PathLike[str]) -> bool:
        """Whether a deny rule forbids reading a file; listings and searches leave it out."""
        return any(hides(rule, fspath(path), self.here) for rule in self._by_kind["deny"])

    @property
    def asks_about_files(self) -> bool:
        """Whether an ask rule is about certain files, to read or to change them."""
        return bool(self._asking)

    @property
    def asks_about_reading(self) -> bool:
        """Whether an ask rule is about reading certain files."""
        return any(map(_is_about_reading, self._asking))

    def withholds(self, path: str | PathLike[str]) -> bool:
        """Whether a file may not be read unasked: a deny rule forbids it, or an ask rule is about it."""
        return self.hides(path) or any(hides(rule, fspath(path), self.here) for rule in self._asking)

    def forbids_writing(self, path: str | PathLike[str], *, asked: bool = False) -> bool:
        """Whether a deny rule forbids changing a file, or everything in a folder; the sandbox keeps it read-only.

        Args:
            path: The file or folder.
            asked: Whether ask rules count too.
        """
        rules = (*self._by_kind["deny"], *self._asking) if asked else self._by_kind["deny"]
        return any(forbids_writing(rule, fspath(path), self.here) for rule in rules)

    def denied_places(self, *, asked: bool = False) -> tuple[str, ...]:
        """Return the paths that `hides` is true of, or of something below them, as far as rules begin with one.

        Args:
            asked: Whether those that `withholds` is true of are returned.
        """
        rules = (*self._by_kind["deny"], *(self._asking if asked else ()))
        about = (rule for rule in rules if rule.specifier and _is_about_reading(rule))
        return tuple(dict.fromkeys(place for rule in about for place in _pattern(rule, self.here).beginnings()))

    def forbidding_rule(self, name: str, group: str = "") -> Rule | None:
        """Return the deny rule that forbids every call of a tool, which is then not offered to the model; None if none.

        Args:
            name: The tool's name.
            group: The group it belongs to, such as an MCP server.
        """
        denies = (rule for rule in self._by_kind["deny"] if rule.specifier is None)
        return next((rule for rule in denies if names_tool(rule.tool, (canonical(name),), group)), None)

    def _strictest(self, rules: tuple[Rule, ...], access: Access, subject: Subject) -> tuple[Rule | None, bool]:
        doubtful: Rule | None = None
        for rule in rules:
            if rule.session and rule.session != subject.session_id:
                continue
            result = match(rule, access, subject, self.here) or self._match_search(rule, access, subject)
            if result is Match.YES:
                return rule, True
            if result is Match.MAYBE and doubtful is None:
                doubtful = rule
        return doubtful, False

    def _match_search(self, rule: Rule, access: Access, subject: Subject) -> Match:
        """Match files in a folder that a tool reads as a whole: grep in `.` reads what `Read(secret/**)` denies."""
        by_line = isinstance(subject, PartOfLine)
        if self._filtered or not rule.restricts or by_line or not isinstance(access, ReadPath):
            return Match.NO
        if rule.specifier is None or not _is_about_reading(rule) or canonical(subject.spec.name) in _SHOW_NAMES:
            return Match.NO
        return Match(find_in_folders(_pattern(rule, self.here), paths_for_call(access.path, subject, self.here)))
