"""Judges calls of database clients by their SQL: SELECT statements with known functions are read-only."""

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from urllib.parse import unquote

from callwright.core.access import Access, Reach, ReadPath, WritePath
from callwright.shell.findings import Judgement, unknown
from callwright.shell.plan import Verdict
from callwright.shell.rule_tables import ProgramRule, parse_table
from callwright.shell.words import Folders, Word, resolve_as

# MariaDB runs what stands in /*! and /*M!, and only some databases nest comments
_STRING = re.compile(
    r"'(?:[^'\\]|'')*'|\"[^\"\\]*\"|-- [^\n]*|/\*(?!M?!)(?:(?!/\*).)*?\*/|\[[^\[\]'\"/-]*\]", re.DOTALL
)
_DOLLARS = re.compile(r"\$[\w\x80-\U0010ffff]*\$")  # to PostgreSQL and duckdb, $a$ ' $a$ is a string
# to SQLite and SQL Server [--] is a name, to SQLite @count(') is one, and a line of sqlcmd may be a command of its own
_OTHER_WORDS = re.compile(r"\[|(?<!:)(?:[@$]|:(?!:\w))(?:[^\s(@$:]|::)*\(|^[ \t]*(?:!!|:(?!:))", re.MULTILINE)
_CALL = re.compile(r"(?<![\w.])([\w.]+)\s*\(")
_QUOTED_CALL = re.compile(r"(?:''|\])\s*\(")
_FILE_TABLES = re.compile(r"\b(?:fsdir|zipfile|readfile|writefile|load_extension|sqlite_dbpage)\b")
_FILE_NAME = re.compile(r"""['"][^'"]*[./:*][^'"]*['"]""")
_FIRST = frozenset("select show explain describe desc with values".split())
_BANNED = re.compile(
    r"\b(?:insert|update|delete|drop|create|alter|truncate|replace\s+into|merge|grant|revoke|call|do|copy|into|outfile|"
    r"dumpfile|load|attach|detach|vacuum|reindex|lock|set|analyze|pragma|import|export|install|execute|exec|perform|"
    r"begin|commit|rollback|kill|shutdown|backup|restore|use|declare|handler|for\s+update|for\s+share)\b"
)
_FUNCTIONS = frozenset(
    "count sum avg min max coalesce nullif ifnull isnull lower upper length char_length substr substring trim "
    "ltrim rtrim round abs floor ceil ceiling sqrt power mod sign now date time datetime strftime julianday "
    "unixepoch extract date_trunc date_part to_char to_date age cast convert concat concat_ws group_concat "
    "string_agg array_agg json_agg json_extract json_object json_array json_array_length json_each json_type "
    "jsonb_array_elements row_number rank dense_rank lag lead first_value last_value ntile version database "
    "schema user current_database current_schema current_user pg_size_pretty pg_database_size pg_table_size "
    "pg_total_relation_size pg_relation_size pg_get_viewdef pg_get_indexdef generate_series instr position "
    "replace left right reverse hex unnest typeof total iif greatest least random".split()
)
_KEYWORDS = frozenset(
    "in and or not as over from where select exists any all on using values when then else case between like is "
    "having by union except intersect join filter within with recursive distinct limit offset explain partition "
    "varchar char numeric decimal int".split()
)


def sql_problem(text: str) -> str:
    """Return why SQL may do more than read, or an empty string."""
    if "\\" in text or "`" in text or "\r" in text or _DOLLARS.search(text):
        return "the SQL holds escapes or commands of the client"
    plain = _STRING.sub(_blank_out, text).lower()
    if "--" in plain or "/*" in plain or "#" in plain:
        return "the SQL holds a comment that some databases run"
    if "'" in plain.replace("''", "") or '"' in plain:
        return "a quotation in the SQL is not closed"
    if _OTHER_WORDS.search(plain):
        return "some databases read a name in the SQL in another way"
    if _QUOTED_CALL.search(plain):
        return "the SQL calls a function by a quoted name"
    statements = [part.strip() for part in plain.split(";") if part.strip()]
    if not statements:
        return "there is no statement"
    return next((problem for statement in statements if (problem := _statement_problem(statement))), "")


def _blank_out(match: re.Match[str]) -> str:
    """Return what stands for a comment or a string; what stands in brackets is judged, as it may be an index."""
    first = match[0][0]
    return match[0][1:] if first == "[" else " " if first in "-/" else " '' "


def _statement_problem(statement: str) -> str:
    first = re.match(r"[a-z.]+", statement)
    if not first or first[0] not in _FIRST:
        return f"{statement.split(maxsplit=1)[0]} may change the database"
    banned = _BANNED.search(statement)
    if banned:
        return f"{banned[0]} may change the database"
    call = next((name for name in _CALL.findall(statement) if name not in _FUNCTIONS | _KEYWORDS), None)
    return f"the function {call} is not known to be read-only" if call else ""


def first_sql_problem(statements: Sequence[str]) -> str:
    """Return the first problem of several texts."""
    if not statements:
        return "it would read statements from its input"
    return next((problem for statement in statements if (problem := sql_problem(statement))), "")


