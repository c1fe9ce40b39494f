"""A line's parts are judged with what the whole line is known to be in mind."""

from callwright.core.access import Allow, Ask, Reach, RunCommand
from callwright.core.spec import Effect
from callwright.policy import ByMode, Policies
from callwright.policy.base import make_printable
from callwright.policy.dry_run import dry_run_call, dry_run_line
from callwright.policy.rules.command_patterns import covers
from callwright.policy.rules.patterns import command_pattern
from callwright.policy.shell_line import PartOfLine, iterate_parts
from callwright.shell.plan import ShellPlan, SimpleCommand, Verdict

_ACCESS, _CALL = RunCommand("build all", "/w"), dry_run_line("build all")
_PATTERN = command_pattern("build *")


def _part(
    *, proven: bool = True, literal: bool = True, assignments: tuple[tuple[str, str | None], ...] = ()
) -> PartOfLine:
    command = SimpleCommand(
        ("build", "all"), "build all", literal=literal, assignments=assignments, cwd="/w", verdict=Verdict.READ_ONLY
    )
    return PartOfLine(_CALL, _ACCESS, ShellPlan("build all", (command,), proven=proven), command)


def test_unparsed_line_has_no_harmless_part() -> None:
    assert _part().verdict is Verdict.READ_ONLY
    assert _part(proven=False).verdict is Verdict.UNKNOWN


def test_pattern_covers_only_literal_parsed_commands() -> None:
    assert covers(_PATTERN, _part())
    assert covers(_PATTERN, _part(assignments=(("LANG", "C"),)))
    assert not covers(_PATTERN, _part(proven=False))
    assert not covers(_PATTERN, _part(literal=False))
    assert not covers(_PATTERN, _part(assignments=(("LD_PRELOAD", "./x.so"),)))


def test_line_without_commands_is_judged() -> None:
    plan = ShellPlan("?", problem="it cannot be read")
    assert [part.command for _, part in iterate_parts(_ACCESS, _CALL, plan)] == [None]


def test_danger_is_denied_in_a_harmless_looking_line() -> None:
    harmless = SimpleCommand(("ls",), "ls", verdict=Verdict.READ_ONLY)
    plan = ShellPlan("ls", (harmless,), verdict=Verdict.READ_ONLY, proven=True, dangers=("it is a trap",))
    assert None in [part.command for _, part in iterate_parts(_ACCESS, _CALL, plan)]


def test_sending_data_is_not_an_edit() -> None:
    _, call = dry_run_call("web_fetch", "https://example.com", "/w")
    policies = Policies(ByMode("auto", network_reads="allow"))
    assert isinstance(policies.decide(Reach("https://example.com"), call), Allow)
    assert isinstance(policies.decide(Reach("https://example.com", Effect.WRITE), call), Ask)


def test_printable_text_hides_nothing() -> None:
    assert make_printable("a\tb\r\x1b[2K\u202ec") == "a\\tb\\r\\x1b[2K\\u202ec"
    assert make_printable("x" * 500).endswith("x" * 60)
    assert len(make_printable("x" * 500)) < 130
