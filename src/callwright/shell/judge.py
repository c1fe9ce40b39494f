"""Judges one program call by the tables and the programs' own readers, and finds dangers no rule may allow."""

import re
from collections.abc import Iterator, Sequence

from callwright.core._fast import make_constructor
from callwright.core.access import Access, DeletePath, Reach, ReadPath, WritePath
from callwright.core.uri import ADDRESS
from callwright.shell import tables
from callwright.shell.findings import Judgement, unknown
from callwright.shell.plan import Tree, Verdict
from callwright.shell.programs.outputs import COMPILERS, list_compiler_outputs, list_outputs
from callwright.shell.rule_tables import ProgramRule
from callwright.shell.words import TEXT, VALUE, Folders, Word, resolve_as, resolve_paths
from callwright.system.sensitive_paths import comparable, is_secret

_DEVICE = re.compile(
    r"/dev/(?:sd[a-z]|hd[a-z]|vd[a-z]|xvd[a-z]|nvme\d|mmcblk\d|r?disk[\d/]|dm-\d|md\d|loop\d|mapper/|mem\b|kmem\b|port\b|sg\d|mtd"
    r"|block/|nbd\d|zd\d|pmem\d|bcache\d)"
)
_FORMATTERS = re.compile(r"(?:mkfs(?:\..+)?|mke2fs|mkswap|wipefs|blkdiscard|newfs(?:_.+)?|cryptsetup|sgdisk|sfdisk)\Z")
_FORMATTER_STARTS = frozenset(("mk", "wi", "bl", "ne", "cr", "sg", "sf"))
_REMOVERS = frozenset(("rm", "rmdir", "unlink", "shred", "srm"))
_VARIABLE_ROOT = re.compile(r"""["']?\$(?:\{[^}]*\}|\w+)["']?/+["']?(?:\*["']?|\.\*|\{.*)?\Z""")
_ROOT = re.compile(r"/+(?:\.{0,2}/+)*(?:\*|\.\*|\{.*)?\.{0,2}\Z")
_FUNCTION = re.compile(r"""([^\s(){}|&;$'"`=]+)\s*\(\s*\)\s*\{([^}]{0,200})""")
_MAX_FUNCTIONS = 50
_CHANGES = (WritePath, DeletePath)
_MAX_SEARCHED = 20_000


def find_danger(words: Sequence[str], accesses: Sequence[Access]) -> str:
    """Return why one command must be stopped whatever the rules allow, or an empty string."""
    for access in accesses:
        if isinstance(access, _CHANGES) and access.path.startswith("/dev/") and _DEVICE.match(access.path):
            return f"it writes to the raw device {access.path}"
    if not words:
        return ""
    name = words[0].rpartition("/")[2] if "/" in words[0] else words[0]
    if name[:2] in _FORMATTER_STARTS and _FORMATTERS.match(name):
        return f"{name} destroys a file system"
    if name in _REMOVERS:
        return next((f"it removes {word}" for word in words[1:] if _VARIABLE_ROOT.match(word) or _ROOT.match(word)), "")
    return ""


def find_fork_bomb(line: str) -> str:
    """Return "it is a fork bomb" for a function that starts itself twice, else an empty string."""
    if "(" not in line or "{" not in line:
        return ""
    for place, function in enumerate(_FUNCTION.finditer(line[:_MAX_SEARCHED])):
        calls = re.split(r"[|&;\s]+", function[2]).count(function[1])
        if place < _MAX_FUNCTIONS and calls > 1 and ("|" in function[2] or "&" in function[2]):
            return "it is a fork bomb"
    return ""


_READ_ONLY = Verdict.READ_ONLY
_read_path = make_constructor(ReadPath)
_SYSTEM_FOLDERS = frozenset(("/bin", "/usr/bin", "/sbin", "/usr/sbin"))
_FILE_FLAGS = frozenset(
    ("-f", "--file", "--from-file", "--exclude-from", "--files0-from", "--files-from", "--ignore-file")
)
_NAME_FILTERS = ("--inc", "--exclude=", "--exclude-d", "--glob", "--iglob", "--type", "--color", "--sort", "--format")
_ATTACHED_PATH = re.compile(r"[./].*", re.DOTALL)
_DESCRIPTOR = re.compile(r"/dev/fd/[0-9]+\Z")
_KNOWN_LETTERS = re.compile(r"-[\w=-]*")


