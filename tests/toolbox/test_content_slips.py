"""Contents that are refused because the model did not mean them as a file, and their legitimate neighbours."""

from pathlib import Path

import pytest

from callwright import Completed, Executor, Failed, Registry
from callwright.policy import AllowEverything
from callwright.toolbox._content_slips import find_edit_slip, find_elision, find_slip
from callwright.toolbox.edit.edit_tool import Edit
from callwright.toolbox.read import Read
from callwright.toolbox.write import Write

CODE = "def f(a):\n    return a\n"
PAGE = "<p>Terms &amp; Conditions</p>\n<p>a &lt; b</p>\n"
OTHERS = ("code", "methods", "functions", "imports", "tests", "routes", "classes", "handlers")


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("calc.py", f"```python\n{CODE}```", "code fence"),
        ("calc.py", f"\n```\n{CODE}```\n\n", "code fence"),
        ("calc.py", f"~~~~py\n{CODE}~~~~", "code fence"),
        ("data.json", '```json\n{"a": 1}\n```', "code fence"),
        ("Makefile", "```make\nall:\n\techo\n```", "code fence"),
        ("notes.txt", "```\nhello\n```", "code fence"),
        ("calc.py", "1\tdef f(a):\n2\t    return a\n", "line number"),
        ("calc.py", "     1→def f(a):\n     2→    return a", "line number"),
        ("calc.py", " 9 | def f(a):\n10 |     return a", "line number"),
        ("calc.py", "1: def f(a):\n2:     return a\n\n4: x = 1", "line number"),
        ("calc.py", "def f(a):\\n    return a\\n", "real line breaks"),
        ("calc.js", "function f() {\\n  return 1;\\n}", "real line breaks"),
        ("calc.py", "--- a/calc.py\n+++ b/calc.py\n@@ -1 +1 @@\n-a\n+b\n", "a diff"),
        ("calc.py", "*** Begin Patch\n*** Update File: calc.py\n", "a diff"),
        ("calc.py", "<<<<<<< SEARCH\na\n=======\nb\n>>>>>>> REPLACE\n", "a diff"),
        ("calc.py", f"# ... existing code ...\n{CODE}", "stands for other lines"),
        ("calc.py", f"{CODE}\n    # … rest of the class unchanged", "stands for other lines"),
        ("calc.ts", "// ... rest of the code remains the same\nexport {}\n", "stands for other lines"),
        ("calc.ts", "// existing code here\n", "stands for other lines"),
        ("calc.ts", "/* ... other methods ... */", "stands for other lines"),
        ("page.html", "<!-- ... existing content ... -->\n<p>\n", "stands for other lines"),
        ("calc.sql", "-- rest of the file unchanged\nselect 1;\n", "stands for other lines"),
        ("README.md", "# Title\n\n[... rest of the document unchanged ...]\n", "stands for other lines"),
        ("app.jsx", "<div>\n  {/* ... existing code ... */}\n</div>\n", "stands for other lines"),
        ("calc.py", f"{CODE}# --- rest of the file ---\n", "stands for other lines"),
        ("calc.py", f"{CODE}# --- existing code ---\n", "stands for other lines"),
        ("calc.ts", "// --- remaining methods unchanged ---\n", "stands for other lines"),
        ("calc.js", "for (let i = 0; i &lt; n; i++) f(i);\n", "as in HTML"),
        ("calc.php", "<?php\nif ($a &lt; $b) { $a-&gt;f(); }\n", "as in HTML"),
        ("calc.js", "const tag = /<.+?>/;\nif (a &amp;&amp; b) f();\n", "as in HTML"),
        ("Dockerfile", "FROM debian\nRUN apt-get update &amp;&amp; apt-get install -y git\n", "as in HTML"),
        ("Makefile", "all:\n\tcd a &amp;&amp; make\n", "as in HTML"),
        ("run.ps1", "if ($a) { $a | % { $_ -&gt; $b } }\n", "as in HTML"),
        ("main.dart", "List&lt;String&gt; names = [];\n", "as in HTML"),
        *(("calc.js", f"class A {{\n  // --- other {what} ---\n}}\n", "stands for other lines") for what in OTHERS),
    ],
)
def test_slip_is_refused_with_its_reason(name: str, content: str, reason: str):
    assert reason in (find_slip(name, content) or "accepted")


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("README.md", f"```python\n{CODE}```\n"),
        ("usage.mdx", "```\nhello\n```"),
        ("calc.py", CODE),
        ("calc.py", "class A:\n    ...\n\n    def f(self): ...\n"),
        ("calc.py", "# ...\nx = 1\n"),
        ("calc.py", 'text = """\n```\nx\n```\n"""\n'),
        ("prompt.py", "```\na\n```\nmiddle\n```\nb\n```"),
        ("table.tsv", "1\tone\n2\ttwo\n"),
        ("ids.csv", "1\tone\n2\ttwo\n"),
        ("map.yaml", "1: one\n2: two\n"),
        ("list.md", "1. one\n2. two\n"),
        ("calc.py", "1\tx\n"),
        ("old.bas", "10 PRINT\n20 GOTO 10\n"),
        ("calc.py", 'print("a\\nb")\n'),
        ("calc.py", 'print("a\\n")'),
        ("app.properties", "message=a\\n"),
        ("fix.patch", "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n"),
        ("calc.py", "# the rest of the arguments are optional\nx = 1\n"),
        ("calc.py", "# keep the existing order: callers rely on it\nx = 1\n"),
        ("calc.py", "# other functions are in util.py\nx = 1\n"),
        ("guide.md", "Abbreviate:\n\n```python\n# ... existing code ...\n```\n"),
        ("empty.py", ""),
        ("calc.py", f"# --- Other tools ---\n{CODE}\n# ---- REST models ------\n"),
        *((f"page.{suffix}", PAGE) for suffix in ("erb", "hbs", "j2", "php", "twig", "xsl", "rss", "ts")),
        ("page.erb", "Terms &amp; Conditions\n"),
        ("page.php", f"<?php\n$title = 1;\n?>\n{PAGE}"),
    ],
)
def test_legitimate_content_is_written(name: str, content: str):
    assert find_slip(name, content) is None


