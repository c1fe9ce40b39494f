"""Adds rules to settings files, and removes them."""

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast, get_args

from callwright.core.errors import UsageError
from callwright.core.json import parse_strictly
from callwright.policy.rules.rule import RuleKind, parse_rule
from callwright.system.private_files import replace_private

_KINDS = frozenset(get_args(RuleKind))


def save_rules(file: str | Path, texts: Sequence[str], kind: RuleKind = "allow") -> None:
    """Add rules to a list of a settings file and keep everything else in it. Writes all of them or none.

    Args:
        file: The settings file; created if missing, and a link is followed.
        texts: Rules such as `Bash(npm test)`.
        kind: The list: `allow`, `ask` or `deny`.

    Raises:
        UsageError: A text is not a rule, or the file is not valid.
    """
    path = Path(os.path.realpath(file))  # replacing a link would detach it from the file it points to
    for text in texts:
        parse_rule(kind, text)  # raises before anything is written
    settings = _read_settings(path)
    rules = _rule_list(settings, kind, path)
    known = [_rule_text(entry) for entry in rules]
    rules.extend(text for text in dict.fromkeys(texts) if text not in known)
    _write_settings(path, settings)


def remove_rule(file: str | Path, text: str, kind: RuleKind) -> None:
    """Remove a rule from a list of a settings file, with its examples, and keep everything else in the file.

    Args:
        file: The settings file; a link is followed.
        text: The rule as it is written in the file.
        kind: The list: `allow`, `ask` or `deny`.

    Raises:
        UsageError: The list has no such rule, or the file is not valid.
    """
    path = Path(os.path.realpath(file))
    settings = _read_settings(path)
    rules = _rule_list(settings, kind, path)
    left = [entry for entry in rules if _rule_text(entry) != text]
    if len(left) == len(rules):
        raise UsageError(f"there is no {kind} rule {text!r} in {path}; look at the file again")
    rules[:] = left
    _write_settings(path, settings)


def _rule_text(entry: object) -> object:
    """Return the rule of an entry, which may have examples beside it."""
    return cast("dict[str, object]", entry).get("rule") if isinstance(entry, dict) else entry


def _rule_list(settings: dict[str, Any], kind: RuleKind, path: Path) -> list[object]:
    permissions: object = settings.setdefault("permissions", {})
    if kind in _KINDS and isinstance(permissions, dict):
        rules: object = cast("dict[str, object]", permissions).setdefault(kind, [])
        if isinstance(rules, list):
            return cast("list[object]", rules)
    raise UsageError(f"permissions.{kind} in {path} is not a list; correct it by hand first")


def _read_settings(path: Path) -> dict[str, Any]:
    try:
        content = parse_strictly(path.read_text("utf-8-sig"))
    except FileNotFoundError:
        return {}
    except ValueError as error:
        raise UsageError(f"{path} is not valid JSON ({error}); correct it by hand first") from None
    if not isinstance(content, dict):
        raise UsageError(f"{path} does not hold an object; correct it by hand first")
    return cast("dict[str, Any]", content)


def _write_settings(path: Path, settings: dict[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps(settings, indent=2, ensure_ascii=False) + "\n"
    replace_private(path, text.encode(errors="backslashreplace"))
