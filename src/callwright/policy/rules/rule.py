"""One rule as a value, and how its text is read."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, TypeAlias

from callwright.core.errors import UsageError
from callwright.policy.tool_names import canonical

RuleKind: TypeAlias = Literal["deny", "ask", "allow"]


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule as it was written: `Bash(git log *)`, `Read(~/.ssh/**)`, `mcp__github`."""

    kind: RuleKind
    text: str
    tool: str
    """The tool's name in the spelling rules are compared in; may hold `*`."""
    specifier: str | None = None
    """What stands in the parentheses; None for a rule about the whole tool."""
    written_in: str = ""
    """The file, option or answer it comes from."""
    base: str = ""
    """The folder a path pattern with one leading slash starts from; empty for the working folder."""
    session: str = ""
    """The only session it holds in; empty for all."""

    @property
    def source(self) -> str:
        """Name the rule the way decisions do."""
        return f"{self.kind} rule {self.text}" + (f" in {self.written_in}" if self.written_in else "")

    @property
    def restricts(self) -> bool:
        """It restricts, so where there is doubt it applies."""
        return self.kind != "allow"


def parse_rule(kind: RuleKind, text: str, *, written_in: str = "", base: str = "", session: str = "") -> Rule:
    """Read `Tool` or `Tool(specifier)`; anything else is a `UsageError`, so that no rule is lost in silence."""
    name, opened, rest = text.strip().partition("(")
    name = name.strip()
    if not name or (opened and not rest.endswith(")")) or any(character in name for character in " )"):
        raise UsageError(
            f"the {kind} rule {text!r} is not of the form Tool or Tool(specifier), such as Bash(git log *)"
        )
    specifier = rest[:-1].strip() if opened else None
    return Rule(kind, text.strip(), canonical(name), specifier or None, written_in, base, session)


def rules_of(
    *,
    allow: Iterable[str] = (),
    ask: Iterable[str] = (),
    deny: Iterable[str] = (),
    written_in: str = "",
    base: str = "",
) -> tuple[Rule, ...]:
    """Read three lists of rules that were written in one place."""
    lists: tuple[tuple[RuleKind, Iterable[str]], ...] = (("deny", deny), ("ask", ask), ("allow", allow))
    for kind, texts in lists:
        if isinstance(texts, str):  # its letters would be rules about tools of one letter, and protect nothing
            raise UsageError(f"{kind}={texts!r} is one text where a list of rules belongs; write {kind}=[{texts!r}]")
    return tuple(parse_rule(kind, text, written_in=written_in, base=base) for kind, texts in lists for text in texts)
