"""A rough count of tokens, good enough for budgets and statistics, cheap enough for every call."""

_CHARS_PER_TOKEN = 4


def tokens_for(chars: int) -> int:
    """About how many tokens that many characters cost: four each, as English prose and JSON come to."""
    return (chars + _CHARS_PER_TOKEN - 1) // _CHARS_PER_TOKEN


def estimate_tokens(text: str) -> int:
    """About how many tokens a text costs."""
    return tokens_for(len(text))
