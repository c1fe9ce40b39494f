"""Judges jq and yq calls, whose expressions may read other files or the environment."""

import re
from collections.abc import Sequence

from callwright.shell.findings import Judgement, unknown
from callwright.shell.judge import judge_by_rule, read_accesses
from callwright.shell.plan import ENVIRONMENT_SHOWN, Verdict
from callwright.shell.programs.builtins import prints_environment
from callwright.shell.rule_tables import ProgramRule, parse_table
from callwright.shell.words import Folders, Word

_YQ = parse_table(
    r"""
yq: reads; pattern --from-file --expression; not -i --inplace --in-place -s --split-exp --split-exp-file
      --security-enable --security-enable-system-operator --front-matter -f --yml-output-in-place -y; values -p -o
"""
)["yq"]
_JQ = parse_table("jq: reads; pattern -f --from-file; not -L --library-path --run-tests")["jq"]
_LOADS = re.compile(r"\b(?:include|import|get_search_list|input_filename|debug|modulemeta)\b")
_MODULES = re.compile(r"\b(?:include|import|modulemeta)\s")
"""For the yq that hands its expression to jq."""
_RUNS_TEXT = re.compile(r"\beval\s*\(")
_FIELD = re.compile(r"(?<!\.)\.[A-Za-z_]\w*")
_VALUE = re.compile(r"-(?!-).*[op].*", re.DOTALL)
_FORMAT = re.compile(
    r"-[^-op]*[op]=?(?:auto|a|yaml|yml|y|kyaml|ky|json|j|props|p|csv|c|tsv|t|xml|x|toml|hcl|h|shell|s|lua|l|base64)?"
)
"""Without ini and uri: the yq that hands its expression to jq reads an `i` in such a word as `--in-place`."""
_GIVES = {"--arg": 2, "--argjson": 2, "--slurpfile": 2, "--rawfile": 2, "--argfile": 2, "--indent": 1}
_GIVES_FILE = ("--slurpfile", "--rawfile", "--argfile")
_HIDES_OPTIONS = re.compile(r"--|--from-file.*|-(?!-).*[fL].*", re.DOTALL)
"""Behind `--` there are no options, and some versions take the next word for the value of -f."""
_EVALUATES = frozenset(("eval", "e", "eval-all", "ea"))


def yq(name: str, arguments: Sequence[Word], folders: Folders) -> Judgement:
    """Judge a yq call by its flags; an expression reaches outside its files only by loading."""
    if arguments and arguments[0].text in _EVALUATES:
        arguments = arguments[1:]
    texts = [_FIELD.sub("", word.text) for word in arguments]
    judgement, doubt = _judge_expression(name, _YQ, arguments, folders), ""
    if any("load" in text or _MODULES.search(text) for text in texts):
        doubt = "the yq expression loads another file"
    elif any(map(_RUNS_TEXT.search, texts)):
        doubt = "the yq expression evaluates a text, which may load another file"
    elif odd := next((w.text for w in arguments if _VALUE.fullmatch(w.text) and not _FORMAT.fullmatch(w.text)), ""):
        doubt = f"yq: {odd} may do more than read"
    return judgement._replace(verdict=Verdict.UNKNOWN, reason=doubt) if doubt else judgement


def jq(name: str, arguments: Sequence[Word], folders: Folders) -> Judgement:
    """Judge a jq call: every word may be the expression but those that options give to it."""
    arguments, files = _drop_given_values(arguments)
    if any(_LOADS.search(_FIELD.sub("", word.text)) for word in arguments):
        judgement = unknown("the jq expression may load a module")
    else:
        judgement = _judge_expression(name, _JQ, arguments, folders)
    read = [access for word in files for access in read_accesses(word, folders)]
    return judgement._replace(accesses=(*judgement.accesses, *read))


def _drop_given_values(arguments: Sequence[Word]) -> tuple[list[Word], list[Word]]:
    """Return the words without `--arg name value`, and the files of `--slurpfile name file`, which are read."""
    place = 0
    kept: list[Word] = []
    files: list[Word] = []
    while place < len(arguments):
        text = arguments[place].text
        given = arguments[place + 1 : place + 1 + _GIVES.get(text, 0)]
        if _HIDES_OPTIONS.fullmatch(text) or not all(word.single for word in given):
            break  # from here on it is not known what is an option
        kept += [] if given else [arguments[place]]
        files += given[1:] if text in _GIVES_FILE else []
        place += 1 + len(given)
    return [*kept, *arguments[place:]], files


def _judge_expression(name: str, rule: ProgramRule, arguments: Sequence[Word], folders: Folders) -> Judgement:
    judgement = judge_by_rule(name, rule, arguments, folders)
    if any(word.computed for word in rule.operand_words(arguments)[:1]):
        return judgement._replace(verdict=Verdict.UNKNOWN, reason=f"the expression of {name} is not literal")
    if judgement.verdict is not Verdict.READ_ONLY:
        return judgement
    if rule.gives_pattern([flag for flag in rule.split(arguments)[1] if not flag.startswith("--ex")]):
        return judgement._replace(verdict=Verdict.UNKNOWN, reason=f"{name} takes its expression from a file")
    if any(prints_environment(word.text) for word in arguments):
        return judgement._replace(reason=ENVIRONMENT_SHOWN)
    return judgement
