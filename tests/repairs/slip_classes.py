"""The classes of slips that models make in calls, each with one call as a model sends it and the wanted result.

`Repaired` has one reading, which runs; `Refused` has none, or two, and the message says what to do next; `Accepted` is
no slip for this package. Nothing else changes in the workspace.
"""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

CALC = "def add(a, b):\n    return a - b\n"
FILES = {
    "calc.py": CALC,
    "notes.txt": "one\ntwo\n",
    "src/x.py": "x = 1\n",
    "a/same.txt": "a\n",
    "b/same.txt": "b\n",
    "data.json": '{"port": 80}\n',
}
"""The workspace of each call."""


def write_files(root: Path) -> Path:
    """Create the workspace in a folder."""
    for name, text in FILES.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


def read_files(root: Path) -> dict[str, str]:
    """Return the files of a workspace with their texts."""
    return {str(path.relative_to(root)): path.read_text() for path in sorted(root.rglob("*")) if path.is_file()}


FIXED = "def add(a, b):\n    return a + b\n"


@dataclass(frozen=True)
class Repaired:
    """The call that runs, by the fields that matter, the repairs in order, and the files it changes."""

    tool: str
    arguments: dict[str, Any]
    kinds: tuple[str, ...]
    changes: dict[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True)
class Refused:
    """Texts that the message contains: the slip, and the next step."""

    says: tuple[str, ...]

    def __init__(self, *says: str) -> None:
        object.__setattr__(self, "says", says)


@dataclass(frozen=True)
class Accepted:
    """The call as it runs, without a repair."""

    tool: str
    arguments: dict[str, Any]
    changes: dict[str, str] = field(default_factory=dict[str, str])


READ = {"path": "calc.py"}
ADD = {"old_string": "a - b", "new_string": "a + b"}


def _read(kind: str) -> Repaired:
    return Repaired("read", READ, (kind,))


def _echo(kind: str) -> Repaired:
    return Repaired("bash", {"command": "echo hi"}, (kind,))


def _edited(*kinds: str) -> Repaired:
    return Repaired("edit", {"path": "calc.py"}, kinds, {"calc.py": FIXED})


NAMES: dict[str, tuple[str, Any, Any]] = {
    "a vendor's prefix": ("functions.read", READ, _read("name")),
    "white space around the name": (" read\n", READ, _read("name")),
    "a call number": ("read:0", READ, _read("name")),
    "template tokens": ("read<|channel|>commentary", READ, _read("name")),
    "quotes around the name": ("`read`", READ, _read("name")),
    "parentheses": ("read()", READ, _read("name")),
    "letter case": ("READ", READ, _read("name")),
    "the name twice": ("readread", READ, _read("name")),
    "another agent's name": ("read_file", READ, Accepted("read", READ)),
    "a misspelt name": ("raed", READ, Refused("unknown tool: raed", "did you mean read?")),
    "a tool that does not exist": ("python", {"code": "1"}, Refused("unknown tool: python", "use one of bash, ")),
    "no name": ("", READ, Refused("(no name)", "use one of bash, ")),
    "another server's tool": ("mcp__fs__read", READ, Refused("mcp__fs__read", "use one of bash, ")),
    "two names": ("read and write", READ, Refused("read and write", "use one of bash, ")),
}