def program_name(word: Word) -> str | None:
    """Return the plain name of a program, or None when a program elsewhere on the disk may carry that name."""
    text = word.text
    if word.form is not TEXT:  # the property is a Python function, and programs are many
        return None
    if "/" not in text:
        return text
    folder, _, name = text.rpartition("/")
    return name if folder in _SYSTEM_FOLDERS else None


def judge(words: Sequence[Word], folders: Folders) -> Judgement:
    """Judge what a call would do; a program in no table is unknown."""
    name = program_name(words[0])
    if name is None:
        return unknown(f"{words[0].text} could be any program")
    arguments = words[1:]
    special = tables.find_special_judge(name)
    if special is not None:
        found = special(name, arguments, folders)
        doubtful = found.verdict is _READ_ONLY and name not in tables.READ_UNKNOWN_WORDS
        loose = next((word.text for word in arguments if word.form >= VALUE), "") if doubtful else ""
        return (
            found._replace(verdict=Verdict.UNKNOWN, reason=f"{name}: {loose} may become an option") if loose else found
        )
    rule = tables.find_rule(name)
    found = unknown(f"{name} is not a known program") if rule is None else judge_by_rule(name, rule, arguments, folders)
    if name in COMPILERS and found.verdict is Verdict.UNKNOWN:
        found = found._replace(accesses=(*found.accesses, *list_compiler_outputs(arguments, folders)))
    return found


def judge_by_rule(name: str, rule: ProgramRule, arguments: Sequence[Word], folders: Folders) -> Judgement:
    """Judge a call by its rule in a table."""
    if rule.help and rule.shows_help(arguments):
        return Judgement(Verdict.READ_ONLY, f"{name} shows its help")
    title = name
    if rule.subcommands:
        if not arguments and rule.bare:
            return Judgement(Verdict.READ_ONLY, f"{name} alone only shows something")
        below, count = rule.descend(arguments)
        if below is None:
            return unknown(f"this call of {name} is not known to be read-only")
        title = " ".join([name, *(word.text for word in arguments[:count] if word.text[:1] != "-")])
        leading, known, arguments, rule = arguments[:count], rule.subcommands, arguments[count:], below
        if objection := rule.flag_objection([word for word in leading if word.text not in known]):
            return unknown(f"{title}: {objection}")
    if objection := rule.objection(arguments):
        # what it may read and write counts all the same, so that a rule against a file still matches
        touched = (*list_reads(rule, arguments, folders), *_list_writes(rule, arguments, folders)) if rule.reads else ()
        return unknown(f"{title}: {objection}", touched)
    if rule.network or (rule.urls and any("://" in word.text for word in arguments)):
        reached = [Reach(address) for address in _list_addresses(name, rule, arguments)]
        sent = (*reached, *_list_sent_secrets(arguments, folders))
        return Judgement(Verdict.READS_NETWORK, f"{title} only reads over the network", sent)
    if not rule.reads:
        return Judgement(_READ_ONLY, f"{title} is read-only")
    accesses = tuple(list_reads(rule, arguments, folders))
    trees = list_trees(rule, arguments, accesses) if rule.recursive else ()
    if rule.recursive and rule.pattern is not None:
        for words in _list_recursive_forms(rule, arguments):
            reads = list_reads(rule, words, folders)
            accesses, trees = (*accesses, *reads), (*trees, *list_trees(rule, words, reads))
    return Judgement(_READ_ONLY, f"{title} is read-only", accesses, (), trees)


def _list_recursive_forms(rule: ProgramRule, arguments: Sequence[Word]) -> Iterator[list[Word]]:
    """Yield a search as it may become where a word is unknown: `grep "$x" y` may be `grep -R y` or `grep -Rex y`."""
    doubted = [_may_add_letters(rule, word) for word in arguments]
    for option in ("-R", "-Rex") if any(doubted) else ():
        yield [Word(option) if doubt else word for word, doubt in zip(arguments, doubted, strict=True)]


