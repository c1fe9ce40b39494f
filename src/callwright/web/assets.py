"""The files of the page as they are served: a few scripts of several modules each, compressed once, cacheable for ever.

The modules in `static` are served as scripts: the first one holds the frame and what every page shares, each
further one a page, or a part that few pages need, with all of its own modules. Comments and the white space between
tokens are left out; nothing is renamed. The address of a file has a hash of all files in it, so that a browser never
mixes two versions.
"""

import gzip
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from importlib.resources import files
from typing import Final

PAGES: Final = {
    "/": "sessions",
    "/session": "session",
    "/tools": "tools",
    "/rules": "rules",
    "/servers": "servers",
    "/skills": "skills",
    "/search": "search",
    "/costs": "costs",
}
"""The script of each page."""
SCRIPTS: Final = ("app", *PAGES.values(), "outside", "runs", "question", "calls", "timeline", "dialogs", "form")
"""The modules that scripts are named after. A script holds the modules that its own imports, but for other scripts."""
STYLES: Final = {
    "app.css": ("app.css", "session.css"),
    "sessions.css": ("sessions.css",),
    "cards.css": ("cards.css",),
    "pages.css": ("sessions.css", "cards.css", "pages.css"),
}
_PAGE_STYLES: Final = {"session": None, "sessions": "sessions.css"}
"""What a page needs beside the first style; `pages.css` if it is not here."""
_SHARED: Final = ("vendor", "api", "text", "parts", "app")
_TYPES: Final = {"js": "text/javascript; charset=utf-8", "css": "text/css; charset=utf-8"}
_GZIP_LEVEL: Final = 9

_IMPORT: Final = re.compile(r'^import \{ ([^}]+) \} from "\./(\w+)\.js";\n', re.M)
_DECLARED: Final = re.compile(r"^(export (default )?)?(?:async )?(?:function|const|let|class) (\w+)", re.M)
_VENDOR_EXPORTS: Final = re.compile(r"export\{([^}]+)\};?\s*$")
_TOKEN: Final = re.compile(
    r"""(?P<space>\s+|//[^\n]*|/\*.*?\*/)
    |(?P<text>"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*')
    |(?P<word>\d[\w.]*|[\w$]+)
    |(?P<pattern>/(?:\\.|\[(?:\\.|[^\]\\])*\]|[^/\\\[\n])+/\w*)
    |(?P<mark>\+\+|--|.)""",
    re.S | re.X,
)
_PATTERN_FOLLOWS: Final = frozenset(("return", "typeof", "case", *"(,=:[!&|?{;>+"))
"""After these a slash begins a regular expression; elsewhere it divides."""


@dataclass(frozen=True, slots=True)
class StaticFile:
    """A file as it is sent."""

    data: bytes
    packed: bytes
    media_type: str


class BundleError(Exception):
    """The modules of the page cannot be joined."""


class Assets:
    """The files of the page by name: requests look names up here and never on the disk."""

    def __init__(self) -> None:
        folder = files("callwright.web").joinpath("static")
        self._sources = {
            entry.name: entry.read_text("utf-8") for entry in sorted(folder.iterdir(), key=lambda e: e.name)
        }
        self._made: dict[str, StaticFile] = {}

    @cached_property
    def version(self) -> str:
        """A hash of all files, part of their addresses."""
        return sha256("\0".join(f"{name}\0{text}" for name, text in self._sources.items()).encode()).hexdigest()[:12]

    def page(self, path: str) -> StaticFile:
        """Return the document of a page; it names what the page needs, so that everything is fetched at once."""
        if path not in self._made:
            script = PAGES[path]
            scripts = [each for each in self._order([script]) if each in SCRIPTS and each != "app"]
            links = [f'<link rel="modulepreload" href="/static/{each}.js">' for each in scripts]
            if (style := _PAGE_STYLES.get(script, "pages.css")) is not None:
                links.append(f'<link rel="stylesheet" href="/static/{style}">')
            text = self._sources["index.html"].replace("</head>", "\n".join((*links, "</head>")))
            self._made[path] = _pack(text.replace("/static/", f"/static/{self.version}/"), "text/html; charset=utf-8")
        return self._made[path]

    def file(self, address: str) -> StaticFile | None:
        """Return a file by its address below `/static/`; None if there is none in this version."""
        version, _, name = address.partition("/")
        if version != self.version:
            return None
        if name not in self._made:
            stem, _, kind = name.rpartition(".")
            if kind == "js" and stem in SCRIPTS:
                text = self.script(stem)
            elif name in STYLES:
                text = "".join(strip_style(self._sources[part]) for part in STYLES[name])
            else:
                return None
            self._made[name] = _pack(text, _TYPES[kind])
        return self._made[name]

    def script(self, name: str) -> str:
        """Return a script: the modules it needs, in order, as one module.

        Raises:
            BundleError: Two of them declare the same name.
        """
        modules = _SHARED if name == "app" else self._order([name], within=name)
        bodies, declared, exported = list[str](), dict[str, str](), dict[str, str]()
        imported: dict[str, set[str]] = {}
        for module in modules:
            source = self._sources[f"{module}.js"]
            own, body = _open_module(module, source)
            for each, outside in own.items():
                if each in declared:
                    raise BundleError(f"{module}.js and {declared[each]}.js both declare {each}; rename one of them")
                declared[each] = module
                if outside and (name == "app" or module == name):
                    exported[outside] = each
            for names, origin in _IMPORT.findall(source):
                if origin not in modules:
                    script = "app" if origin in _SHARED else origin
                    imported.setdefault(script, set()).update(part.strip() for part in names.split(","))
            bodies.append(body)
        if clash := set[str]().union(*imported.values()) & declared.keys():
            raise BundleError(f"{name}.js imports and declares {', '.join(sorted(clash))}; rename one of them")
        head = "".join(f'import{{{",".join(sorted(names))}}}from"./{script}.js";' for script, names in imported.items())
        tail = ",".join(own if own == outside else f"{own} as {outside}" for outside, own in exported.items())
        return f"{head}{''.join(bodies)}export{{{tail}}};"

    def _order(self, names: Iterable[str], *, within: str = "") -> list[str]:
        """Return modules with those they import, each after what it needs.

        Args:
            names: The modules.
            within: A script; modules of other scripts are left out.
        """
        found: list[str] = []

        def add(name: str, above: tuple[str, ...]) -> None:
            if name in found or name in above or (within and name != within and name in (*SCRIPTS, *_SHARED)):
                return
            for _, origin in _IMPORT.findall(self._sources[f"{name}.js"]):
                add(origin, (*above, name))
            found.append(name)

        for name in names:
            add(name, ())
        return found


