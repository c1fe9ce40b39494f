"""What a docstring says about a tool and its parameters: Google, NumPy and Sphinx style."""

from collections.abc import Mapping
from inspect import cleandoc


def read_docstring(text: str | None) -> tuple[str, Mapping[str, str]]:
    """Part a docstring into the description of the tool and those of its parameters."""
    if not text:
        return "", {}
    cleaned = cleandoc(text)
    if "\n" not in cleaned:  # the parser costs more than defining the tool, and one line has nothing to parse
        return cleaned, {}
    from docstring_parser import parse

    parsed = parse(cleaned)
    described = {item.arg_name: " ".join((item.description or "").split()) for item in parsed.params}
    parts = [part for part in (parsed.short_description, parsed.long_description) if part]
    return "\n\n".join(parts), {name: words for name, words in described.items() if words}