@pytest.mark.parametrize("what", OTHERS)
def test_placeholder_between_dashes_replaces_no_lines(what: str):
    before = "".join(f"m{number}() {{}}\n" for number in range(40))
    assert "stands for other lines" in (find_slip("calc.js", f"m0() {{}}\n// --- other {what} ---\n", before) or "")
    assert "stands for other lines" in (find_edit_slip("calc.js", "m0() {}", f"m0()\n// --- other {what} ---") or "")


@pytest.mark.parametrize("content", ["```\nx\n```\n", "1\tone\n2\ttwo\n", "# ... existing code ...\n"])
def test_what_stands_there_already_may_be_written_again(content: str):
    assert find_slip("f.tmpl", content, before=content) is None
    assert find_slip("f.tmpl", content, before="x = 1\n") is not None


def test_elision_is_found_only_if_it_is_new():
    assert find_elision("a\n  # ... existing code ...\n") == "# ... existing code ..."
    assert find_elision("a\n  # ... existing code ...\n", before="# ... existing code ...") is None


async def test_refused_write_and_edit_change_nothing(tmp_path: Path):
    executor = Executor(Registry(Read(tmp_path), Write(tmp_path), Edit(tmp_path)), policies=AllowEverything())
    file = tmp_path / "calc.py"
    file.write_text(CODE)
    await executor.run("read", {"path": "calc.py"})
    for content in (f"```python\n{CODE}```", "# ... existing code ...\n", "1\ta\n2\tb\n"):
        outcome = await executor.run("write", {"path": "calc.py", "content": content, "overwrite": True})
        assert isinstance(outcome, Failed)
        assert outcome.text.startswith("nothing was written to calc.py: ")
    edit = {"path": "calc.py", "old_string": "    return a\n", "new_string": "    # ... rest of the code ...\n"}
    assert isinstance(await executor.run("edit", edit), Failed)
    assert file.read_text() == CODE
    assert isinstance(await executor.run("edit", edit), Completed)  # the same edit again insists


@pytest.mark.parametrize("mark", list("#-/;%*=<(["))
def test_long_rulers_and_numbers_are_contents_like_others(mark: str) -> None:
    content = f"{mark * 5000}\n" + f"{mark * 100} Title {mark * 100}\n{mark * 250}\n" * 500 + "1" * 5000 + "\tx\n"
    for name in ("a.py", "a.txt", "a.md"):
        assert find_slip(name, content) is None
        assert find_slip(name, content, "before\n") is None
        assert find_edit_slip(name, "x", content) is None
    assert find_elision(f"{mark * 40}\n######## ... existing code ... ########\n") is not None


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("f.py", "<<<<<<< a\n"),
        ("f.py", "<<<<<<< a\n=======\n"),
        ("f.py", "<<<<< SEARCH\n=====\n"),
        ("f.md", "```py\n"),
        ("f.md", "`"),
        ("f.c", "/* "),
    ],
)
def test_what_begins_very_often_and_never_ends_is_read_once(name: str, line: str):
    # in quadratic time this takes many seconds, in which the whole process stands still
    assert find_slip(name, line * (150_000 // len(line)) + "&") is None
