"""Lists the hosts that an address may mean, and compares them with the domain of a rule."""

import re
from urllib.parse import urlsplit

from callwright.policy.rules.patterns import domain_matches, host_readings

_ONE_SLASH = re.compile(r"(?:https?|ftps?|wss?):/(?!/)", re.IGNORECASE)


def hosts_of(url: str) -> frozenset[str]:
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


def names_host(domain: str, host: str) -> bool:
    """Whether the domain of a rule is that of a host, in any of its spellings."""
    return any(domain_matches(reading, host) for reading in host_readings(domain) or (domain,))
