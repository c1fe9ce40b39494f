"""Judges yq calls, whose expression may follow a sub-command."""

from collections.abc import Sequence

from callwright.shell.judge import judge_by_rule
from callwright.shell.plan import Judgement, unknown
from callwright.shell.rule_tables import parse_table
from callwright.shell.words import Folders, Word

_YQ = parse_table(
    r"""
yq: reads; pattern; not -i --inplace --in-place -s --split-exp --split-exp-file --security-enable
      --security-enable-system-operator --front-matter -f --yml-output-in-place -y; values -p -o
"""
)["yq"]
_EVALUATES = frozenset(("eval", "e", "eval-all", "ea"))


def yq(name: str, arguments: Sequence[Word], folders: Folders) -> Judgement:
    """Judge a yq call by its flags; an expression reaches outside its files only by loading."""
    if arguments and arguments[0].text in _EVALUATES:
        arguments = arguments[1:]
    if any("load" in word.text for word in arguments):
        return unknown("the yq expression loads another file")
    return judge_by_rule(name, _YQ, arguments, folders)
