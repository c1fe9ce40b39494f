"""Matches rules about hosts with addresses, with the words of commands, and with the remotes of git."""

import re
from urllib.parse import urlsplit

from callwright.core.access import Reach, RunCommand
from callwright.core.uri import ADDRESS
from callwright.policy.base import Subject
from callwright.policy.rules.patterns import domain_matches, host_readings
from callwright.policy.rules.rule import Match, Rule, match_if
from callwright.policy.shell_line import command_of
from callwright.shell.plan import Verdict

_ONE_SLASH = re.compile(r"(?:https?|ftps?|wss?):/(?!/)", re.IGNORECASE)
_PORT = re.compile(r"(?<![\[:]):\d+\Z|(?<=\]):\d+\Z")
_HOST = re.compile(r"(?:[^\s/@:]+@)?[\w-]+(?:\.[\w-]+)+\.?(?:[:/].*)?")


def by_domain(rule: Rule, url: str) -> Match:
    """Match the host of an address."""
    readings = _hosts_of(url)
    if not readings:  # such as `https://`: a deny rule cannot be excluded
        return Match.MAYBE if rule.restricts else Match.NO
    wanted = rule.specifier or ""
    domain = wanted.removeprefix("domain:")
    if not rule.restricts and (domain == wanted or "/" in domain):
        return Match.NO  # without `domain:`, or with an address, an allow rule would cover more than it says
    if not rule.restricts:
        return match_if(all(_names_host(domain, host) for host in readings))
    named = domain.split("//", 1)[-1].split("/", 1)[0].rpartition("@")[2]  # a deny rule is about the host of an address
    named = _PORT.sub("", named.strip()).strip("[]")
    named = re.sub(r"\*+", "*", named)  # else a deny rule with ** would match one label; an allow rule is not widened
    return match_if(any(_names_host(named, host) for host in readings))


def by_named_host(rule: Rule, subject: Subject) -> Match:
    """Match a host that an unknown program is given: `pip install https://host/x`, `ssh host`."""
    command = command_of(subject)
    if command is None:
        return Match.NO
    from callwright.policy.git_remotes import sets_address  # for shell lines only

    # git remote add x https://host is a part of a line that reaches x
    given = command.words[1:] if command.verdict is Verdict.UNKNOWN or sets_address(command) else ()
    words = (*given, *(value for _, value in command.assignments if value))  # https_proxy=http://host
    addresses = [url for word in words for url in ADDRESS.findall(word)]
    if "*" not in (rule.specifier or "").removeprefix("domain:").removeprefix("*."):  # else each file would be a host
        addresses += filter(_HOST.fullmatch, words)
    return Match.MAYBE if any(by_domain(rule, address) is Match.YES for address in addresses) else Match.NO


def by_remote(rule: Rule, access: RunCommand | Reach, subject: Subject) -> Match:
    """Match the host behind the name of a git remote: `git push origin`."""
    command = command_of(subject) if rule.restricts else None
    from callwright.policy.git_remotes import find_remotes, uses_remotes  # for shell lines only

    if command is None or not uses_remotes(command, access):
        return Match.NO
    remotes = find_remotes(command, access.url if isinstance(access, Reach) else "")
    matches = [by_domain(rule, address) is Match.YES for address in remotes.addresses]
    if not remotes.known or (any(matches) and not (remotes.named and all(matches))):
        return Match.MAYBE
    return match_if(any(matches))


def _hosts_of(url: str) -> frozenset[str]:
    """Return every host that a program could connect to for an address; empty if they cannot be listed."""
    found = frozenset[str]()
    short = _ONE_SLASH.match(url)  # curl reads https:/host as https://host
    for text in (url if "//" in url else f"//{url}", *((f"//{url[short.end() :]}",) if short else ())):
        try:
            parts = urlsplit(text)
            readings = host_readings(parts.hostname or "")
        except ValueError:
            return frozenset()
        if not readings or "\\" in parts.netloc:  # some programs end the host at a backslash
            return frozenset()
        found |= readings
    return found


def _names_host(domain: str, host: str) -> bool:
    """Whether the domain of a rule is that of a host, in any of its spellings."""
    return any(domain_matches(reading, host) for reading in host_readings(domain) or (domain,))