JSON_TEXTS: dict[str, tuple[str, Any, Any]] = {
    "a code fence": ("read", '```json\n{"path": "calc.py"}\n```', _read("json")),
    "a trailing comma": ("read", '{"path": "calc.py",}', _read("json")),
    "single quotes": ("read", "{'path': 'calc.py'}", _read("json")),
    "a raw line break in a string": (
        "write",
        '{"path": "n.txt", "content": "one\ntwo\n"}',
        Repaired("write", {"path": "n.txt"}, ("json",), {"n.txt": "one\ntwo\n"}),
    ),
    "an escape that JSON has not": (
        "grep",
        r'{"pattern": "\d+\.py"}',
        Repaired("grep", {"pattern": r"\d+\.py"}, ("json",)),
    ),
    "keys without quotes": ("read", '{path: "calc.py"}', _read("json")),
    "comments": ("read", '{"path": "calc.py" // the file\n}', _read("json")),
    "a quote that looks like the end before a comment": (
        "write",
        '{"path": "n.txt",\n "content": "print("# one")"\n}',
        Refused("not valid JSON", 'write a quote as \\"'),
    ),
    "a back quote after a backslash": (
        "bash",
        r'{"command": "echo \"remove the \`touch owned\` call\""}',
        Refused("not valid JSON", r"a backslash as \\"),
    ),
    "a quote of the shell after a backslash": (
        "bash",
        r"""{"command": "bash -c 'echo '\''; touch owned; '\'''"}""",
        Refused("not valid JSON", r"a backslash as \\"),
    ),
    "Python's constants": (
        "glob",
        '{"pattern": "*.py", "ignored": False}',
        Repaired("glob", {"pattern": "*.py", "ignored": False}, ("json",)),
    ),
    "typographic quotes": ("read", "{“path”: “calc.py”}", _read("json")),
    "a brace too many": ("read", '{"path": "calc.py"}}', _read("json")),
    "the same object twice": ("read", '{"path": "calc.py"}{"path": "calc.py"}', _read("json")),
    "a byte order mark": ("read", '\ufeff{"path": "calc.py"}', _read("json")),
    "a token after the object": ("read", '{"path": "calc.py"}<|call|>', _read("json")),
    "a closing tag after the object": ("read", '{"path": "calc.py"}\n</tool_call>', _read("json")),
    "quotes as template tokens": ("read", '{"path": <|"|>calc.py<|"|>}', _read("json")),
    "doubled braces": ("read", '{{"path": "calc.py"}}', _read("json")),
    "a list with one object": ("read", '[{"path": "calc.py"}]', _read("list")),
    "a bare string": ("read", '"calc.py"', _read("wrapped")),
    "no arguments where none are needed": ("list", "", Repaired("list", {"path": "."}, ("empty",))),
    "a key with two values": (
        "write",
        '{"path": "n.py", "path": "calc.py", "content": "x"}',
        Refused('the key "path" is written twice with different values; write it once'),
    ),
    "a key with two values in broken JSON": (
        "write",
        "{'path': 'n.py', 'path': 'calc.py', 'content': 'x',}",
        Refused('the key "path" is written twice with different values; write it once'),
    ),
    "a key with two values in a wrapped call": (
        "write",
        '{"arguments": {"path": "n.py", "path": "calc.py", "content": "x"}}',
        Refused('the key "path" is written twice'),
    ),
    "a misspelt key with two values": ("read", '{"Path": "calc.py", "Path": "n.py"}', Refused('the key "Path"')),
    "no arguments where one is needed": ("read", "", Refused("not valid JSON", 'a JSON object with the fields "path"')),
    "cut off in a string": ("write", '{"path": "n.py", "content": "def f():', Refused("send the whole call again")),
    "cut off after a value": ("read", '{"path": "calc.py"', Refused("send the whole call again")),
    "a quote inside a string": (
        "write",
        '{"path": "n.py", "content": "print("hi")"}',
        Refused("not valid JSON", 'write a quote as \\"'),
    ),
    "a missing comma": ("read", '{"path": "calc.py" "limit": 2}', Refused("not valid JSON", "send one JSON object")),
    "prose before the object": ("read", 'Sure: {"path": "calc.py"}', Refused("the JSON object alone")),
    "no JSON at all": ("bash", "echo hi", Refused("not valid JSON", 'a JSON object with the fields "command"')),
    "assignments": ("read", "path=calc.py", Refused("not valid JSON", 'a JSON object with the fields "path"')),
    "two objects": ("read", '{"path": "calc.py"} {"path": "notes.txt"}', Refused("send one JSON object")),
    "a list of calls": ("read", '[{"path": "calc.py"}, {"path": "notes.txt"}]', Refused("send one call for each")),
    "not a number": ("read", '{"path": "calc.py", "limit": NaN}', Refused("limit: expected a finite number")),
}

