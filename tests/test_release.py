"""The distributions: built, checked and used in an empty environment; a faulty one is refused with its reason."""

import os
import runpy
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
SCRIPT = ROOT / "scripts" / "release"
pytestmark = pytest.mark.slow


@pytest.fixture
def release() -> dict[str, Any]:
    return runpy.run_path(str(SCRIPT))


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dist")
    command = [sys.executable, str(SCRIPT), "--unreleased", "--to", str(folder)]
    environment = os.environ | {"PIP_COMPILE": "0"}  # Python compiles what it imports
    ran = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=600)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return folder


def change(wheel: Path, target: Path, name: str, old: bytes, new: bytes | None) -> Path:
    """Copy a wheel with one file changed, or left out."""
    with zipfile.ZipFile(wheel) as source, zipfile.ZipFile(target, "w") as copy:
        for entry in source.infolist():
            data = source.read(entry)
            if entry.filename.endswith(name):
                if new is None:
                    continue
                assert old in data
                data = data.replace(old, new)
            copy.writestr(entry, data)
    return target


def test_wheel_works_in_an_empty_environment(built: Path) -> None:
    assert sorted(path.suffix for path in built.iterdir()) == [".gz", ".whl"]


@pytest.mark.parametrize(
    ("name", "old", "new", "reason"),
    [
        ("METADATA", b"(https://github.com/", b"(docs/", "lead nowhere"),
        ("METADATA", b"Summary: ", b"Other: ", "no Summary"),
        ("py.typed", b"", None, r"lacks callwright/py\.typed"),
        ("vendor.LICENSE", b"", None, "lacks .*LICENSE"),
    ],
)
def test_faulty_wheel_is_refused(
    built: Path, release: dict[str, Any], tmp_path: Path, name: str, old: bytes, new: bytes | None, reason: str
) -> None:
    wheel = next(built.glob("*.whl"))
    with pytest.raises(release["Refused"], match=reason):
        release["check_wheel"](change(wheel, tmp_path / wheel.name, name, old, new), release["read_version"]())


def test_version_without_a_section_in_the_changelog_is_refused(release: dict[str, Any], tmp_path: Path) -> None:
    subprocess.run(["git", "init", "--quiet", str(tmp_path)], check=True)
    shutil.copy(ROOT / "CHANGELOG.md", tmp_path)
    release["check_tree"].__globals__["ROOT"] = tmp_path
    with pytest.raises(release["Refused"], match=r"commit these first:\n.*CHANGELOG"):
        release["check_tree"]("9.9.9")
    (tmp_path / ".gitignore").write_text("*\n")
    with pytest.raises(release["Refused"], match=r"no section '## 9\.9\.9"):
        release["check_tree"]("9.9.9")
    with (tmp_path / "CHANGELOG.md").open("a") as changelog:
        changelog.write("\n## 9.9.9 (2026-01-02)\n")
    release["check_tree"]("9.9.9")
