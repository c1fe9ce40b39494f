"""`callwright doctor`: what is installed, which model, which sandbox, and what to do next."""

import json
import platform
import shutil
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from typing import Literal

from callwright import __version__
from callwright.app.locations import Locations
from callwright.app.models import choose_model
from callwright.app.settings import Settings, load_settings
from callwright.app.trust import Trust
from callwright.cli.parsing import Parser
from callwright.cli.render.calls import visible
from callwright.core.errors import UsageError
from callwright.skills import Skills
from callwright.system.sandbox.sandbox import find_sandbox
from callwright.system.search.ripgrep import find_ripgrep

_DESCRIPTION = """\
Looks at what callwright needs and finds here: settings, trust, model, sandbox, skills, programs, extras, sessions.
Changes nothing. Lines with FAIL keep the agent from working (code 1); "do:" says what helps."""
_EXTRAS = {
    "anthropic": "anthropic",
    "openai": "openai",
    "google": "google.genai",
    "mcp": "mcp",
    "local": "xllamacpp",
    "pdf": "pypdf",
    "semantic": "onnxruntime",
    "otel": "opentelemetry",
}
_MARKS = {"ok": "ok  ", "note": "note", "fail": "FAIL"}


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at."""

    about: str
    level: Literal["ok", "note", "fail"]
    text: str
    advice: str = ""


def run(arguments: list[str]) -> int:
    """Look at everything; 1 if something keeps the agent from working."""
    parser = Parser("callwright doctor", description=_DESCRIPTION)
    parser.add_argument("--json", action="store_true", help="as a list of findings")
    options = parser.parse_args(arguments)
    findings = list(examine(Locations.of()))
    if options.json:
        print(json.dumps([asdict(finding) for finding in findings], indent=2))
    else:
        for finding in findings:
            print(f"{_MARKS[finding.level]}  {finding.about:<10}  {visible(finding.text)}")
            if finding.advice:
                print(f"{'':<18}do: {finding.advice}")
    return 1 if any(finding.level == "fail" for finding in findings) else 0


def examine(locations: Locations) -> Iterator[Finding]:
    """Look at one thing after the other; nothing is changed."""
    yield Finding("version", "ok", f"callwright {__version__}, Python {platform.python_version()}, {platform.system()}")
    settings = Settings()
    try:
        settings = load_settings(locations, trusted=Trust(locations).given)
        sources = ", ".join(layer.source for layer in settings.layers) or "none; the defaults hold"
        yield Finding("settings", "ok", sources)
        yield from (Finding("settings", "note", problem) for problem in settings.problems)
    except UsageError as error:
        yield Finding("settings", "fail", str(error), "correct the file; nothing runs before")
    yield _trust(locations)
    yield _model(settings)
    yield _sandbox(settings, locations)
    yield _skills(locations)
    yield _search()
    yield _extras()
    yield _record(locations)


def _trust(locations: Locations) -> Finding:
    try:
        trust = Trust(locations)
        if trust.given:
            return Finding("trust", "ok", f"{locations.project} has all it asks for")
        return Finding(
            "trust", "note", f"{locations.project} is not trusted", "callwright trust; callwright trust give"
        )
    except UsageError as error:
        return Finding("trust", "fail", str(error))


def _model(settings: Settings) -> Finding:
    choice = choose_model(settings)
    if choice is None:
        return Finding(
            "model",
            "note",
            "none: no setting, no key in the environment, no server on this machine",
            "export ANTHROPIC_API_KEY=…, or start ollama serve, or use --model local:FILE",
        )
    package = {"anthropic": "anthropic", "openai": "openai", "google": "google.genai"}.get(
        choice.name.partition(":")[0]
    )
    if package is not None and not _installed(package):
        extra = choice.name.partition(":")[0]
        return Finding("model", "fail", f"{choice.name} needs a package", f"pip install 'callwright[{extra}]'")
    return Finding("model", "ok", f"{choice.name} ({choice.why})")


def _sandbox(settings: Settings, locations: Locations) -> Finding:
    offered = find_sandbox("prefer", writable=[locations.cwd])
    wish = settings.last("sandbox") or "off"
    if offered.kind == "none":
        return Finding("sandbox", "note", offered.describe())
    if wish == "off":
        return Finding(
            "sandbox", "note", f"{offered.kind} is there and not used", '"sandbox": "prefer" in the settings'
        )
    return Finding("sandbox", "ok", offered.describe())


def _skills(locations: Locations) -> Finding:
    skills = Skills(locations.cwd)
    broken = sum(problem.fatal for problem in skills.problems)
    text = f"{len(skills)} can be used" + (f", {broken} cannot" if broken else "")
    if not skills.problems:
        return Finding("skills", "ok", text)
    return Finding("skills", "note", text, "callwright skills check")


def _search() -> Finding:
    missing = [name for name in ("git", "bash") if shutil.which(name) is None]
    found = "ripgrep" if find_ripgrep() else "Python (slower than ripgrep)"
    advice = f"install {' and '.join(missing)}" if missing else ""
    return Finding("programs", "fail" if "bash" in missing else "ok", f"search by {found}", advice)


def _extras() -> Finding:
    there = [extra for extra, package in _EXTRAS.items() if _installed(package)]
    missing = [extra for extra in _EXTRAS if extra not in there]
    text = f"{', '.join(there) or 'none'} installed" + (f"; not {', '.join(missing)}" if missing else "")
    return Finding("extras", "ok", text)


def _installed(package: str) -> bool:
    try:
        return find_spec(package) is not None
    except ModuleNotFoundError:  # the parent of a dotted name
        return False


def _record(locations: Locations) -> Finding:
    try:
        locations.record.mkdir(mode=0o700, parents=True, exist_ok=True)
        probe = locations.record / ".probe"
        probe.touch()
        probe.unlink()
    except OSError as error:
        return Finding(
            "sessions", "fail", f"{locations.record} cannot be written: {error.strerror}", "set CALLWRIGHT_HOME"
        )
    return Finding("sessions", "ok", str(locations.sessions))
