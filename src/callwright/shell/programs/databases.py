"""Reads calls of database clients: one connection, statements that only select."""

from collections.abc import Sequence
from itertools import pairwise

from callwright.core.access import Access, Reach, ReadPath, WritePath
from callwright.shell.folders import Folders, places
from callwright.shell.grammar import Rule, table
from callwright.shell.judgement import Judgement, unknown
from callwright.shell.plan import Verdict
from callwright.shell.programs.sql import all_read
from callwright.shell.words import Word

_PSQL = table(
    """
psql: only -A -t -x -q -w -W -l -H -X -e -E -S -1 -0 -z --list --version --help -V -? --csv --html --expanded
      --no-align --tuples-only --quiet --no-psqlrc --no-password --echo-errors; values -c -d -h -p -U -P -F -R
      --command --dbname --host --port --username --pset --field-separator
mysql: only -A -B -N -s -t -H -X -E -v -? -V --version --help --batch --table --html --xml --vertical --silent
      --skip-column-names --column-names --no-auto-rehash --compress; values -e -D -h -P -u --execute --database
      --host --port --user --protocol
sqlcmd: only --version -? --help -q -Q -E -N -C -W; values -q -Q -S -d -U --text --query
"""
)
_SQLITE = table(
    """
sqlite3: single; only -readonly -safe -json -csv -column -header -noheader -line -list -html -markdown -box -table
      -quote -tabs -batch -version -help; values -separator -nullvalue -newline
"""
)["sqlite3"]


def psql(name: str, arguments: Sequence[Word], folders: Folders) -> Judgement:
    """Judge a psql call."""
    return _client(name, _PSQL["psql"], arguments, ("-c", "--command"))


def mysql(name: str, arguments: Sequence[Word], folders: Folders) -> Judgement:
    """Judge a mysql call."""
    return _client(name, _PSQL["mysql"], arguments, ("-e", "--execute"))


def sqlcmd(name: str, arguments: Sequence[Word], folders: Folders) -> Judgement:
    """Judge a sqlcmd call, which may name its statement after `query`."""
    if arguments and arguments[0].text == "query":
        rest = arguments[1:]
        if rest and rest[0].text[:1] != "-":
            rest = [Word("-q"), *rest]
        return _client(name, _PSQL["sqlcmd"], rest, ("-q", "--text", "--query"))
    return _client(name, _PSQL["sqlcmd"], arguments, ("-q", "-Q"))


def _client(name: str, rule: Rule, arguments: Sequence[Word], flags: Sequence[str]) -> Judgement:
    words = [word.text for word in arguments]
    reach = (Reach(f"{name}:"),)
    if len(words) == 1 and words[0] in ("--version", "--help", "-V", "-?"):
        return Judgement(Verdict.READ_ONLY, f"{name} shows its version or help")
    objection = next((f"{word.text} is not literal" for word in arguments if not word.literal), "")
    objection = objection or rule.objection(arguments)
    if objection:
        return unknown(f"{name}: {objection}", reach)
    if set(words) & {"-l", "--list"} and not set(words) & set(flags):
        return Judgement(Verdict.READS_NETWORK, f"{name} lists databases", reach)
    statements = _statements(words, flags)
    # -cSELECT and clusters that end in c would hide a statement
    hidden = any(
        word[:1] == "-" and word[1:2] != "-" and len(word) > 2 and flags[0][1] in word for word in words
    )  # a cluster
    problem = "a statement is attached to its option" if hidden else all_read(statements)
    if problem:
        return unknown(f"{name}: {problem}", reach)
    return Judgement(Verdict.READS_NETWORK, f"{name} only selects", reach)


def _statements(words: Sequence[str], flags: Sequence[str]) -> list[str]:
    found = [following for flag, following in pairwise(words) if flag in flags]
    return found + [
        word.partition("=")[2]
        for word in words
        if word.startswith("--") and "=" in word and word.partition("=")[0] in flags
    ]


def sqlite(name: str, arguments: Sequence[Word], folders: Folders) -> Judgement:
    """Judge an sqlite3 or duckdb call: without -readonly even a SELECT may create the file."""
    words = [word.text for word in arguments]
    if words in (["--version"], ["-version"], ["--help"], ["-help"]):
        return Judgement(Verdict.READ_ONLY, f"{name} shows its version or help")
    arguments = [word for word in arguments if word.text != "-c"] if name == "duckdb" else arguments
    operands = list(_SQLITE.operand_words(arguments))
    database, statements = operands[:1], [word.text for word in operands[1:]]
    if name == "duckdb" and "-c" in words and len(operands) == 1:
        database, statements = [], [operands[0].text]
    paths = [path for word in database for path in places(word.text, folders)]
    touched: tuple[Access, ...] = tuple(ReadPath(path) for path in paths)
    objection = next((f"{word.text} is not literal" for word in arguments if not word.literal), "")
    objection = objection or _SQLITE.objection(arguments) or all_read(statements)
    if objection:
        return unknown(f"{name}: {objection}", touched)
    if database and "-readonly" not in words:
        created: tuple[Access, ...] = tuple(WritePath(path) for path in paths)
        return Judgement(Verdict.WRITES, f"{name} creates a database that is not there; add -readonly", created)
    return Judgement(Verdict.READ_ONLY, f"{name} only selects", touched)
