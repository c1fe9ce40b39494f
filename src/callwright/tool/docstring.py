"""What a docstring says about a tool and its parameters: Google, NumPy and Sphinx style."""

import re
from collections.abc import Mapping
from inspect import cleandoc

_STARTS_WITH_SECTION = re.compile(
    r"\s*(?::(?:param|type|returns?|rtype|raises)\b|(?:Args|Arguments|Parameters|Params|Returns|Raises|Yields)\s*:?\s*\n)"
)


def has_description(text: str | None) -> bool:
    """Whether a docstring describes the tool itself, not only its parameters."""
    return bool(text and text.strip()) and _STARTS_WITH_SECTION.match(text or "") is None


def read_docstring(text: str | None) -> tuple[str, Mapping[str, str]]:
    """Part a docstring into the description of the tool and those of its parameters."""
    if not text:
        return "", {}
    cleaned = cleandoc(text)
    if "\n" not in cleaned:  # the parser costs more than defining the tool, and one line has nothing to parse
        return cleaned, {}
    from docstring_parser import parse

    parsed = parse(cleaned)
    described: dict[str, str] = {}
    for item in parsed.params:
        words = " ".join((item.description or "").split())
        # NumPy style may describe several parameters at once: `x, y : int`
        described |= {name.strip().lstrip("*"): words for name in item.arg_name.split(",") if words}
    parts = [part for part in (parsed.short_description, parsed.long_description) if part]
    return "\n\n".join(parts), described