def _may_add_letters(rule: ProgramRule, word: Word) -> bool:
    """Whether a word may hold options that are not written: `"$x"`, `-i"$x"`, but not `-A"$x"`, which is a value."""
    if word.form is not VALUE or word.named:
        return False
    known = _KNOWN_LETTERS.match(word.text)
    if known is None:
        return True
    if known[0][:2] == "--":
        return "=" not in known[0]
    return not any(f"-{letter}" in rule.values for letter in known[0][1:])


def _list_writes(rule: ProgramRule, arguments: Sequence[Word], folders: Folders) -> Iterator[Access]:
    """Yield what a refused call may write: the value of `sort -o`, the second operand of uniq."""
    if "-o" in rule.refused:
        yield from list_outputs(arguments, ("-o", "--output"), folders)
    if rule.operands is not None:
        late = rule.operand_words(arguments)[rule.operands :]
        yield from resolve_as(WritePath, late, folders)


def _list_sent_secrets(arguments: Sequence[Word], folders: Folders) -> Iterator[Access]:
    """Yield the words and values of options that name a secret: other operands of such programs are seldom files."""
    for word in arguments:
        for part in re.split(r"file://|[=,@]", word.text):
            if part and is_secret(comparable(part)):
                yield from resolve_as(ReadPath, [part], folders)


def _list_addresses(name: str, rule: ProgramRule, arguments: Sequence[Word]) -> Sequence[str]:
    """Return the addresses in a call, and the hosts where words are hosts; else the name of the program."""
    found = [url[0] if (url := ADDRESS.search(word.text)) else word.text for word in arguments if "://" in word.text]
    if rule.hosts:
        hosts = [host for word in arguments if (host := _read_host(word.text))]
        found = [*found, *hosts, f"{name}:"]  # so that no allow rule for fetching from a host covers it
    return list(dict.fromkeys(found)) or [f"{name}:"]


def _read_host(text: str) -> str:
    """Return the host that a word or the value of an option may be; a short number is a count or a port."""
    if text[:2] == "--":
        host = text.partition("=")[2]
    elif text[:1] == "-":
        host = text[2:] if "." in text and "=" not in text else ""
    else:
        host = "" if text[:1] == "+" else text.removeprefix("@")
    if host.isdigit() and len(host) < len("100000"):
        return ""
    return f"[{host}]" if host.count(":") > 1 and host[0] != "[" else host


def list_reads(rule: ProgramRule, arguments: Sequence[Word], folders: Folders) -> list[Access]:
    """Return reads of the operands, and of option values that may be paths."""
    found: list[Access] = []
    operands, flags, valued = _sort_arguments(rule, arguments)
    # a hostile line may name the same file ten thousand times
    for word in operands if len(operands) == 1 else dict.fromkeys(operands):
        found.extend(read_accesses(word, folders))
    if not operands and (rule.here or (rule.pattern is not None and any(map(_RECURSES.match, flags)))):
        found.extend(resolve_as(ReadPath, ["."], folders))
    if rule.pattern is not None:  # of `grep c* x`, the first match is the pattern and the others are files
        loose = [word for word in arguments if not (word.single or word.text[:1] == "-")]
        counted = set(operands) if loose else ()
        for word in dict.fromkeys(loose):
            found.extend(() if word in counted else read_accesses(word, folders))
    if flags and valued:
        for value in _list_file_values(arguments):
            found.extend(read_accesses(Word(value), folders))
    return found


