"""Which variables a line may set without changing what programs do."""

import re

_HARMLESS = frozenset(
    (
        "LANG LANGUAGE TZ TERM COLUMNS LINES NO_COLOR FORCE_COLOR CLICOLOR CLICOLOR_FORCE COLORTERM NODE_ENV CI "
        "PYTHONUNBUFFERED PYTHONDONTWRITEBYTECODE PYTHONIOENCODING RUST_BACKTRACE RUST_LOG GREP_COLOR GREP_COLORS "
        "LS_COLORS BLOCK_SIZE TIME_STYLE QUOTING_STYLE LC_ALL LC_COLLATE LC_CTYPE LC_MESSAGES LC_MONETARY LC_NUMERIC "
        "LC_TIME POSIXLY_CORRECT GIT_OPTIONAL_LOCKS AWS_PAGER AWS_REGION AWS_DEFAULT_REGION AWS_DEFAULT_OUTPUT "
        "HOMEBREW_NO_AUTO_UPDATE HOMEBREW_NO_ANALYTICS PIP_DISABLE_PIP_VERSION_CHECK PIP_NO_INPUT"
    ).split()
)
# names in small letters are the script's own, but for the few that programs or bash itself look at
_OWN = re.compile(r"[a-z_][a-z0-9_]*\Z")
_TAKEN = re.compile(
    r".*_proxy\Z|npm_config_.*|histchars\Z|auto_resume\Z|_\Z|cdpath\Z|path\Z|fpath\Z|prompt\Z|ps[1-4]\Z"
)
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")


def harmless(name: str, value: str | None) -> bool:
    """Whether setting the variable leaves every later command what it seems."""
    if name in _HARMLESS:
        return not (name == "AWS_PAGER" and value)
    return bool(_OWN.match(name)) and not _TAKEN.match(name)


def is_name(text: str) -> bool:
    """Whether the text is a plain variable name, without a subscript that bash would evaluate."""
    return bool(_NAME.match(text))
