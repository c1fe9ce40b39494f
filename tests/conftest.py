"""Settings for every test: how many examples are generated, and that none is judged by how long it takes."""

import gc
import os
import re
import signal
import tempfile
from collections.abc import Generator
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

# a loaded machine must not fail a property: speed is measured in benchmarks/, not asserted in tests
settings.register_profile("callwright", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("callwright")

# a shell has what it runs in the background ignore Ctrl-C, and so would the processes that tests interrupt
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# each HTTP client reads the authorities it trusts, which takes 50 ms for the usual ones; tests stay on this machine
os.environ["SSL_CERT_FILE"] = str(Path(__file__).with_name("authority.pem"))

_DEFAULT_SHARE = 4
"""The default run tries a quarter of the examples of a property, the slow run all of them."""
_LEAST_EXAMPLES = 10
_ONLY_SLOW = re.compile(r"^pytestmark = .*\bpytest\.mark\.slow\b", re.MULTILINE)
_SOME_SLOW = re.compile(r"\bslow\b|@given\b")


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection() -> Generator[None, object, object]:
    """Keep what is imported from the garbage collector: looking through it takes a third of a second each time."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Do not import files of whose tests none runs, and what they need: all are slow, or none is."""
    wanted = str(config.getoption("markexpr"))
    if collection_path.suffix != ".py" or collection_path.name == "conftest.py":
        return None
    if "not slow" in wanted:
        return _ONLY_SLOW.search(collection_path.read_text(encoding="utf-8")) is not None or None
    if wanted == "slow":
        return not _may_have_slow_tests(collection_path) or None
    return None


@cache
def _may_have_slow_tests(path: Path) -> bool:
    places = (path, path.with_name("conftest.py"))  # which may mark tests by their fixtures
    return any(_SOME_SLOW.search(place.read_text(encoding="utf-8")) for place in places if place.exists())


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Run properties with fewer examples by default, and with all of them among the slow tests."""
    everything = config.getoption("markexpr") == "slow"
    for item in items:
        if item.get_closest_marker("slow") is not None and not _may_have_slow_tests(item.path):
            raise pytest.UsageError(f"{item.nodeid} is slow, and `-m slow` would not find it: use the word in its file")
        test: Any = getattr(item, "obj", None)
        own: settings | None = getattr(test, "_hypothesis_internal_use_settings", None)
        if own is None or not getattr(test, "is_hypothesis_test", False):
            continue
        if everything:
            item.add_marker(pytest.mark.slow)
        elif item.get_closest_marker("slow") is None:
            fewer = max(own.max_examples // _DEFAULT_SHARE, min(own.max_examples, _LEAST_EXAMPLES))
            test._hypothesis_internal_use_settings = settings(own, max_examples=fewer)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection_finish(session: pytest.Session) -> Generator[None, object, object]:
    """Put tests with costly set-up first, in their random order: then one worker gets them and sets up once."""
    session.items.sort(key=lambda item: not _has_costly_setup(item))
    return (yield)


def _has_costly_setup(item: pytest.Item) -> bool:
    """Whether a test imports packages of vendors, which takes seconds, or needs a warm process of `tests/forked.py`."""
    return item.path.parent.name in ("interop", "providers") or _uses_forks(getattr(item, "module", None))


@cache
def _uses_forks(module: ModuleType | None) -> bool:
    return any(getattr(value, "__module__", "") == "tests.forked" for value in vars(module or pytest).values())


def pytest_runtest_setup(item: pytest.Item) -> None:
    if item.get_closest_marker("file_modes") and not _modes_count():
        pytest.skip("modes forbid this user nothing")


@cache
def _modes_count() -> bool:
    with tempfile.NamedTemporaryFile() as file:
        Path(file.name).chmod(0)
        return not os.access(file.name, os.R_OK)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Escape lone surrogates in failures and logs: a worker could not send them, and the whole run would end."""
    report = yield
    report.sections = [(name, _escape(text)) for name, text in report.sections]
    if report.failed and (text := str(report.longrepr)) != _escape(text):
        report.longrepr = _escape(text)
    return report


def _escape(text: str) -> str:
    return text if text.isascii() else text.encode(errors="backslashreplace").decode()
