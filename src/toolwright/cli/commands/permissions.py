"""`toolwright permissions`: try a call against rules and modes without running it, and see the rules in force."""

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from toolwright.core.access import (
    Access,
    Allow,
    Ask,
    Decision,
    DeletePath,
    Deny,
    Reach,
    ReadPath,
    RunCommand,
    UseTool,
    WritePath,
)
from toolwright.core.errors import UsageError
from toolwright.policy import ByMode, LoadedRules, Policies, Rule, load_rules, rules_of, standard_policies
from toolwright.policy.judged import JudgedCall, call_of
from toolwright.policy.line import PartOfLine, shown
from toolwright.system.paths import Workspace

ALLOWED, FAILED, ASKED, DENIED = 0, 2, 3, 4
_FILES = (".toolwright/settings.json", ".toolwright/settings.local.json")
_WORDS = {Allow: "allow", Ask: "ask", Deny: "deny"}
_CODES = {Allow: ALLOWED, Ask: ASKED, Deny: DENIED}


def run(arguments: Sequence[str]) -> int:
    """Carry out the subcommand. Exit code: 0 allow, 3 ask, 4 deny; 2 for a mistake in the arguments or rules."""
    options = _parser().parse_args(arguments)
    try:
        return _test(options) if options.action == "test" else _explain(options)
    except UsageError as error:
        print(f"toolwright permissions: {error}", file=sys.stderr)
        return FAILED


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="toolwright permissions", description=__doc__)
    actions = parser.add_subparsers(dest="action", required=True)
    test = actions.add_parser("test", help="say what would be decided about a call; nothing runs")
    test.add_argument("tool", help="bash, read, edit, web_fetch or any other tool's name")
    test.add_argument("argument", help="the command line, path or address it would be called with")
    test.add_argument("--mode", default="default", help="plan, default, auto, dontAsk or bypass")
    for kind in ("allow", "ask", "deny"):
        test.add_argument(f"--{kind}", action="append", default=[], metavar="RULE")
    test.add_argument("--cwd", type=Path, default=None, help="where it would run; the current folder by default")
    test.add_argument("--workspace", type=Path, default=None, help="the folder writes are kept inside of")
    test.add_argument("--reads", choices=("inside", "anywhere"), default="anywhere")
    test.add_argument("--network-reads", choices=("ask", "allow"), default="ask")
    test.add_argument("--json", action="store_true", help="print the decision as JSON")
    explain = actions.add_parser("explain", help="list the rules in force, where each was written and what is wrong")
    explain.add_argument("--json", action="store_true", help="print the rules as JSON")
    for each in (test, explain):
        each.add_argument("--rules", action="append", type=Path, metavar="FILE", help="settings files to read")
    return parser


def _test(options: argparse.Namespace) -> int:
    loaded = _loaded(options)
    for problem in loaded.problems:
        print(f"warning: {problem}", file=sys.stderr)
    cwd = (options.cwd or Path.cwd()).absolute()
    given = rules_of(allow=options.allow, ask=options.ask, deny=options.deny, written_in="the command line")
    policies = _policies(options, (*loaded.rules, *given), cwd)
    access, subject = call_of(options.tool, options.argument, str(cwd))
    decision = policies.decide(access, subject)
    report = _report(policies, access, subject, decision)
    print(json.dumps(report, indent=2, ensure_ascii=False) if options.json else _readable(report))
    return _CODES[type(decision)]


def _loaded(options: argparse.Namespace) -> LoadedRules:
    files = options.rules if options.rules is not None else [path for path in map(Path, _FILES) if path.is_file()]
    return load_rules(*files)


def _policies(options: argparse.Namespace, rules: Sequence[Rule], cwd: Path) -> Policies:
    workspace = Workspace(options.workspace or cwd, reads=options.reads, outside="ask")
    by_mode = ByMode(options.mode, network_reads=options.network_reads)
    return standard_policies(workspace, by_mode=by_mode, rules=rules, cwd=cwd)


def _report(policies: Policies, access: Access, subject: JudgedCall, decision: Decision) -> dict[str, Any]:
    report: dict[str, Any] = {"tool": subject.spec.name, "call": _target(access), **_decided(decision)}
    if isinstance(access, RunCommand):
        judged = list(policies.parts(access, subject))
        plan = judged[0][1].plan
        report["verdict"] = str(plan.verdict)
        report["understood"] = plan.proven
        report["parts"] = [_part(touched, view, found) for touched, view, found in judged]
    return report


def _decided(decision: Decision) -> dict[str, Any]:
    return {"decision": _WORDS[type(decision)], "reason": decision.reason, "source": decision.source}


def _part(access: Access, view: PartOfLine, decision: Decision) -> dict[str, Any]:
    if not isinstance(access, RunCommand):
        return {"touches": f"{_verb(access)} {_target(access)}", **_decided(decision)}
    command = view.command
    shown_words = {"words": list(command.words), "inside": command.inside} if command else {}
    return {"runs": command.text if command else "the line as a whole", "verdict": str(view.verdict), **shown_words} | (
        _decided(decision)
    )


def _verb(access: Access) -> str:
    return type(access).__name__.removesuffix("Path").casefold()


def _target(access: Access) -> str:
    match access:
        case RunCommand(line):
            return line
        case ReadPath(path) | WritePath(path) | DeletePath(path):
            return path
        case Reach(url):
            return url
        case UseTool(name):
            return name


def _readable(report: dict[str, Any]) -> str:
    lines = [f"{report['decision']}: {report['tool']} {shown(report['call'])}"]
    lines += [f"  because  {report['reason']}"] if report["reason"] else []
    lines += [f"  decided  {report['source']}"]
    for part in report.get("parts", ()):
        what = f"{shown(part['runs'])} ({part['verdict']})" if "runs" in part else f"  {shown(part['touches'])}"
        lines.append(f"  {part['decision']:<5}  {what}  [{part['source']}]")
    return "\n".join(lines)


def _explain(options: argparse.Namespace) -> int:
    loaded = _loaded(options)
    if options.json:
        rules = [{"kind": rule.kind, "rule": rule.text, "written_in": rule.written_in} for rule in loaded.rules]
        print(json.dumps({"rules": rules, "problems": [str(problem) for problem in loaded.problems]}, indent=2))
    else:
        for rule in loaded.rules:
            print(f"{rule.kind:<5}  {rule.text}  [{rule.written_in}]")
        for problem in loaded.problems:
            print(f"problem: {problem}")
        if not loaded.rules:
            print("no rules: the mode decides, and the safety guards hold")
    return FAILED if any(problem.kind == "example fails" for problem in loaded.problems) else ALLOWED
