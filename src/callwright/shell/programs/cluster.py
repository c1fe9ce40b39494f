"""Reads kubectl calls."""

from collections.abc import Sequence

from callwright.shell.folders import Folders
from callwright.shell.grammar import table
from callwright.shell.judge import by_rule
from callwright.shell.judgement import Judgement, unknown
from callwright.shell.plan import Verdict
from callwright.shell.words import Word

_KUBECTL = table(
    r"""
kubectl: help; exact; network; values -n --namespace --context --cluster --user -v --request-timeout -l --selector -o
      --output -f --filename -c; not --kubeconfig --as --as-group --server -s --token --certificate-authority
      --client-certificate --client-key --cache-dir --profile-output --output-directory
  get|describe|logs|top|explain|api-resources|api-versions|version|cluster-info|diff|events: not --output-directory
  auth can-i|whoami
  rollout status|history
  config view|get-contexts|get-clusters|get-users|current-context: not --raw
  plugin list
  options
"""
)["kubectl"]
_NAMES_ONLY = frozenset(("name", "wide"))


def kubectl(name: str, arguments: Sequence[Word], folders: Folders) -> Judgement:
    """Judge a kubectl call; the contents of secrets are more than a look."""
    judgement = by_rule(name, _KUBECTL, arguments, folders)
    if judgement.verdict is Verdict.READS_NETWORK and _shows_secrets([word.text for word in arguments]):
        return unknown("kubectl would print the contents of secrets")
    return judgement


def _shows_secrets(words: Sequence[str]) -> bool:
    kinds = {part.partition("/")[0].partition(".")[0].lower() for word in words for part in word.split(",")}
    if not kinds & {"secret", "secrets"}:
        return False
    for place, word in enumerate(words):
        if word in ("-o", "--output"):
            return not (place + 1 < len(words) and words[place + 1] in _NAMES_ONLY)
        if word.startswith(("-o", "--output=", "--template")):
            return word.removeprefix("--output").removeprefix("-o").lstrip("=") not in _NAMES_ONLY
    return False