def _pack(text: str, media_type: str) -> StaticFile:
    data = text.encode()
    return StaticFile(data, gzip.compress(data, _GZIP_LEVEL, mtime=0), media_type)


def _open_module(name: str, source: str) -> tuple[dict[str, str], str]:
    """Return the names that a module declares, with the names they are exported as, and its code without those."""
    if name == "vendor":  # minified: its short names stay inside
        found = _VENDOR_EXPORTS.search(source)
        if found is None:
            raise BundleError("vendor.js does not end with its exports")
        pairs = {outside: own for own, _, outside in (part.partition(" as ") for part in found[1].split(","))}
        inside = source[: found.start()].strip()
        given = ",".join(f"{outside}:{own}" for outside, own in pairs.items())
        return {each: each for each in pairs}, f"const{{{','.join(pairs)}}}=(()=>{{{inside};return{{{given}}}}})();"
    own = {each: "default" if default else each if out else "" for out, default, each in _DECLARED.findall(source)}
    body = re.sub(r"^export (default )?", "", _IMPORT.sub("", source), flags=re.M)
    return own, strip_script(body)


def strip_script(source: str) -> str:
    """Return a script without comments and without the white space between its tokens."""
    parts: list[str] = []
    for token in _read_tokens(source):
        if parts and _need_space(parts[-1], token):
            parts.append(" ")
        parts.append(token)
    return "".join(parts)


def _need_space(before: str, after: str) -> bool:
    last, first = before[-1], after[0]
    if last in "+-":
        return first == last
    if first == ".":
        return before[0].isdigit()
    return (last.isalnum() or last in "_$") and (first.isalnum() or first in "_$")


def _read_tokens(source: str) -> Iterator[str]:
    """Yield the tokens of a script; of a template, the texts between its expressions are tokens too."""
    at, before = 0, ";"
    braces: list[str] = []  # for each open brace, the tag of the template whose expression it begins
    while at < len(source):
        found = _TOKEN.match(source, at)
        assert found is not None  # a mark matches anything
        kind, token = found.lastgroup, found[0]
        if token == "`" or (token == "}" and braces and braces[-1]):
            tag = braces.pop() if token == "}" else "html" if before == "html" else "text"
            token = source[at : _find_template_end(source, at + 1)]
            at += len(token)
            before = token[-1]
            if before == "{":
                braces.append(tag)
            yield re.sub(r"\s*\n\s*", "\n", token) if tag == "html" else token
            continue
        if kind == "pattern" and before not in _PATTERN_FOLLOWS:
            token = "/"
        at += len(token)
        if kind == "space":
            continue
        if token == "{":
            braces.append("")
        elif token == "}":
            braces.pop()
        before = token
        yield token


def _find_template_end(source: str, at: int) -> int:
    while source[at] != "`":
        if source.startswith("${", at):
            return at + 2
        at += 2 if source[at] == "\\" else 1
    return at + 1


def strip_style(source: str) -> str:
    """Return a style sheet without comments and without white space that means nothing."""
    text = re.sub(r"\s+", " ", re.sub(r"/\*.*?\*/", "", source, flags=re.S)).strip()
    return re.sub(r"(?<=:) | ?([{};,]) ?", r"\1", text).replace(";}", "}")
