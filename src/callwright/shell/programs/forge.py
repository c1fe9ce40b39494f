"""Reads gh calls."""

from collections.abc import Sequence

from callwright.core.access import Reach
from callwright.core.spec import Effect
from callwright.shell.folders import Folders
from callwright.shell.grammar import table
from callwright.shell.judge import by_rule
from callwright.shell.judgement import Judgement, unknown
from callwright.shell.plan import Verdict
from callwright.shell.words import Word

_GH = table(
    r"""
gh: help; exact; network; values -R --repo; not -w --web
  pr list|view|diff|checks|status: not -w --web
  issue list|view|status
  repo list|view
  run list|view|watch
  workflow|cache|secret|variable|label|ssh-key|gpg-key|extension|ext|gist|release|codespace|cs|alias|org list|view|ls
  project list|view|field-list|item-list
  ruleset|rs list|view|check
  search repos|issues|prs|code|commits
  config get|list
  attestation verify|trusted-root
  status
  auth status: not -t --show-token
  api: only -X --method -q --jq -t --template -H --header --paginate --slurp --cache -i --include --silent --verbose
      -p --preview; values -X --method -q --jq -t --template -H --header --cache -p --preview; operands 1
  version|--version
  browse: needs --no-browser -n
"""
)["gh"]


def gh(name: str, arguments: Sequence[Word], folders: Folders) -> Judgement:
    """Judge a gh call; its api command must be a GET."""
    judgement = by_rule(name, _GH, arguments, folders)
    if judgement.verdict is not Verdict.READS_NETWORK:
        return judgement
    words = [word.text for word in arguments]
    if "api" in words and (problem := _api_problem(words)):
        return unknown(problem, (Reach("gh:", Effect.WRITE),))
    return judgement


def _api_problem(words: Sequence[str]) -> str:
    for place, word in enumerate(words):
        value = ""
        if word in ("-X", "--method"):
            value = words[place + 1] if place + 1 < len(words) else ""
        elif word.startswith("--method="):
            value = word.partition("=")[2]
        elif word.startswith("-X"):
            value = word[2:]
        if value and value.upper() not in ("GET", "HEAD"):
            return f"{value} may change something"
    return "graphql may change something" if any(word.strip("/") == "graphql" for word in words) else ""
