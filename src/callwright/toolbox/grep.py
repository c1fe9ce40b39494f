"""The `grep` tool: searches file contents with ripgrep."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import Annotated, Any, TypeAlias

from pydantic import AfterValidator, AliasChoices, BeforeValidator, Field

from callwright.core.access import Access, ReadPath
from callwright.core.content import Output
from callwright.core.errors import InvalidArguments, ToolFailed
from callwright.core.spec import Effect
from callwright.system.files import open_regular
from callwright.system.paths import Workspace, open_folder, opened
from callwright.system.search.content import MatchLine, SearchResult, search
from callwright.system.search.gitignore import IgnoreReason, find_ignore_reason
from callwright.system.search.globs import BadGlob
from callwright.system.search.ripgrep import ContentQuery, Globs, Mode
from callwright.system.sensitive_paths import comparable, is_secret
from callwright.tool.base import Invocation, ToolContext
from callwright.tool.typed import TypedTool, describe
from callwright.toolbox._path_repairs import PathChanges, repair_fields
from callwright.toolbox._paths import Hidden, PathArguments, VisibleFiles, explain_error, format_count, one_line

_OTHER_MODES = {"files_with_matches": "files", "matches": "content", "lines": "content"}


def _translate_mode(given: Any) -> Any:
    return _OTHER_MODES.get(given, given) if isinstance(given, str) else given


def _between(least: int, most: int) -> AfterValidator:
    """Check a number without its bounds in the schema, where they would cost tokens in every request."""

    def check(number: int) -> int:
        if not least <= number <= most:
            raise ValueError(f"expected a number from {least} to {most}")
        return number

    return AfterValidator(check)


_LineCount: TypeAlias = Annotated[int, _between(0, 1_000)]


class GrepArguments(PathArguments):
    """Arguments of `grep`."""

    pattern: str = Field(min_length=1, validation_alias=AliasChoices("pattern", "query", "regex"))
    """A regular expression (ripgrep)."""
    path: str = Field(default=".", validation_alias=AliasChoices("path", "dir_path", "directory"))
    """File or folder."""
    glob: str = Field(default="", validation_alias=AliasChoices("glob", "include", "include_pattern"))
    """Only matching files: *.py, src/**/*.{ts,tsx}, !*.test.ts."""
    type: str = ""
    """Only files of a type: py, js, rust."""
    mode: Annotated[Mode, BeforeValidator(_translate_mode)] = Field(
        default="files", validation_alias=AliasChoices("mode", "output_mode")
    )
    ignore_case: bool = Field(default=False, validation_alias=AliasChoices("ignore_case", "-i", "case_insensitive"))
    context: _LineCount = Field(default=0, validation_alias=AliasChoices("context", "-C"))
    """Lines around each match."""
    before: _LineCount = Field(default=0, validation_alias=AliasChoices("before", "-B"))
    """Lines before it."""
    after: _LineCount = Field(default=0, validation_alias=AliasChoices("after", "-A"))
    """Lines after it."""
    line_numbers: bool = Field(default=True, validation_alias=AliasChoices("line_numbers", "-n"))
    """Number the lines."""
    multiline: bool = False
    """Match across lines."""
    ignored: bool = Field(default=False, validation_alias=AliasChoices("ignored", "no_ignore", "include_ignored"))
    """Include ignored files."""
    limit: Annotated[int, _between(1, 10_000)] = Field(
        default=100, validation_alias=AliasChoices("limit", "head_limit", "max_results")
    )
    """Most rows to show."""
    offset: Annotated[int, _between(0, 2**31)] = 0
    """Rows to skip."""

    @property
    def wanted_mode(self) -> Mode:
        """The mode; a call that asks for lines around the matches, and names no mode, means the lines."""
        around = self.context or self.before or self.after
        return "content" if around and "mode" not in self.model_fields_set else self.mode


@dataclass(frozen=True, slots=True)
class _Page:
    rows: list[str]
    total: int
    noun: str
    summary: str = ""


class Grep(TypedTool[GrepArguments]):
    """Searches the contents of files of a workspace.

    Args:
        workspace: The workspace, or the path of its folder.
        hidden: Tells which files must not be searched.
        withheld: Tells which files are searched only if a call names them, because a policy asks about it.
    """

    spec = describe(
        "grep",
        "Search file contents with a regular expression. mode files (default) names the files, content shows the lines,"
        " count counts them. Ignored and binary files are left out; secrets such as .env are searched only if path"
        " names them.",
        effect=Effect.READ,
        group="file",
        aliases=("Grep", "search_file_content", "grep_search", "search_content", "ripgrep"),
        search_hint="search text in files regular expression",
    )

    def __init__(
        self,
        workspace: Workspace | str | PathLike[str] = ".",
        *,
        hidden: Hidden | None = None,
        withheld: Hidden | None = None,
    ) -> None:
        self._files = VisibleFiles(Workspace.of(workspace), hidden)
        self._withheld = withheld

    def repair_paths(self, invocation: Invocation) -> PathChanges:
        """Return the path that the call means, where exactly one file fits."""
        return repair_fields(invocation, self._files.workspace, {"path": "existing"})

    def accesses(self, arguments: GrepArguments) -> Sequence[Access]:
        """Declare a read of the file or folder."""
        path = self._files.workspace.resolve(arguments.path)
        arguments.hold(path)
        return [ReadPath(str(path))]

    async def run(self, arguments: GrepArguments, context: ToolContext) -> Output:
        """Return one page of matches and note what was left out."""
        target = self._files.find(arguments.path)
        arguments.hold(target)
        if not (target.is_dir() or target.is_file()):  # a pipe or device could block the search forever
            raise ToolFailed(f"{arguments.path!r} is neither a file nor a folder; it cannot be searched")
        folder = target if target.is_dir() else target.parent
        top = self._files.top(folder)
        # a path that is named explicitly is searched even if a rule ignores it, as ripgrep does
        reason = None if target == top or arguments.ignored else find_ignore_reason(target, top)
        query = self._query(arguments, folder, target, top, ignored=arguments.ignored or reason is not None)
        # a file that is named was asked about; one that only lies in a searched folder was not
        found = self._filter(query, await _search_held(query), named=self._must_be_named(target))
        page = _page(arguments, found, self._files.prefix(folder))
        notes = list(_notes(arguments, query, found, reason))
        if self._withheld is not None and not query.name:
            notes.append("(files that a rule asks about are searched only if path names one)")
        return _output(arguments, page, notes)

    def _query(self, arguments: GrepArguments, folder: Path, target: Path, top: Path, *, ignored: bool) -> ContentQuery:
        try:
            globs = Globs.parse(arguments.glob)
        except BadGlob as error:
            raise InvalidArguments(f"glob: {error}") from None
        return ContentQuery(
            pattern=arguments.pattern,
            folder=folder,
            top=top,
            name="" if target == folder else target.name,
            mode=arguments.wanted_mode,
            globs=globs,
            type=arguments.type,
            ignore_case=arguments.ignore_case,
            multiline=arguments.multiline,
            before=arguments.before or arguments.context,
            after=arguments.after or arguments.context,
            ignored=ignored,
        )

    def _filter(self, query: ContentQuery, found: SearchResult, *, named: bool) -> SearchResult:
        """Filter out hidden files, those that must be named, and files that ripgrep's globs accept but ours reject.

        Nothing tells that a secret was left out: even a count would say whether the pattern matches it.
        """
        known: dict[str, bool] = {}  # content mode asks once per line

        def keep(name: str) -> bool:
            if name not in known:
                spared = not named and self._must_be_named(query.folder / name)
                known[name] = not spared and self._keeps(query, name)
            return known[name]

        return SearchResult(
            [name for name in found.files if keep(name)],
            [(name, count) for name, count in found.counts if keep(name)],
            [line for line in found.lines if keep(line.path)],
            [name for name in found.binary if keep(name)],
            found.cut,
            found.engine,
        )

    def _must_be_named(self, path: Path) -> bool:
        return is_secret(comparable(str(path))) or (self._withheld is not None and self._withheld(path))

    def _keeps(self, query: ContentQuery, name: str) -> bool:
        path = query.folder / name
        spellings = (name, str(path.relative_to(query.top)))
        return not self._files.hides(path) and (bool(query.name) or query.globs.accepts(*spellings))


async def _search_held(query: ContentQuery) -> SearchResult:
    """Search by descriptors: a link that was put in the place of the file or folder since its check is not followed."""
    with ExitStack() as held:
        try:
            query = replace(query, descriptor=held.enter_context(opened(open_folder(query.folder))))
            file = held.enter_context(opened(open_regular(query.folder / query.name))) if query.name else None
        except OSError as error:
            raise explain_error(error, query.name or str(query.folder), "search") from None
        by_descriptor = query.start != query.folder
        return await search(replace(query, file=file if by_descriptor else None))


def _page(arguments: GrepArguments, found: SearchResult, prefix: str) -> _Page:
    start, end = arguments.offset, arguments.offset + arguments.limit
    if arguments.wanted_mode == "files":
        return _Page([one_line(prefix + name) for name in found.files[start:end]], len(found.files), "file")
    if arguments.wanted_mode == "count":
        rows = [f"{one_line(prefix + name)}:{count}" for name, count in found.counts[start:end]]
        total = sum(count for _, count in found.counts)
        summary = f"{format_count(total, 'matching line')} in {format_count(len(found.counts), 'file')}"
        return _Page(rows, len(found.counts), "file", summary if total else "")
    apart = bool(arguments.before or arguments.after or arguments.context)
    rows = list(_lines(found.lines[start:end], prefix, numbered=arguments.line_numbers, apart=apart))
    return _Page(rows, len(found.lines), "line")


def _lines(lines: Sequence[MatchLine], prefix: str, *, numbered: bool, apart: bool) -> Iterator[str]:
    for place, line in enumerate(lines):
        if place and (line.after_gap or (apart and line.path != lines[place - 1].path)):
            yield "--"
        number, matched, text = line.read()
        mark = ":" if matched else "-"
        yield f"{one_line(prefix + line.path)}{mark}{f'{number}{mark}' if numbered else ''}{text}"


def _output(arguments: GrepArguments, page: _Page, notes: list[str]) -> Output:
    shown = min(max(page.total - arguments.offset, 0), arguments.limit)
    if page.summary:
        notes.insert(0, page.summary)
    if page.total and not shown:
        notes.insert(0, f"no entries at offset {arguments.offset:,}: there are {format_count(page.total, page.noun)}")
    elif shown < page.total:
        last = arguments.offset + shown
        rest = f"; offset={last} for more" if last < page.total else ""
        notes.insert(0, f"({page.noun}s {arguments.offset + 1:,} to {last:,} of {page.total:,}{rest})")
    text = "\n".join([*page.rows, *([""] if page.rows and notes else []), *notes])
    return Output(text, {"entries": page.rows, "total": page.total})


def _notes(
    arguments: GrepArguments, query: ContentQuery, found: SearchResult, reason: IgnoreReason | None
) -> Iterator[str]:
    if not (found.files or found.counts or found.lines or found.binary):
        yield _explain_no_match(arguments, query)
    for name in found.binary[:3]:
        yield f"({one_line(name)} is binary and matches; its lines are not shown)"
    if found.cut:
        yield "(the search was stopped after too many matches: the totals are lower bounds; narrow it)"
    if reason is not None:
        yield f"({arguments.path} is ignored by {reason}; searched anyway, ignored files included)"
    if found.engine == "python":
        yield "(searched without ripgrep: the pattern was read as a Python regular expression)"


def _explain_no_match(arguments: GrepArguments, query: ContentQuery) -> str:
    limits = [f"glob {arguments.glob!r}"] if arguments.glob else []
    limits += [f"type {arguments.type!r}"] if arguments.type else []
    within = f" with {' and '.join(limits)}" if limits else ""
    hint = (
        ""
        if query.ignored or query.name
        else "; ignored and binary files were not searched; ignored=true searches ignored files"
    )
    return f"no matches for {arguments.pattern!r} in {arguments.path}{within}{hint}"
