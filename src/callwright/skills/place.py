"""Where in a shell line an argument can be put so that it stays an argument."""

import re

# Quoting is by the quotes around a place. In each of these they are not what they seem: a substitution begins afresh,
# a comment ends at a line break inside the argument, arithmetic evaluates what it is given.
_NESTED = re.compile(r"\$\(|`|<<|[<>]\(|\$'|\$\"|\$\[|\(\(|\[\[|\$\{(?!\w+\})|(?:^|[\s;&|()])#")


def unplaceable(template: str, quote: str) -> str:
    """Say why no argument can be put into a line; empty if it can. `quote` is the one left open at its end."""
    if quote:
        return f"the quote {quote} is not closed"
    found = _NESTED.search(template)
    if found is None:
        return ""
    return f"it holds {found[0].strip()!r}, where an argument cannot be quoted safely; give it to a plain command"
