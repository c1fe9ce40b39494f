"""Reads SQL handed to a database client: statements that only select, with functions that only compute."""

import re
from collections.abc import Sequence

_STRING = re.compile(r"'(?:[^'\\]|'')*'|\"[^\"\\]*\"|-- [^\n]*|/\*[^!].*?\*/", re.DOTALL)
_CALL = re.compile(r"([A-Za-z_][\w.]*)\s*\(")
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
    if "\\" in text or "`" in text or "$$" in text:
        return "the SQL holds escapes or commands of the client"
    plain = _STRING.sub(lambda match: " " if match[0][0] in "-/" else " '' ", text).lower()
    if "--" in plain or "/*" in plain or "#" in plain:
        return "the SQL holds a comment that some databases run"
    if "'" in plain.replace("''", "") or '"' in plain:
        return "a quotation in the SQL is not closed"
    statements = [part.strip() for part in plain.split(";") if part.strip()]
    if not statements:
        return "there is no statement"
    return next((problem for statement in statements if (problem := _statement_problem(statement))), "")


def _statement_problem(statement: str) -> str:
    first = re.match(r"[a-z.]+", statement)
    if not first or first[0] not in _FIRST:
        return f"{statement.split(maxsplit=1)[0]} may change the database"
    banned = _BANNED.search(statement)
    if banned:
        return f"{banned[0]} may change the database"
    call = next((name for name in _CALL.findall(statement) if name not in _FUNCTIONS | _KEYWORDS), None)
    return f"the function {call} may do anything" if call else ""


def all_read(statements: Sequence[str]) -> str:
    """Return the first problem of several texts."""
    if not statements:
        return "it would read statements from its input"
    return next((problem for statement in statements if (problem := sql_problem(statement))), "")