WRAPPED: dict[str, tuple[str, Any, Any]] = {
    "arguments in arguments": ("read", {"arguments": READ}, _read("wrapped")),
    "a call in the arguments": ("read", {"name": "read", "arguments": READ}, _read("wrapped")),
    "arguments as text": ("read", {"name": "read", "arguments": '{"path": "calc.py"}'}, _read("wrapped")),
    "a vendor's call object": (
        "read",
        {"type": "function", "function": {"name": "read", "arguments": READ}},
        _read("wrapped"),
    ),
    "the tool's name as key": ("read", {"read": READ}, _read("wrapped")),
    "parameters": ("read", {"parameters": READ}, _read("wrapped")),
    "the name beside the fields": ("read", {"tool": "read", "path": "calc.py"}, _read("wrapped")),
    "the whole object as text": ("read", "\"{'path': 'calc.py'}\"", Repaired("read", READ, ("wrapped",))),
    "the schema, filled in": ("read", {"type": "object", "properties": READ}, _read("wrapped")),
    "a field's schema, filled in": ("read", {"path": {"type": "string", "value": "calc.py"}}, _read("literal")),
    "a field's schema": ("read", {"path": {"type": "string"}}, Refused("path: expected a string", "as one string")),
    "a call of another tool": (
        "read",
        {"name": "bash", "arguments": {"command": "echo hi"}},
        Refused("name: unknown field", "known are path, offset, limit"),
    ),
}

VALUES: dict[str, tuple[str, Any, Any]] = {
    "null for an optional field": ("read", {"path": "calc.py", "limit": None}, _read("null")),
    "null as text": ("read", {"path": "calc.py", "limit": "None"}, _read("null")),
    "an empty text for a number": ("read", {"path": "calc.py", "offset": ""}, _read("null")),
    "null for a required field": ("read", {"path": None}, Refused("path: expected a string, got null")),
    "one item in a list": ("read", {"path": ["calc.py"]}, _read("list")),
    "two items for one value": ("read", {"path": ["calc.py", "notes.txt"]}, Refused("send one call for each")),
    "one change for a list": ("edit", {"path": "calc.py", "edits": ADD}, _edited("list")),
    "a list as text": ("edit", {"path": "calc.py", "edits": f"[{ADD}]"}, _edited("literal")),
    "a truth value as text": (
        "glob",
        {"pattern": "*.py", "ignored": "True"},
        Repaired("glob", {"ignored": True}, ("literal",)),
    ),
    "a number as text": ("read", {"path": "calc.py", "limit": "1"}, Accepted("read", {"limit": 1})),
    "a whole number with a point as text": (
        "read",
        {"path": "calc.py", "limit": "1.0"},
        Repaired("read", {"limit": 1}, ("literal",)),
    ),
    "a word for a number": ("read", {"path": "calc.py", "limit": "many"}, Refused("limit: expected an integer, got")),
    "a fraction for a whole number": (
        "read",
        {"path": "calc.py", "limit": 2.5},
        Refused("expected an integer, got 2.5"),
    ),
    "out of range": ("read", {"path": "calc.py", "offset": -1}, Refused("greater than or equal to 0, got -1")),
    "a number for a text": ("write", {"path": "n.txt", "content": 42}, Refused("content: expected a string, got 42")),
    "an object for a text": ("write", {"path": "n.json", "content": {"a": 1}}, Refused("write content as one string")),
    "lines for a text": ("write", {"path": "n.py", "content": ["a = 1", "b = 2"]}, Refused("join the parts")),
    "letter case of a key": ("read", {"Path": "calc.py"}, _read("key")),
    "another agent's key": ("read", {"file_path": "calc.py"}, Accepted("read", READ)),
    "a misspelt key": ("read", {"paht": "calc.py"}, Refused("paht: unknown field; did you mean path?")),
    "a field twice": (
        "read",
        {"path": "calc.py", "file_path": "notes.txt"},
        Refused("file_path: unknown field; did you mean path?"),
    ),
    "a field that does not exist": (
        "read",
        {"path": "calc.py", "dry_run": True},
        Refused("dry_run: unknown field", "known are path"),
    ),
    "letter case of a choice": (
        "grep",
        {"pattern": "add", "mode": "Content"},
        Repaired("grep", {"mode": "content"}, ("choice",)),
    ),
    "a choice that does not exist": (
        "grep",
        {"pattern": "add", "mode": "all"},
        Refused("'files', 'content' or 'count'"),
    ),
    "milliseconds for seconds": (
        "bash",
        {"command": "echo hi", "timeout": 120000},
        Accepted("bash", {"timeout_seconds": 120.0}),
    ),
}

