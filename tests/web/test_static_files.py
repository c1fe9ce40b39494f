"""The files of the page: complete, joined without loss, no markup from strings, no other hosts, with licences."""

import gzip
import re
from pathlib import Path

import pytest

import callwright.web
from callwright.web.assets import PAGES, SCRIPTS, STYLES, Assets, strip_script, strip_style

STATIC = Path(callwright.web.__file__).parent / "static"
MODULES = sorted(STATIC.glob("*.js"))
OWN = [file for file in MODULES if file.name != "vendor.js"]
ROOT = Path(__file__).parents[2]


def test_every_import_names_a_module_and_an_export():
    exported = {
        file.name: set(re.findall(r"^export (?:async )?(?:function|const|class|let) (\w+)", file.read_text(), re.M))
        for file in OWN
    }
    exported["vendor.js"] = set(re.findall(r"\bas (\w+)", (STATIC / "vendor.js").read_text().rpartition("export{")[2]))
    for file in OWN:
        source = file.read_text()
        found = re.findall(r'^import \{ ([^}]+) \} from "\./([\w.]+)";', source, re.M)
        assert len(found) == len(re.findall(r"^import\b", source, re.M)), f"{file.name} has an import of another form"
        for names, target in found:
            missing = {name.strip() for name in names.split(",")} - exported[target]
            assert not missing, f"{file.name} imports {missing} from {target}"
        assert set(re.findall(r'import\("\./(\w+)\.js"\)', source)) <= set(SCRIPTS), file.name
        assert set(re.findall(r'loadStyle\("([\w.]+)"\)', source)) <= STYLES.keys(), file.name
        assert "/static/" not in source, f"{file.name} names a file without its version"


@pytest.mark.slow
def test_scripts_hold_every_module_and_import_only_what_others_export():
    assets = Assets()
    scripts = {name: assets.script(name) for name in SCRIPTS}
    exports = {
        name: set(re.split(",| as ", text.rpartition("export{")[2].rstrip("};"))) for name, text in scripts.items()
    }
    for name, text in scripts.items():
        for names, origin in re.findall(r'import\{([^}]*)\}from"\./(\w+)\.js"', text):
            assert set(names.split(",")) <= exports[origin], (name, origin)
    whole = "".join(scripts.values())
    for file in OWN:
        for declared in re.findall(
            r"^(?:export )?(?:default )?(?:async )?(?:function|class) (\w+)", file.read_text(), re.M
        ):
            assert re.search(rf"\b(?:function|class) {declared}\b", whole), f"{declared} of {file.name} is nowhere"


def test_pages_name_their_files_with_the_version():
    assets = Assets()
    for path in PAGES:
        page = assets.page(path)
        assert gzip.decompress(page.packed) == page.data
        named = re.findall(r'(?:src|href)="(/[^"]+)"', page.data.decode())
        assert len(named) >= 3
        for address in named:
            found = assets.file(address.removeprefix("/static/"))
            assert found is not None and gzip.decompress(found.packed) == found.data, address
    assert (
        assets.file("app.js")
        is assets.file(f"{assets.version}x/app.js")
        is assets.file(f"{assets.version}/text.js")
        is None
    )


@pytest.mark.parametrize(
    ("source", "stripped"),
    [
        ("const a = 1; // one\nlet b = a + +a - -a;", "const a=1;let b=a+ +a- -a;"),
        ("x = \"// no comment\"; y = '/* nor this */'; /* this */ z()", "x=\"// no comment\";y='/* nor this */';z()"),
        ("for (let i = 0; i < n; i++) go(i / 2 / 3);", "for(let i=0;i<n;i++)go(i/2/3);"),
        ("const r = /[/ ]\\/ x/g.test(a) ? /b c/ : a / b / c;", "const r=/[/ ]\\/ x/g.test(a)?/b c/:a/b/c;"),
        ("return /a  b/.exec(t);", "return/a  b/.exec(t);"),
        ("t = `a  // ${ b + `in  ${ c }` }  /* d */`;", "t=`a  // ${b+`in  ${c}`}  /* d */`;"),
        ("t = `two\n  lines`;", "t=`two\n  lines`;"),
        ("v = html`<p\n   class=${ {a: 1} }>\n  x</p>`;", "v=html`<p\nclass=${{a:1}}>\nx</p>`;"),
        ("a = `${/[`}]/.test(b) ? 1 : 2}`;", "a=`${/[`}]/.test(b)?1:2}`;"),
        (
            "async function f() { await g(); return typeof x in y; }",
            "async function f(){await g();return typeof x in y;}",
        ),
        ("a = b ? .5 : 1_000 .x; $ = _ => $", "a=b?.5:1_000 .x;$=_=>$"),
    ],
)
def test_scripts_lose_only_comments_and_white_space(source: str, stripped: str):
    assert strip_script(source) == stripped


def test_styles_lose_only_comments_and_white_space():
    source = "/* a */\n.a > b:hover, .c :focus { width: calc(100% - 2px); margin: 0 1px; }\n"
    source += "@media (max-width: 9px) { a { b: c; } }\n"
    assert strip_style(source) == (
        ".a > b:hover,.c :focus{width:calc(100% - 2px);margin:0 1px}@media (max-width:9px){a{b:c}}"
    )


def test_no_text_becomes_markup_or_code():
    for file in OWN:
        source = file.read_text()
        assert not re.search(
            r"innerHTML|outerHTML|insertAdjacent|document\.write|\beval\(|new Function|srcdoc", source
        ), file.name
    page = (STATIC / "index.html").read_text()
    assert not re.search(r"<style|\sstyle=|\son\w+=|<script(?![^>]*\ssrc=)", page)


def test_no_other_host_is_named():
    for file in [*OWN, *STATIC.glob("*.css"), STATIC / "index.html"]:
        text = file.read_text().replace("xmlns='http://www.w3.org/2000/svg'", "")  # a name, not an address
        assert not re.findall(r"(?:https?:|[\"'(])//(?:[\w-]+\.)+[a-z]{2,}", text), file.name


def test_vendored_file_is_small_and_has_its_licences():
    versions = dict(re.findall(r'"(preact|htm)": "([\d.]+)"', (ROOT / "scripts" / "vendor-web").read_text()))
    source, licences = (STATIC / "vendor.js").read_text(), (STATIC / "vendor.LICENSE").read_text()
    assert len(source) < 16_000
    for text in (source.splitlines()[0], licences.splitlines()[0]):
        assert f"Preact {versions['preact']} (MIT License)" in text
        assert f"htm {versions['htm']} (Apache License 2.0)" in text
    assert "(MIT License)" in Assets().script("app")
    assert "Permission is hereby granted" in licences
    assert "TERMS AND CONDITIONS FOR USE, REPRODUCTION, AND DISTRIBUTION" in licences
    assert "src/callwright/web/static/vendor.LICENSE" in (ROOT / "pyproject.toml").read_text()
