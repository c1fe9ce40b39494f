"""A rough count of tokens, good enough for budgets and statistics, cheap enough for every call."""

_CHARS_PER_TOKEN = 4


def estimate_tokens(text: str) -> int:
    """About how many tokens a text costs: four characters each, as English prose and JSON come to."""
    return (len(text) + _CHARS_PER_TOKEN - 1) // _CHARS_PER_TOKEN
