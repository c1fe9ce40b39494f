"""A session as one HTML file that needs nothing else: no script, no other file, credentials replaced."""

import html
import json
import time
from base64 import b64encode
from collections.abc import Iterable, Iterator
from typing import Any

from callwright.app.session_view import RecordView, find_image
from callwright.core.content import WEB_IMAGES
from callwright.core.escaping import visible
from callwright.hooks.builtin import Redact
from callwright.sessions.base import StoredRecord

_STYLE = """
:root{color-scheme:light dark;--bg:#fff;--fg:#1c1e21;--dim:#646b75;--line:#d9dde3;--box:#f5f6f8;
--add:#e3f5e6;--del:#fde7e7}
@media(prefers-color-scheme:dark){:root{--bg:#16181c;--fg:#e6e8eb;--dim:#9aa2ad;--line:#333840;--box:#1f2227;
--add:#173322;--del:#3d1d1f}}
body{font:15px/1.55 system-ui,sans-serif;background:var(--bg);color:var(--fg);max-width:60rem;margin:0 auto;
padding:1.5rem 1rem}
h1{font-size:1.25rem}article{border-top:1px solid var(--line);padding:.75rem 0}h2{font-size:.8rem;color:var(--dim);
margin:0 0 .35rem;font-weight:600}
pre{font:13px/1.45 ui-monospace,monospace;white-space:pre-wrap;overflow-wrap:anywhere;margin:.35rem 0;
background:var(--box);padding:.5rem .7rem;border-radius:6px}
.text{white-space:pre-wrap;overflow-wrap:anywhere}.add{background:var(--add)}.del{background:var(--del)}
.rewound{opacity:.5}img{max-width:100%}footer{color:var(--dim);margin-top:1rem}
"""
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
Fields = dict[str, Any]


def export_html(title: str, view: RecordView, stored: Iterable[StoredRecord], rewound: set[int]) -> str:
    """Return a session as HTML.

    Args:
        title: The title of the session.
        view: Describes its records.
        stored: The records.
        rewound: The positions of records that were undone.
    """
    redact = Redact()
    articles: list[str] = []
    for each in stored:
        item: Fields = redact.clean_data(view.fields(each))
        body = "".join(_body(item, each))
        if body:
            at = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(each.at)) if each.at else ""
            mark = ' class="rewound"' if each.position in rewound else ""
            articles.append(f"<article{mark} id=r{each.position}><h2>{_heading(item)} · {at}</h2>{body}</article>")
    name = _escape(redact.clean(title) or "session")
    head = (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{name}</title>'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
        f'<meta name="referrer" content="no-referrer"><style>{_STYLE}</style></head>'
    )
    foot = "<footer>Exported by callwright; credentials that were found are replaced.</footer>"
    return f"{head}<body><h1>{name}</h1>{''.join(articles)}{foot}</body></html>\n"


def _heading(item: Fields) -> str:
    names = {"user": "You", "outcomes": "Tools", "asked": "Question", "answered": "Answer"}
    kind = str(item["kind"])
    return _escape(names.get(kind, f"Model {item.get('model', '')}".strip() if kind == "assistant" else kind))


def _body(item: Fields, stored: StoredRecord) -> Iterator[str]:
    match item["kind"]:
        case "user" | "assistant":
            yield from _parts(item["parts"], stored)
        case "outcomes":
            start = 0
            for outcome in item["outcomes"]:
                state = "✓" if outcome["ok"] else f"✗ {outcome['code']}"
                yield f"<div>{_escape(outcome['name'])} {_escape(state)} · {outcome['seconds']:.2f} s</div>"
                yield f"<pre>{_escape(outcome['text'])}</pre>"
                yield from _images(outcome["parts"], stored, start)
                start += max(len(outcome["parts"]), 1) if outcome["ok"] else 0
        case "asked":
            for question in item["questions"]:
                because = f" — {question['reason']}" if question["reason"] else ""
                yield f"<div>{_escape(question['summary'] + because)}</div>"
        case "answered":
            for reply in item["replies"].values():
                yield f"<div>{'allowed' if reply['approved'] else 'declined'} ({_escape(reply['scope'])})</div>"
        case "compacted":
            yield f"<pre>{_escape(item['summary'])}</pre>"
        case "limit":
            yield f"<div>stopped at the limit: {_escape(item['limit'])}</div>"
        case "rewound":
            yield f"<div>returned to record {item['to']}</div>"
        case _:
            return


def _parts(parts: Iterable[Fields], stored: StoredRecord) -> Iterator[str]:
    for place, part in enumerate(parts):
        match part["type"]:
            case "text":
                yield f'<div class="text">{_escape(part["text"])}</div>'
            case "thinking":
                yield f"<details><summary>thinking</summary><pre>{_escape(part['text'])}</pre></details>"
            case "call":
                yield f"<div>{_escape(part['name'])}</div>"
                yield _diff(part["preview"]) if part["preview"] else f"<pre>{_escape(_json(part['arguments']))}</pre>"
            case _:
                yield from _images([part], stored, place)


def _images(parts: Iterable[Fields], stored: StoredRecord, start: int) -> Iterator[str]:
    for place, part in enumerate(parts, start):
        if part["type"] == "image":
            image = find_image(stored.record, place)
            if image is not None and image.media_type in WEB_IMAGES:
                data = b64encode(image.data).decode("ascii")
                yield f'<img alt="" src="data:{image.media_type};base64,{data}">'
        elif part["type"] == "file":
            yield f"<div>file {_escape(part['name'])} ({_escape(part['media_type'])}, {part['size']} bytes)</div>"


def _diff(preview: Fields) -> str:
    classes = {"+": "add", "-": "del"}
    rows = (
        f'<span class="{classes.get(row["mark"], "")}">{_escape(row["mark"])} {_escape(row["text"])}\n</span>'
        for row in preview["rows"]
    )
    return f"<div>{_escape(preview['path'])}</div><pre>{''.join(rows)}</pre>"


def _json(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=2, default=str)


def _escape(text: str) -> str:
    """Return text for HTML; control, ANSI and bidirectional characters are shown, not obeyed."""
    return html.escape(visible(text))