PATHS: dict[str, tuple[str, Any, Any]] = {
    "a path in back quotes": ("read", {"path": "`calc.py`"}, _read("path")),
    "a mention": ("read", {"path": "@calc.py"}, _read("path")),
    "a line number": ("read", {"path": "calc.py:2"}, _read("path")),
    "an anchor": ("read", {"path": "calc.py#L1-L2"}, _read("path")),
    "a file address": ("read", {"path": "file://calc.py"}, _read("path")),
    "backslashes": ("read", {"path": "src\\x.py"}, Repaired("read", {"path": "src/x.py"}, ("path",))),
    "a folder too many": ("read", {"path": "project/calc.py"}, _read("path")),
    "a folder too few": ("read", {"path": "x.py"}, Repaired("read", {"path": "src/x.py"}, ("path",))),
    "another machine's folder": ("read", {"path": "/workspace/calc.py"}, _read("path")),
    "a side of a diff": ("read", {"path": "b/calc.py"}, _read("path")),
    "a Markdown link": ("read", {"path": "[calc.py](calc.py)"}, _read("path")),
    "tags": ("read", {"path": "<path>calc.py</path>"}, _read("path")),
    "white space around a path": ("read", {"path": " calc.py\n"}, _read("path")),
    "quotes around a new path": (
        "write",
        {"path": '"n.txt"', "content": "a\n"},
        Repaired("write", {"path": "n.txt"}, ("path",), {"n.txt": "a\n"}),
    ),
    "quotes around a path to delete": (
        "delete",
        {"path": "`notes.txt`"},
        Repaired("delete", {"path": "notes.txt"}, ("path",), {"notes.txt": ""}),
    ),
    "a path to delete in another folder": ("delete", {"path": "x.py"}, Refused("x.py")),
    "two files fit": ("read", {"path": "same.txt"}, Refused("same.txt does not exist", "read the folder")),
    "letter case of a path": ("read", {"path": "Calc.py"}, Refused("did you mean", "calc.py")),
    "two paths in one": ("read", {"path": "calc.py, notes.txt"}, Refused("send one call for each file")),
    "a pattern for a path": ("read", {"path": "*.py"}, Refused("patterns are for glob")),
    "an address for a path": ("read", {"path": "https://example.com/a"}, Refused("an address is fetched")),
    "out of the workspace": (
        "read",
        {"path": "../../../calc.py"},
        Refused("outside the workspace", "use a path inside it"),
    ),
    "an empty path": ("read", {"path": ""}, Refused("path: string should have at least 1 character")),
}

