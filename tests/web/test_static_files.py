"""The files of the page: complete, without markup from strings, without other hosts, with licences."""

import re
from pathlib import Path

import callwright.web

STATIC = Path(callwright.web.__file__).parent / "static"
SCRIPTS = sorted(STATIC.glob("*.js"))
OWN = [file for file in SCRIPTS if file.name != "vendor.js"]
ROOT = Path(__file__).parents[2]


def test_every_import_and_link_names_a_file_and_an_export():
    exported = {
        file.name: set(re.findall(r"^export (?:async )?(?:function|const|class|let) (\w+)", file.read_text(), re.M))
        for file in OWN
    }
    exported["vendor.js"] = set(re.findall(r"\bas (\w+)", (STATIC / "vendor.js").read_text().rpartition("export{")[2]))
    for file in OWN:
        for names, target in re.findall(r'^import \{ ([^}]+) \} from "/static/([\w.]+)";', file.read_text(), re.M):
            missing = {name.strip() for name in names.split(",")} - exported[target]
            assert not missing, f"{file.name} imports {missing} from {target}"
        for target in re.findall(r'"/static/([\w.]+)"', file.read_text()):
            assert (STATIC / target).is_file(), f"{file.name} names {target}"
    for target in re.findall(r'"/static/([\w.]+)"', (STATIC / "index.html").read_text()):
        assert (STATIC / target).is_file(), target


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
        assert not re.findall(r"(?:https?:|[\"'(])//(?:[\w-]+\.)+[a-z]{2,}", file.read_text()), file.name


def test_vendored_file_is_small_and_has_its_licences():
    versions = dict(re.findall(r'"(preact|htm)": "([\d.]+)"', (ROOT / "scripts" / "vendor-web").read_text()))
    source, licences = (STATIC / "vendor.js").read_text(), (STATIC / "vendor.LICENSE").read_text()
    assert len(source) < 16_000
    for text in (source.splitlines()[0], licences.splitlines()[0]):
        assert f"Preact {versions['preact']} (MIT License)" in text
        assert f"htm {versions['htm']} (Apache License 2.0)" in text
    assert "Permission is hereby granted" in licences
    assert "TERMS AND CONDITIONS FOR USE, REPRODUCTION, AND DISTRIBUTION" in licences
    assert "src/callwright/web/static/vendor.LICENSE" in (ROOT / "pyproject.toml").read_text()