_PSQL = parse_table(
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
_SQLITE = parse_table(
    """
sqlite3: single; only -readonly -safe -json -csv -column -header -noheader -line -list -html -markdown -box -table
      -quote -tabs -batch -version -help; values -separator -nullvalue -newline
"""
)["sqlite3"]


def psql(name: str, arguments: Sequence[Word], folders: Folders) -> Judgement:
    """Judge a psql call."""
    return _judge_client(name, _PSQL["psql"], arguments, ("-c", "--command"))


def mysql(name: str, arguments: Sequence[Word], folders: Folders) -> Judgement:
    """Judge a mysql call."""
    return _judge_client(name, _PSQL["mysql"], arguments, ("-e", "--execute"))


def sqlcmd(name: str, arguments: Sequence[Word], folders: Folders) -> Judgement:
    """Judge a sqlcmd call, which may name its statement after `query`."""
    if arguments and arguments[0].text == "query":
        arguments = arguments[1:]
        if arguments and arguments[0].text[:1] != "-":
            arguments = [Word("-q"), *arguments]
    return _judge_client(name, _PSQL["sqlcmd"], arguments, ("-q", "-Q", "--text", "--query"))


def _judge_client(name: str, rule: ProgramRule, arguments: Sequence[Word], flags: Sequence[str]) -> Judgement:
    words = [word.text for word in arguments]
    # the program is named too: an allow rule for a host that is fetched from is not about its database
    reach = tuple(Reach(host) for host in dict.fromkeys((*_list_hosts(words), f"{name}:")))
    if len(words) == 1 and words[0] in ("--version", "--help", "-V", "-?"):
        return Judgement(Verdict.READ_ONLY, f"{name} shows its version or help")
    objection = next((f"{word.text} is not literal" for word in arguments if not word.literal), "")
    objection = objection or rule.objection(arguments)
    if objection:
        return unknown(f"{name}: {objection}", reach)
    statements = _list_statements(words, flags)
    if set(words) & {"-l", "--list"} and not statements:
        return Judgement(Verdict.READS_NETWORK, f"{name} lists databases", reach)
    # -cSELECT and clusters that end in c would hide a statement
    letters = {flag[1] for flag in flags if len(flag) == 2}
    hidden = any(word[:1] == "-" and word[1:2] != "-" and len(word) > 2 and letters & {*word} for word in words)
    problem = "a statement is attached to its option" if hidden else first_sql_problem(statements)
    if problem:
        return unknown(f"{name}: {problem}", reach)
    return Judgement(Verdict.READS_NETWORK, f"{name} only selects", reach)


_HOST = re.compile(r"-[hS]=?(.+)|--(?:host|server)=(.+)|(\w+://\S+)|(?:.*[\s?&])?host(?:addr)?\s*=\s*([^\s&]+).*")


def _list_hosts(words: Sequence[str]) -> Iterator[str]:
    """Yield the servers that a call names."""
    yield from (following for flag, following in pairwise(words) if flag in ("-h", "-S", "--host", "--server"))
    for word in words:
        if named := _HOST.fullmatch(word):
            yield next(filter(None, named.groups()))


def _list_statements(words: Sequence[str], flags: Sequence[str]) -> list[str]:
    found = [following for flag, following in pairwise(words) if flag in flags]
    return found + [
        word.partition("=")[2]
        for word in words
        if word.startswith("--") and "=" in word and word.partition("=")[0] in flags
    ]


def _find_file_table(name: str, statements: Sequence[str]) -> str:
    """Object to tables that are files: `fsdir` in sqlite3, a quoted path in duckdb."""
    for statement in statements:
        files = _FILE_NAME if name == "duckdb" else _FILE_TABLES
        if found := files.search(statement.lower()):
            return f"{found[0]} may read any file"
    return ""


_URI = re.compile(r"file:(?://[^/]*)?([^?#]*).*", re.DOTALL)
_SHOWS = re.compile(r"\.(?:tables|schema|indexes|indices|databases|dbinfo)(?: [\w%]+)?")


def _is_address(name: str, database: str) -> bool:
    if name == "sqlite3":
        return database.startswith("file:")
    return ":" in database and database != ":memory:"


def _find_file(database: str) -> str:
    """Return the file of a database: SQLite reads `file:a%20b?mode=ro` as `a b`."""
    uri = _URI.fullmatch(database)
    return unquote(uri[1]) if uri else database


def sqlite(name: str, arguments: Sequence[Word], folders: Folders) -> Judgement:
    """Judge an sqlite3 or duckdb call: without -readonly even a SELECT may create the file."""
    words = [word.text for word in arguments]
    if words in (["--version"], ["-version"], ["--help"], ["-help"]):
        return Judgement(Verdict.READ_ONLY, f"{name} shows its version or help")
    arguments = [word for word in arguments if word.text != "-c"] if name == "duckdb" else arguments
    operands = list(_SQLITE.operand_words(arguments))
    database, statements = operands[:1], [word.text for word in operands[1:]]
    if "-readonly" in words:
        shown = [text for text in statements if _SHOWS.fullmatch(text)]
        statements = ["select 1"] if shown and shown == statements else statements
    if name == "duckdb" and "-c" in words and len(operands) == 1:
        database, statements = [], [operands[0].text]
    paths = resolve_as(str, [_find_file(word.text) for word in database], folders)
    touched: tuple[Access, ...] = tuple(ReadPath(path) for path in paths)
    objection = next((f"{word.text} is not literal" for word in arguments if not word.literal), "")
    objection = objection or _SQLITE.objection(arguments) or first_sql_problem(statements)
    objection = objection or _find_file_table(name, statements)
    objection = objection or next(
        (f"{word.text} is an address" for word in database if _is_address(name, word.text)), ""
    )
    if objection:
        return unknown(f"{name}: {objection}", touched)
    if database and "-readonly" not in words:
        created: tuple[Access, ...] = tuple(WritePath(path) for path in paths)
        return Judgement(Verdict.WRITES, f"{name} creates a database that is not there; add -readonly", created)
    return Judgement(Verdict.READ_ONLY, f"{name} only selects", touched)
