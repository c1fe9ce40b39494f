"""Lists the files that options such as `-o` make a program write or read, whatever else is known about the call."""

from collections.abc import Iterator, Sequence

from callwright.core.access import Access, ReadPath, WritePath
from callwright.shell.words import HARMLESS_TARGETS, Folders, Word, resolve_as

COMPILERS = frozenset("gcc g++ cc c++ gfortran clang clang++ tcc ld as rustc javac swiftc go ghc nvcc".split())
_COMPILER_OPTIONS = ("-o", "-MF", "--output", "-coverprofile", "-cpuprofile", "-memprofile")


def list_compiler_outputs(arguments: Sequence[Word], folders: Folders) -> Iterator[Access]:
    """Yield what a compiler or linker writes."""
    return list_outputs(arguments, _COMPILER_OPTIONS, folders, joined=False)


def list_outputs(
    arguments: Sequence[Word], options: Sequence[str], folders: Folders, *, joined: bool = True
) -> Iterator[WritePath]:
    """Yield writes of the values of options.

    Args:
        arguments: The words behind the program.
        options: The options whose value is written.
        folders: Where relative paths start.
        joined: A letter may stand behind others.
    """
    for place, word in enumerate(arguments):
        following = arguments[place + 1].text if place + 1 < len(arguments) else ""
        for option in options:
            value = _find_value(word.text, option, following, joined=joined)
            if value and value != "-" and value not in HARMLESS_TARGETS:
                yield from resolve_as(WritePath, [value], folders)


def list_inputs(
    arguments: Sequence[Word], options: Sequence[str], folders: Folders, *, joined: bool = True
) -> Iterator[ReadPath]:
    """Yield reads of the values of options; the arguments are those of `list_outputs`."""
    return (ReadPath(access.path) for access in list_outputs(arguments, options, folders, joined=joined))


def _find_value(text: str, option: str, following: str, *, joined: bool) -> str:
    name, equals, value = text.partition("=")
    if len(option) > 2:  # GNU programs accept any beginning of a long option that is not ambiguous
        beginning = name.startswith("--") and len(name) > 2 and option.startswith(name)
        return (value if equals else following) if beginning or name == option else ""
    if text.startswith(option):
        return text[2:].removeprefix("=") or following
    if not joined or not text.startswith("-") or text.startswith("--") or option[1] not in text:
        return ""
    return text.partition(option[1])[2] or following
