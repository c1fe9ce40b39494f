"""`callwright permissions`: tests how a call would be judged, and lists the rules in force."""

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from callwright.app.app import App
from callwright.app.locations import FOLDER, Locations
from callwright.app.permission_test import judge_call
from callwright.app.permissions import withheld_rules
from callwright.app.settings_file import SCHEMA_FILE
from callwright.app.trust import Trust
from callwright.cli.commands.call import app_without_model
from callwright.cli.main import DENIED, DONE, PAUSED, USAGE
from callwright.cli.parsing import Parser
from callwright.cli.render.text import print_json, print_notice, print_text
from callwright.core.errors import UsageError
from callwright.policy import Rule

_CODES = {"allow": DONE, "ask": PAUSED, "deny": DENIED}
_DESCRIPTION = "Tests how a call would be judged in this folder, and lists the rules in force."
_EPILOG = """\
Uses the settings, trust, mode, rules, folders and tools the agent would have in this folder. Neither the call nor a
hook runs.

exit codes: 0 allow, 4 ask, 3 deny, 2 error in the arguments or settings

examples:
  callwright permissions test bash 'git push -f'
  callwright permissions test write '{"path": ".env", "content": ""}' --permission-mode auto
  callwright permissions test bash 'make all' --allow 'Bash(make *)' --json
  callwright permissions explain
"""


def run(arguments: Sequence[str]) -> int:
    """Run the subcommand; the exit code is 0 for allow, 4 for ask, 3 for deny and 2 for an error in the arguments."""
    options = _parser().parse_args(arguments)
    if options.action == "schema":
        print_text(SCHEMA_FILE.read_text("utf-8"), end="")
        return DONE
    try:
        return _test(options) if options.action == "test" else _explain(options)
    except UsageError as error:
        print_notice(f"permissions: {error}")
        return USAGE


def _parser() -> argparse.ArgumentParser:
    parser = Parser("callwright permissions", description=_DESCRIPTION, epilog=_EPILOG)
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    test = actions.add_parser("test", help="show the decision about a call", epilog=_EPILOG)
    test.add_argument("tool", help="the name of a tool: bash, read, edit, web_fetch, …")
    test.add_argument("argument", help="the command line, path or URL, or all arguments as a JSON object")
    explain = actions.add_parser("explain", help="list the mode, the trust and the rules in force, with their problems")
    for each in (test, explain):
        _add_options(each)
    actions.add_parser("schema", help="print the JSON Schema of settings files, for editors")
    return parser


def _add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--permission-mode", "--mode", default="", metavar="MODE")
    for kind, also in (("allow", "--allowedTools"), ("ask", None), ("deny", "--disallowedTools")):
        names = [f"--{kind}", *([also] if also else [])]
        parser.add_argument(*names, dest=kind, action="append", default=[], metavar="RULE")
    parser.add_argument("--settings", action="append", default=[], metavar="FILE|JSON")
    parser.add_argument("--add-dir", nargs="+", action="extend", default=[], metavar="FOLDER")
    parser.add_argument("--cwd", type=Path, default=None, metavar="FOLDER", help="default: the current folder")
    parser.add_argument("--trust", action="store_true", help="judge as if this folder were trusted")
    parser.add_argument("--json", action="store_true", help="print JSON")


def _app(options: argparse.Namespace) -> tuple[App, bool]:
    """Return the app of the folder, and whether its files are trusted."""
    if options.cwd is not None and not options.cwd.is_dir():
        raise UsageError(f"--cwd {options.cwd}: not a folder")
    app = app_without_model(options, options.cwd)
    return app, bool(options.trust) or Trust(app.locations).given


def _test(options: argparse.Namespace) -> int:
    app, trusted = _app(options)
    for problem in app.problems:
        print_notice(f"warning: {problem}")
    report = judge_call(app, options.tool, options.argument, withheld_rules(app.locations, trusted=trusted))
    if options.json:
        print_json({**report.fields, "mode": app.switch.mode, "trusted": trusted}, indent=2)
    else:
        print_text(_shorten_paths(report.readable(), app.locations))
    return _CODES[report.fields["decision"]]


def _explain(options: argparse.Namespace) -> int:
    app, trusted = _app(options)
    withheld = withheld_rules(app.locations, trusted=trusted)
    default = app.settings.place("permissions", "defaultMode")
    report: dict[str, Any] = {
        "mode": app.switch.mode,
        "mode_from": "the command line" if options.permission_mode else default or "default",
        "project": str(app.locations.project),
        "trusted": bool(options.trust) or Trust(app.locations).complete,
        "withheld": list(app.settings.withheld),
        "rules": [_rule_fields(rule) for rule in app.rules.rules],
        "ignored": [_rule_fields(rule) for rule in withheld],
        "problems": app.problems,
    }
    if options.json:
        print_json(report, indent=2)
    else:
        print_text(_shorten_paths(_format_explanation(report), app.locations))
    return USAGE if any(problem.kind == "example fails" for problem in app.rules.problems) else DONE


def _shorten_paths(text: str, locations: Locations) -> str:
    """Shorten the paths of settings files in the current folder."""
    return text.replace(f"{locations.cwd / FOLDER}/", f"{FOLDER}/")


def _rule_fields(rule: Rule) -> dict[str, str]:
    return {"kind": rule.kind, "rule": rule.text, "written_in": rule.written_in}


def _format_explanation(report: dict[str, Any]) -> str:
    trust = "trusted" if report["trusted"] else "not trusted: callwright trust shows what it requests"
    lines = [f"mode   {report['mode']}  [{report['mode_from']}]", f"folder {report['project']}  [{trust}]"]
    lines += [f"{rule['kind']:<5}  {rule['rule']}  [{rule['written_in']}]" for rule in report["rules"]]
    lines += [
        f"ignored: allow {rule['rule']}  [{rule['written_in']}], because the folder is not trusted"
        for rule in report["ignored"]
    ]
    lines += [f"problem: {problem}" for problem in report["problems"]]
    if not report["rules"]:
        lines.append("no rules: the mode and the safety guards decide")
    return "\n".join(lines)
