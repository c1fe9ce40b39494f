"""The argument parser: messages built from actions and values, the same on every supported Python."""

import subprocess
import sys
from pathlib import Path

import pytest

from callwright.cli.options import parse_options
from callwright.cli.parsing import Parser, positive_amount, positive_int
from callwright.cli.startup import run_options


def sample() -> Parser:
    parser = Parser("callwright sample")
    parser.add_argument("name")
    parser.add_argument("target", nargs="*")
    parser.add_argument("--allowedTools", "--allowed-tools", nargs="+", action="extend", default=[])
    parser.add_argument("--format", choices=("text", "json"), default="text")
    parser.add_argument("--limit", type=positive_int)
    parser.add_argument("--usd", type=positive_amount)
    parser.add_argument("--budget", type=int)
    parser.add_argument("--seconds", type=float)
    parser.add_argument("--json", action="store_true")
    return parser


def fail(parser: Parser, capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    with pytest.raises(SystemExit) as ended:
        parser.parse_args(arguments)
    assert ended.value.code == 2
    return capsys.readouterr().err


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("", "missing NAME"),
        ("n --format xml", "--format: invalid value 'xml'; choose from text, json"),
        ("n --format jsn", "--format: invalid value 'jsn'; did you mean json?"),
        ("n --limit", "--limit: expected a value"),
        ("n --limit --json", "--limit: expected a value"),
        ("n --limit 0", "--limit: expected a number of at least 1, got '0'"),
        ("n --limit ²", "--limit: expected a number of at least 1, got '²'"),
        ("n --usd nan", "--usd: expected an amount above 0, got 'nan'"),
        ("n --budget many", "--budget: expected a whole number, got 'many'"),
        ("n --seconds soon", "--seconds: expected a number, got 'soon'"),
        ("n --allowedTools", "--allowed-tools: expected a value"),
        ("n --json=yes", "--json: takes no value"),
        ("n --jsn", "unknown option --jsn; did you mean --json?"),
        ("n --bin", "unknown option --bin"),  # of --json it has little but the dashes
        ("n --nothing-like-it=3", "unknown option --nothing-like-it=3"),
    ],
)
def test_error_names_argument_and_value(capsys: pytest.CaptureFixture[str], line: str, message: str) -> None:
    assert fail(sample(), capsys, *line.split()) == f"callwright sample: {message} (see callwright sample --help)\n"


def test_extra_arguments_suggest_quotes(capsys: pytest.CaptureFixture[str]) -> None:
    parser = Parser("callwright none")
    assert "unexpected argument: a (did you forget quotes?)" in fail(parser, capsys, "a")
    assert "unexpected arguments: a b (did you forget quotes?)" in fail(parser, capsys, "a", "b")


def test_subcommand_errors_name_the_subcommand(capsys: pytest.CaptureFixture[str]) -> None:
    parser = Parser("callwright top")
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    show = actions.add_parser("show")
    show.add_argument("id", metavar="ID")
    show.add_argument("rest", nargs="...", metavar="OPTIONS")
    assert fail(parser, capsys) == "callwright top: missing ACTION: show (see callwright top --help)\n"
    assert "ACTION: invalid value 'shwo'; did you mean show?" in fail(parser, capsys, "shwo")
    assert fail(parser, capsys, "show") == "callwright top show: missing ID (see callwright top show --help)\n"
    assert parser.parse_args(["show", "s1", "--x"]).rest == ["--x"]


def test_intermixed_arguments_are_parsed_and_checked(capsys: pytest.CaptureFixture[str]) -> None:
    options, extras = sample().parse_known_intermixed_args(["n", "--json", "a", "b", "--limit", "3"])
    assert (options.name, options.target, options.limit, extras) == ("n", ["a", "b"], 3, [])
    with pytest.raises(SystemExit):
        sample().parse_known_intermixed_args(["--json"])
    assert "missing NAME" in capsys.readouterr().err


def test_help_shows_required_positions(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        sample().parse_args(["--help"])
    assert ended.value.code == 0 and "name [target ...]" in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize(
    ("option", "told"),
    [
        ("--yolo", "unknown option --yolo; did you mean --permission-mode bypass?"),
        ("--approval-mode=yolo", "unknown option --approval-mode=yolo; did you mean --permission-mode?"),
        ("-m", "unknown option -m; did you mean --model?"),
        ("--worktree", "--worktree is not supported: use git worktree add, and start there"),
    ],
)
def test_options_of_other_agents_are_translated(capsys: pytest.CaptureFixture[str], option: str, told: str) -> None:
    with pytest.raises(SystemExit):
        parse_options(["-p", "hi", option])
    assert capsys.readouterr().err == f"callwright: {told} (see callwright -p --help)\n"


def test_contradicting_options_are_errors(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parse_options(["--resume", "a", "--continue"])
    assert "--resume and --continue cannot be combined" in capsys.readouterr().err


def test_rules_are_split_outside_parentheses() -> None:
    options = parse_options(
        ["--allowedTools", "Bash(git log *),Edit", "Read(a, b) Write", "--disallowedTools", "Bash(echo {),Read(c)"]
    )
    asked = run_options(options)
    assert asked.allow == ("Bash(git log *)", "Edit", "Read(a, b)", "Write")
    assert asked.deny == ("Bash(echo {)", "Read(c)")


def test_version_imports_neither_argparse_nor_pydantic() -> None:
    probe = "import sys; sys.argv = ['callwright', '--version']; from callwright.__main__ import main; main(); "
    probe += "print(*(sys.modules.keys() & {'argparse', 'pydantic', 'rich', 'asyncio'}))"
    done = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=True, cwd=Path.cwd())
    assert done.stdout.splitlines()[1] == ""


def test_parsing_imports_no_app() -> None:
    probe = "import sys, callwright.cli.options; print(*(sys.modules.keys() & {'pydantic', 'callwright.app', 'rich'}))"
    done = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""