def _sort_arguments(rule: ProgramRule, arguments: Sequence[Word]) -> tuple[list[Word], list[str], bool]:
    """Return the operands that may be files, the options, and whether an option may hold a file's name."""
    operands: list[Word] = []
    flags: list[str] = []
    valued = ends = False
    for word in arguments:
        text = word[0]
        if text[:1] != "-":
            operands.append(word)
        else:
            if word[1] is not TEXT and _may_add_files(word):
                operands.append(word)
            flags.append(text)
            valued = valued or len(text) > 2 or text in _FILE_FLAGS
            ends = ends or text in ("-", "--")
    if rule.pattern is not None:
        found, flags = rule.split(arguments)
        if rule.may_take_next(flags):  # each word may be a file, or none of them
            here = [Word(".")] if rule.here or any(map(_RECURSES.match, flags)) else []
            return [*operands, *found, *here], flags, valued
        loose = filter(_may_add_files, arguments)
        return [*(found if rule.gives_pattern(flags) else found[1:]), *loose], flags, valued
    # whatever may be a value of an option is counted too: a file too many is better than one too few
    if ends:
        late, flags = rule.split(arguments)
        operands += [word for word in late if word[0][:1] == "-"]
    return operands, flags, valued


def _may_add_files(word: Word) -> bool:
    """Whether an option or a pattern may become several words, some of them files: `head -n$x y`, `grep $x y`."""
    return word.computed and not (word.single or word.named)


# with -d and --directories the value decides, which may be "recurse"
_RECURSES = re.compile(r"--(?:rec|der|dir)|-(?!-)[^rRd]*[rRd]")
_FOLLOWS = re.compile(r"--(?:deref|fol)|-(?!-)[^RL]*[RL]")
_SHOWS_HIDDEN = re.compile(r"--(?:hid|unr|no-ig)|-(?!-)[^u.]*[u.]")


def list_trees(rule: ProgramRule, arguments: Sequence[Word], accesses: Sequence[Access]) -> tuple[Tree, ...]:
    """Return the folders that a search reads as a whole: grep -r, rg, diff of two folders."""
    if rule.names:
        # settings of the project may add other names, so all files of a folder that is named count for rules
        named = any(word.text.strip("./") for word in rule.operand_words(arguments))
        files = [access.path for access in accesses if isinstance(access, ReadPath)]
        return tuple([Tree(path, name, secrets=False) for path in files for name in (("*",) if named else rule.names)])
    _, flags = rule.split(arguments)
    visible = False
    if rule.here and rule.pattern is not None:  # rg and its like pass over hidden files unless told otherwise
        visible = not any(map(_SHOWS_HIDDEN.match, flags))
    elif rule.pattern is not None and not any(map(_RECURSES.match, flags)):
        return ()
    # a second filter adds names, or lets through what neither of them matches
    filters = [flag for flag in flags if flag.startswith(("--inc", "--exc")) and not flag.startswith("--exclude-d")]
    whole = len(filters) == 1 and filters[0].startswith("--include=")
    pattern = filters[0].partition("=")[2] if whole else "*"
    # diff follows links unless told otherwise, grep with -R, rg with -L
    enters = rule.pattern is None or any(map(_FOLLOWS.match, flags))
    paths = [access.path for access in accesses if isinstance(access, ReadPath)]
    return tuple([Tree(path, pattern, follows=enters, enters=enters, visible=visible) for path in paths])


def _list_file_values(arguments: Sequence[Word]) -> list[str]:
    """Return the values of options that may be files: grep -f, --files0-from, --to-file and its abbreviations."""
    values: list[str] = []
    previous = ""
    for word in arguments:
        text = word[0]
        if previous in _FILE_FLAGS and text[:1] != "-":
            values.append(text)
        elif text[:2] == "--" and "=" in text:
            if not text.startswith((*_NAME_FILTERS, "--reg")):
                values.append(text.partition("=")[2])
        elif text[:1] == "-" and len(text) > 2 and text[1] != "-":  # an attached value, perhaps behind other letters
            values.extend([text[2:]] if text[1] == "f" else [])
            values.extend(_ATTACHED_PATH.findall(text))
        previous = text
    return values


def read_accesses(word: Word, folders: Folders) -> list[Access]:
    """Return the reads of a word; an unknown path is kept as written."""
    text = word[0]
    if word.named or text in ("", "-") or (text[0] == "/" and _DESCRIPTOR.match(text)):
        return []
    if (word.form >= VALUE or text[0] == '"') and not any(letter in text for letter in "*?["):
        return [_read_path(text.lstrip("/") or "?")]
    return [_read_path(path) for path in resolve_paths(text, folders)]
