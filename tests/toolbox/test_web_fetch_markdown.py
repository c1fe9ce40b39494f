"""Conversion of HTML to Markdown."""

import pytest
from hypothesis import given, strategies as st

from callwright.toolbox.web.html import html_to_markdown

PIECES = """
    <p> </p> <a+href=x> </a> <table> <tr> <td> </tr> <pre> </pre> <ul> <li> </ul> <code> </code> <blockquote>
    </blockquote> <h2> </h2> <script> </script> <b> < &amp; <!-- --> <a+href=" " <title> </ > <!x
"""


@pytest.mark.parametrize(
    ("html", "markdown"),
    [
        ("<h2>A  b\n c</h2>text", "## A b c\n\ntext"),
        ("one<br>two<p>three", "one\ntwo\n\nthree"),
        ("<b>bold</b> <em>soft</em> <code>a*b</code>", "**bold** *soft* `a*b`"),
        ("<ul><li>one<ul><li>in</ul><li><p>two</p></ul>", "- one\n  - in\n- two"),
        ("<ol><li>a<li>b</ol>", "1. a\n2. b"),
        ("<pre class='language-py'>a\n  b &lt; c\n</pre>", "```py\na\n  b < c\n```"),
        ("<blockquote><p>said</p></blockquote>after", "> said\n\nafter"),
        ("<table><tr><th>k<th>v|w<tr><td>1<td><p>two</p></table>", "| k | v\\|w |\n| --- | --- |\n| 1 | two |"),
        (
            "<table><tr><th>k<th>v<th>w</tr><tr><td>1</td><td></td><td>2</td></tr><tr><td><td><td></tr></table>",
            "| k | v | w |\n| --- | --- | --- |\n| 1 |  | 2 |",
        ),
        ("<table><tr><td>a</td> <td><table><tr><td>b</table></table>", "| a |\n| --- |\n| b |"),
        ("a <svg class='i'/>b <svg><svg /></svg>c <svg class=i/>d", "a b c"),
        ("<p>a<script src=x />b</script>c<br/>d", "ac\nd"),
        ("<a href='/x y'>t</a>", "[t](https://site/x%20y)"),
        ("<a href='javascript:alert(1)'>t</a> <a href='#top'>u</a> <a>v</a>", "t u v"),
        ("<img src=p.png alt='a  pic'><img src=q.png>", "![a pic](https://site/d/p.png)"),
        ("a<script>b</script><style>c</style><noscript>d</noscript>e", "ae"),
        ("<p>&lt;b&gt; &nbsp; &#8364;</p>", "<b> €"),
    ],
)
def test_page_structure_is_kept(html: str, markdown: str):
    assert html_to_markdown(html, "https://site/d/").text == markdown


def test_title_is_separate():
    page = html_to_markdown("<head><title> A\n&amp; B </title></head><body>text")
    assert (page.title, page.text) == ("A & B", "text")


@given(
    st.lists(st.sampled_from([piece.replace("+", " ") for piece in PIECES.split()]) | st.text(max_size=5), max_size=40)
)
def test_any_page_can_be_converted(pieces: list[str]):
    html_to_markdown("".join(pieces), "https://site/")


@pytest.mark.slow
@pytest.mark.parametrize(
    "piece",
    ["<!--", "<a ", "</", "<![CDATA[", "<?", "<a href='", "&#x", "<div>", "<ul><li>", "<tr><td>", "<a href=x>y"],
)
def test_hostile_page_takes_linear_time(piece: str):
    # a quadratic reading of this would run into the suite's time-out
    html_to_markdown(piece * (300_000 // len(piece)), "https://site/")
