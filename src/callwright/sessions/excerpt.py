"""Shows where a searched text stands in a record."""

import json

_AROUND_CHARS = 60


def needle(text: str) -> str:
    """The text as it stands inside a record's JSON."""
    return json.dumps(text, ensure_ascii=False)[1:-1]


def excerpt(body: str, wanted: str) -> str:
    """A line of what stands around the first place a text was found."""
    at = max(body.lower().find(wanted.lower()), 0)
    start, end = max(at - _AROUND_CHARS, 0), at + len(wanted) + _AROUND_CHARS
    return f"{'…' if start else ''}{body[start:end]}{'…' if end < len(body) else ''}"