COMMANDS: dict[str, tuple[str, Any, Any]] = {
    "words for a line": ("bash", {"command": ["echo", "hi"]}, _echo("command")),
    "one word for a line": ("bash", {"command": ["echo hi"]}, _echo("list")),
    "a shell for a line": (
        "bash",
        {"command": ["sh", "-c", "echo hi"]},
        Repaired("bash", {"command": "sh -c 'echo hi'"}, ("command",)),
    ),
    "words as text": ("bash", {"command": '["echo", "hi"]'}, _echo("command")),
    "words as text, with blanks": ("bash", {"command": '[ "echo", "hi" ]'}, _echo("command")),
    "a test of a word, as the shell writes it": (
        "bash",
        {"command": '[ "touch owned.txt" ]'},
        Accepted("bash", {"command": '[ "touch owned.txt" ]'}),
    ),
    "a test before a command": (
        "bash",
        {"command": '[ "$HOME" = "" ] || echo hi > n.txt'},
        Accepted("bash", {"command": '[ "$HOME" = "" ] || echo hi > n.txt'}, {"n.txt": "hi\n"}),
    ),
    "a test of a word, with another slip": (
        "bash",
        {"Command": '[ "touch owned.txt" ]'},
        Repaired("bash", {"command": '[ "touch owned.txt" ]'}, ("key",)),
    ),
    "an object as text": ("bash", {"command": '{"command": "echo hi"}'}, _echo("command")),
    "a line in a fence": ("bash", {"command": "```bash\necho hi\n```"}, _echo("command")),
    "a prompt": ("bash", {"command": "$ echo hi"}, _echo("command")),
    "a prompt and its output": (
        "bash",
        {"command": "$ echo hi\nhi"},
        Refused("starts with a prompt", "without output"),
    ),
    "words with an operator": ("bash", {"command": ["ls", "|", "wc"]}, Refused("command as one string, a shell line")),
    "a line in back quotes": ("bash", {"command": "`echo hi`"}, Refused("leave them out, or write $(…)")),
    "operators as in HTML": ("bash", {"command": "echo hi &gt; n.txt"}, Refused("as in HTML", "write the characters")),
    "an empty line": ("bash", {"command": ""}, Refused("command: string should have at least 1 character")),
}

CONTENTS: dict[str, tuple[str, Any, Any]] = {
    "a file in a fence": (
        "write",
        {"path": "n.py", "content": "```python\na = 1\n```"},
        Refused("in a code fence", "leave it out"),
    ),
    "line numbers": ("write", {"path": "n.py", "content": "1\ta = 1\n2\tb = 2\n"}, Refused("leave the numbers out")),
    "an elision": (
        "write",
        {"path": "n.py", "content": "a = 1\n# ... existing code ...\n"},
        Refused("send them all, or change a part with edit"),
    ),
    "escaped line breaks": (
        "write",
        {"path": "n.py", "content": "def f():\\n    pass\\n"},
        Refused("send real line breaks"),
    ),
    "a diff": (
        "write",
        {"path": "n.py", "content": "--- a/n.py\n+++ b/n.py\n@@ -1 +1 @@\n-a\n+b\n"},
        Refused("send the whole new content, or change a part with edit"),
    ),
    "code as in HTML": (
        "write",
        {"path": "n.py", "content": "if a &lt; b:\n    pass\n"},
        Refused("write the characters < > &"),
    ),
    "a file that was not read": ("write", {"path": "data.json", "content": "{}\n"}, Refused("read it first")),
    "line numbers in an edit": (
        "edit",
        {"path": "calc.py", "old_string": "2\t    return a - b", "new_string": "    return a + b"},
        Accepted("edit", {}, {"calc.py": FIXED}),
    ),
    "white space in an edit": (
        "edit",
        {"path": "calc.py", "old_string": "return  a - b", "new_string": "return a + b"},
        Refused('exactly: "    return a - b"'),
    ),
    "an elision in an edit": (
        "edit",
        {
            "path": "calc.py",
            "old_string": "    return a - b",
            "new_string": "    # ... rest of the code ...\n    return a + b",
        },
        Refused("which would be lost; write them"),
    ),
    "an edit of text that is not there": (
        "edit",
        {"path": "calc.py", "old_string": "nothing like it", "new_string": "b"},
        Refused("was not found", "read the file again"),
    ),
    "an edit of text that is there twice": (
        "edit",
        {"path": "calc.py", "old_string": "a", "new_string": "z"},
        Refused("replace_all=true"),
    ),
    "an edit that changes nothing": (
        "edit",
        {"path": "calc.py", "old_string": "a - b", "new_string": "a - b"},
        Refused("there is nothing to change"),
    ),
    "a patch for an edit": (
        "edit",
        {"path": "calc.py", "diff": "@@ -2 +2 @@"},
        Refused("diff: unknown field", "old_string"),
    ),
    "half an edit": (
        "edit",
        {"path": "calc.py", "old_string": "a - b"},
        Refused("give either old_string and new_string, or edits"),
    ),
}

CLASSES = {**NAMES, **JSON_TEXTS, **WRAPPED, **VALUES, **PATHS, **COMMANDS, **CONTENTS}
