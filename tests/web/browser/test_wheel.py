"""The page from the built wheel: an environment with the extra `web` and nothing else, no Node, no other host."""

import json
import subprocess
import sys
import venv
import zipfile
from collections.abc import Iterator
from importlib.metadata import Distribution, distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from playwright.sync_api import BrowserContext, expect

from .conftest import Served, read_link

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]
ROOT = Path(__file__).parents[3]


def find_needed(requirements: list[str], extra: str) -> dict[str, Distribution]:
    """Return the distributions that requirements lead to, with one extra of the first ones."""
    found: dict[str, Distribution] = {}

    def add(text: str, extras: frozenset[str]) -> None:
        wanted = Requirement(text)
        marker = wanted.marker
        if marker is not None and not any(marker.evaluate({"extra": each}) for each in (extras or {""})):
            return
        name = canonicalize_name(wanted.name)
        if name not in found:
            found[name] = distribution(name)
            for each in found[name].requires or ():
                add(each, frozenset(wanted.extras))

    for each in requirements:
        add(each, frozenset({"", extra}))
    return found


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment with the wheel and what its extra `web` needs; the packages are links to those of this machine."""
    folder = tmp_path_factory.mktemp("wheel")
    script = ROOT / "scripts" / "release"
    command = [sys.executable, str(script), "--unreleased", "--no-install", "--to", str(folder / "dist")]
    ran = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    venv.create(folder / "environment", with_pip=False)
    site = next((folder / "environment" / "lib").glob("python*/site-packages"))
    wheel = next((folder / "dist").glob("*.whl"))
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(site)
    metadata = next(site.glob("callwright-*.dist-info/METADATA")).read_text("utf-8")
    required = [
        line.removeprefix("Requires-Dist: ") for line in metadata.splitlines() if line.startswith("Requires-Dist")
    ]
    for needed in find_needed(required, "web").values():
        for top in {Path(file).parts[0] for file in needed.files or ()} - {"..", "bin", "__pycache__"}:
            if not (site / top).exists():
                (site / top).symlink_to(Path(str(needed.locate_file(top))))
    return folder / "environment"


@pytest.fixture
def installed(environment: Path, tmp_path: Path) -> Iterator[Served]:
    project, home = tmp_path / "words", tmp_path / "home"
    (project / ".git").mkdir(parents=True)
    home.mkdir()
    script = tmp_path / "script.json"
    script.write_text(
        json.dumps([{"calls": [{"name": "write", "arguments": {"path": "a.txt", "content": "x\n"}}]}, "Done."])
    )
    around = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "CALLWRIGHT_HOME": str(home), "PYTHONUNBUFFERED": "1"}
    command = [
        str(environment / "bin" / "python"),
        "-I",
        "-m",
        "callwright",
        "web",
        "--port=0",
        f"--model=script:{script}",
    ]
    process = subprocess.Popen(
        command, cwd=project, env=around, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    yield Served(project, home, read_link(process), process)
    process.kill()
    process.wait()
    if process.stdout:
        process.stdout.close()


def test_installed_page_works_without_node_and_other_hosts(installed: Served, desktop: BrowserContext):
    asked: set[str] = set()
    desktop.on("request", lambda request: asked.add(request.url.partition("?")[0]))
    page = installed.start(desktop)
    card = page.locator("[data-question]")
    expect(card).to_have_count(1)
    expect(page.locator(".question.dead")).to_have_count(0)
    page.keyboard.press("y")
    expect(page.get_by_text("Done.")).to_be_visible()
    assert (installed.project / "a.txt").read_text() == "x\n"
    for path, heading in (("/tools", "Tools"), ("/rules", "Rules"), ("/costs", "Costs"), ("/", "Sessions")):
        page.goto(installed.origin + path)
        expect(page.get_by_role("heading", name=heading, level=1)).to_be_visible()
    assert all(url.startswith((installed.origin, "data:", "blob:")) for url in asked), asked


def test_environment_has_the_wheel_and_nothing_more(environment: Path):
    look = (
        "import callwright, importlib.util as u; print(callwright.__file__, *map(u.find_spec, ('mcp', 'playwright')))"
    )
    ran = subprocess.run(
        [str(environment / "bin" / "python"), "-I", "-c", look], capture_output=True, text=True, check=True
    )
    file, *others = ran.stdout.split()
    assert Path(file).is_relative_to(environment) and others == ["None", "None"]
