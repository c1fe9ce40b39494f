"""Finds command patterns that allow nearly anything, and options by which a program runs another one."""

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise, takewhile

from callwright.core.access import is_below
from callwright.policy.rules.patterns import CommandPattern
from callwright.policy.tool_names import words
from callwright.shell.wrapper_tables import WRAPPERS

# the arguments of these are a program, or text that is run as one
INTERPRETERS = words(
    "bash sh zsh dash ksh fish csh tcsh pwsh powershell cmd python python2 python3 pypy pypy3 ipython node nodejs tsx"
    " ts-node bun deno ruby irb perl php lua luajit tclsh rscript r julia groovy scala swift osascript awk gawk mawk"
    " nawk ssh mosh telnet nc ncat socat eval exec source . env sudo doas su xargs parallel watch setsid ionice flock"
    " nohup timeout nice stdbuf time find npx bunx pnpx uvx pipx script expect strace ltrace gdb busybox toybox chroot"
    " systemd-run at batch crontab wsl command builtin make gmake ninja just rake tox nox ld-linux-x86-64.so.2"
)
_RUNNERS = INTERPRETERS | WRAPPERS.keys()
# these have subcommands: the name alone says little, and some subcommands run any program
DISPATCHERS = words(
    "git npm pnpm yarn cargo go docker podman kubectl helm gh glab uv poetry pdm hatch pip pip3 conda mamba gem bundle"
    " dotnet mvn gradle terraform aws az gcloud systemctl brew apt apt-get dnf yum nix deno bun ansible vagrant"
)
RUNNING_SUBCOMMANDS = words("run run-script exec x dlx dlx-run tool start shell eval debug attach r")


_SCRIPT_RUNNERS = words(
    "python python2 python3 pypy pypy3 node nodejs tsx ts-node bun ruby perl php lua luajit rscript julia"
)
# a plain name: an option, a path or an address would be something else than a script of the folder
_SCRIPT = re.compile(r"(\./)?[A-Za-z0-9_][A-Za-z0-9_.-]*?(?P<ending>\.[A-Za-z][A-Za-z0-9]*)")


def program_of(text: str) -> str:
    """Return the bare, lower-case name of the program a pattern or command starts with."""
    first = text.strip().partition(" ")[0].strip("'\"")
    name = first.replace("\\", "/").rpartition("/")[2]
    return name.casefold().removesuffix(".exe").rstrip("*").rstrip(":")


def why_too_broad(pattern: CommandPattern) -> str:
    """Return why an allow rule with this pattern allows nearly anything; empty if it does not."""
    if pattern.anything:
        return "it allows every command"
    spelled = pattern.literal_prefix.split()
    if not spelled:
        return "it starts with a wildcard, so it allows any program"
    program = program_of(spelled[0])
    if pattern.exact:
        alone = len(spelled) == 1 and program in INTERPRETERS | DISPATCHERS
        return f"{program} alone runs its input" if alone else ""
    if names_scripts(pattern):
        return ""
    if program in _RUNNERS or any(_extends(program, pattern, name) for name in _RUNNERS):
        return f"{program} runs whatever follows it"
    if program in DISPATCHERS and _leaves_subcommand_open(spelled):
        return f"{' '.join(spelled)} leaves open what is run"
    return ""


def names_scripts(pattern: CommandPattern) -> bool:
    """Whether a pattern allows an interpreter the scripts of one kind in a folder, and nothing else: `node *.mjs`."""
    return pattern.script_form is not None and program_of(pattern.script_form[0]) in _SCRIPT_RUNNERS


def script_words(command: tuple[str, ...]) -> tuple[str, str] | None:
    """Return the program and the ending if a command runs one script of the folder, without options or arguments."""
    if len(command) != 2 or command[0] not in _SCRIPT_RUNNERS:
        return None
    found = _SCRIPT.fullmatch(command[1])
    return (command[0], found["ending"]) if found else None


def _extends(program: str, pattern: CommandPattern, name: str) -> bool:
    """Whether the wildcard can complete the program's name: `pyth*` is as broad as `python *`."""
    glued = not pattern.bounded and " " not in pattern.forms[0].pieces[0]
    return glued and name.startswith(program)


def _leaves_subcommand_open(spelled: list[str]) -> bool:
    rest = [word.casefold() for word in spelled[1:] if not word.startswith("-")]
    return not rest or (rest[-1] in RUNNING_SUBCOMMANDS and len(rest) == 1)


def why_not_saved(command: tuple[str, ...], *, prefix: bool) -> str:
    """Return why a command must not be saved as a rule; empty if it may."""
    program = program_of(command[0]) if command else ""
    if program in ("xargs", "parallel", "eval", "source", "."):
        return f"{program} runs its input"
    if program in INTERPRETERS and len(command) == 1:
        return f"{program} alone runs its input"
    if not prefix:
        return ""
    if program in INTERPRETERS:
        return f"{program} runs whatever follows it"
    if program in ("rm", "rmdir", "shred", "dd", "mkfs", "kill", "pkill", "killall", "chmod", "chown", "curl", "wget"):
        return f"{program} needs approval each time"
    return ""


def prefix_words(command: tuple[str, ...]) -> tuple[str, ...]:
    """Return the words a prefix rule begins with: `pytest`, `git commit`, `npm run build`; empty if there are none."""
    program = program_of(command[0])
    if program not in DISPATCHERS:
        return command[:1]
    size = 3 if len(command) > 1 and command[1].casefold() in RUNNING_SUBCOMMANDS else 2
    chosen = command[:size]
    return () if len(chosen) < size or any(word.startswith("-") for word in chosen) else chosen


_INLINE_CODE = words("-c -e -E -r -p -i -pe -ne --eval --print --command --execute --interactive")
_RUNNING_OPTIONS: Mapping[str, frozenset[str]] = {
    "git": words(
        "-c -C --config-env --exec-path --git-dir --work-tree --namespace --super-prefix --upload-pack --receive-pack"
        " --exec --open-files-in-pager -O --ext-diff --textconv --output --template --server-option --tool --extcmd"
        " --paginate --smtp-server --sendmail-cmd --to-cmd --cc-cmd --header-cmd"
        " foreach run filter-branch difftool mergetool daemon instaweb shell"
        " http-backend config credential credential-store credential-cache upload-pack receive-pack cvsserver p4 svn"
        " fast-import hook remote-ext web--browse"
    ),
    "rg": words("--pre --hostname-bin --search-zip -z"),
    "sort": words("--compress-program"),
    "tar": words(
        "--to-command --checkpoint-action --use-compress-program -I --rsh-command --rmt-command --info-script"
        " --new-volume-script -F --absolute-names -P"
    ),
    "zip": words("-T -TT --unzip-command"),
    "rsync": words("-e --rsh --rsync-path -M --remote-option --daemon --config"),
    "scp": words("-S -o -F -D"),
    "sftp": words("-S -o -F -b -D"),
    "man": words("-P --pager -H --html -C --config-file"),
    "curl": words("-K --config --output-dir --engine"),
    "wget": words("--use-askpass --config --execute -e"),
    "cargo": words("--config"),
    "go": words("-exec -toolexec run -overlay -modfile -vettool"),
    "npm": words("--script-shell --node-options --userconfig --globalconfig exec x explore config"),
    "pnpm": words("--script-shell exec dlx config"),
    "yarn": words("--use-yarnrc exec dlx config node"),
    "make": words("--eval -E"),
    **dict.fromkeys(
        ("pip", "pip3"),
        words(
            "--index-url -i --extra-index-url --find-links -f --config-settings --global-option --python --editor"
            " config"
        ),
    ),
    "docker": words("run exec plugin -H --host --context --config"),
    "podman": words("run exec plugin -H --host --config"),
    "kubectl": words("exec run cp attach debug plugin --kubeconfig proxy port-forward"),
    "ffmpeg": words("-filter_script"),
    "split": words("--filter"),
    "less": words("-k --lesskey-file --lesskey-src -o -O --log-file --LOG-FILE -p --pattern -t -T --tag --tag-file"),
    "install": words("--strip-program -s --strip"),
    "tcpdump": words("-z"),
    "fzf": words("--preview --bind --with-shell"),
    "bat": words("--pager --diff"),
    "delta": words("--pager"),
    **dict.fromkeys(("gcc", "g++", "cc", "c++", "gfortran"), words("-wrapper -B -specs -fplugin -Xlinker")),
    **dict.fromkeys(("clang", "clang++"), words("-wrapper -B -fplugin -fpass-plugin -Xclang -Xlinker --config")),
    "ctags": words("--options --filter"),
    "nmap": words("--script -iL"),
    "psql": words("-f --file -c --command"),
    "sqlite3": words("-cmd -init"),
    **dict.fromkeys(("mysql", "mariadb"), words("-e --execute --delimiter --pager --tee")),
    "date": words("-s --set"),
    "journalctl": words("--vacuum-size --vacuum-time --rotate"),
    "pytest": words("-p -c --rootdir --confcutdir --override-ini -o --pdbcls --tx"),
    "eslint": words("--rulesdir --plugin -c --config --parser --resolve-plugins-relative-to"),
    "prettier": words("--plugin --plugin-search-dir --config"),
    "mocha": words("-r --require --config --loader --import"),
    "mypy": words("--config-file --python-executable"),
    "pylint": words("--load-plugins --init-hook --rcfile"),
    **dict.fromkeys(("gradle", "gradlew"), words("-I --init-script")),
    **dict.fromkeys(("apt", "apt-get"), words("-o --option -c --config-file")),
    "ip": words("exec exe ex e -b -ba -bat -batc -batch"),
    "rpm": words("--eval -E --pipe --define -D --load --macros --rcfile"),
    "hg": words("--config"),
    "helm": words("--post-renderer --kubeconfig plugin"),
    "gh": words("alias extension extensions ext config"),
    "brew": words("ruby sh irb"),
    "gem": words("open -e --editor"),
    "openssl": words("engine -engine -provider -provider-path"),
    "ssh-keygen": words("-D -w"),
    "restic": words("--password-command -o --option"),
    "borg": words("--rsh"),
    "pandoc": words("-L --lua-filter -F --filter"),
    "latexmk": words("-e -r"),
    **dict.fromkeys(
        words("tex latex pdftex pdflatex xetex xelatex luatex lualatex"),
        words("-shell-escape -enable-write18 -cnf-line"),
    ),
    **dict.fromkeys(
        ("yt-dlp", "youtube-dl"),
        words(
            "--exec --exec-before-download --netrc-cmd --downloader --external-downloader --config-locations"
            " --plugin-dirs --ffmpeg-location"
        ),
    ),
    **dict.fromkeys(("tshark", "wireshark"), words("-X")),
    **dict.fromkeys(("python", "python2", "python3", "pypy3", "node", "deno", "bun", "ruby", "perl"), _INLINE_CODE),
    **dict.fromkeys(("rscript", "r"), _INLINE_CODE),  # on a disk that ignores case
    **dict.fromkeys(("php", "lua", "luajit", "tsx", "ts-node", "Rscript", "R", "julia", "osascript"), _INLINE_CODE),
    **dict.fromkeys(("octave", "octave-cli", "guile", "gnuplot"), _INLINE_CODE),
    "ghc": words("-e -F -B --interactive --run --frontend"),  # its -c only compiles
}


_RUNNING_IN_SUBCOMMAND: Mapping[tuple[str, str], frozenset[str]] = {
    ("git", "rebase"): words("-x"),
    ("git", "clone"): words("-u"),
    ("git", "maintenance"): words("start register"),  # it runs git from time to time, for good
    ("go", "env"): words("-w"),
}
# behind these sub-commands a word names a script, a file or a package: `npm run config`, `git add config`
_NAMES_FOLLOW: Mapping[str, frozenset[str]] = {
    "git": words(
        "add commit checkout switch branch diff log show push pull fetch merge rebase tag stash restore reset rm mv"
        " status cherry-pick revert blame grep"
    ),
    **dict.fromkeys(("npm", "pnpm"), words("run run-script test start install i add ci uninstall remove")),
    **dict.fromkeys(("pip", "pip3"), words("install uninstall download show")),
    "gh": words("pr issue repo run workflow release search label api"),
    "brew": words("install uninstall reinstall upgrade info list search"),
    "helm": words("install upgrade uninstall rollback status history get list template test"),
    "ip": words("a addr address l link r route rule neigh"),
}
# with these a rule for an address would cover others: proxies, lists of addresses, other hosts that a page names
_OTHER_ADDRESSES = {"curl": words("-x"), "wget": words("-i -B -H -D --span-hosts")}
# their long options have one dash or two
_SINGLE_DASH = words(
    "go gcc g++ cc c++ gfortran clang clang++ sqlite3 openssl tex latex pdftex pdflatex xetex xelatex luatex lualatex"
)
# programs whose short options can be joined, with those that take the rest of the word as their value
_VALUE_LETTERS = {
    "git": "mFSGLUMn",
    "rg": "efgtTmABCjMErd",
    "tar": "fbCTXgKNVHL",
    "zip": "nbtPxi",
    "rsync": "fTB",
    "scp": "cilPJX",
    "curl": "oHXAebcdDFhmrtTuUwxyYzCEPQ",
    "wget": "OoaPtTwQUARDIXlB",
    "pip": "rcetdb",
    "pip3": "rcetdb",
    "psql": "dUhpvPFRT",
    "mysql": "uphPDST",
    "mariadb": "uphPDST",
    "pytest": "kmnrWd",
    "install": "gmoSt",
}
# words that run a program by what they say: commands of database clients, files with further options, variables of make
_RUNNING_TEXTS: Mapping[str, re.Pattern[str]] = {
    "mvn": re.compile(r".*\bexec(?:-maven-plugin)?:|-Dexec\.executable"),
    "exiftool": re.compile(r"-if\d*\Z|-config\Z|-@|.*\bfilter=|.*\$\{[^}]*;", re.IGNORECASE | re.DOTALL),
    "ghc": re.compile("-pgm|-f?plugin|-opt|@"),
    "aria2c": re.compile("--on-|--conf"),
    "pandoc": re.compile(r".*\.lua\Z"),
    "latexmk": re.compile(r"--?\w*(?:latex|options?)="),
    **dict.fromkeys(("less", "more"), re.compile(r"\+")),
    "sqlite3": re.compile(
        r"""\.[a-z]|.*\b(?:load_extension|writefile|edit[\s"'`\]]*(?:\(|/\*|--))""", re.IGNORECASE | re.DOTALL
    ),
    "psql": re.compile(r"\s*\\(?!(?:d\w*|l|conninfo|z|sf|sv)\+?(?:\s+[\w.*\"]+)?\s*\Z)"),  # but those that only show
    **dict.fromkeys(("mysql", "mariadb"), re.compile(r"--loose[-_]|--e=")),
    **dict.fromkeys(("gcc", "g++", "cc", "c++", "gfortran", "clang", "clang++"), re.compile("@")),
    **dict.fromkeys(
        ("make", "gmake"),
        re.compile(
            r"(?:SHELL|\.SHELLFLAGS|GNUMAKEFLAGS|MAKE\w*|CC|CXX|CPP|LD|AR|AS|PATH|BASH_ENV|LD_PRELOAD)[:+?]*=|[^=]*!=|.*\$\("
        ),
    ),
}
_STATEMENTS = re.compile(r"-\w*e|--e\w*")
_CLIENT_COMMAND = re.compile(
    r"(?:\A|[;\n\r\ufeff]|\*/|\\.)\s*(?:system|source|pager|tee|edit|ssl_session_data_print)(?![\w,.()=])"
    r"|\bdelimiter\b|(?-i:\\[!.PTed])",
    re.IGNORECASE,
)
"""Commands of the client of mysql; they begin where a statement may, or with a backslash outside of strings."""
_STRING = re.compile(r"""'(?:[^'\\\n]|\\[^'\n])*'|"(?:[^"\\\n]|\\[^"\n])*"|`[^`\\\n]*`""")
_COMMENT = re.compile(r"--|#|/\*")
_UNSURE_STRINGS = re.compile(r"""['"`]|\\[^gGN]""")
# their values name the project whose files are run, which a rule means for this one
_PROJECT_OPTIONS = {
    **dict.fromkeys(("make", "gmake"), ("-C", "--directory", "-f", "--file", "--makefile", "-I", "--include-dir")),
    **dict.fromkeys(("npm", "pnpm"), ("--prefix", "-C", "--dir")),
    "yarn": ("--cwd",),
    "cargo": ("--manifest-path",),
    "go": ("-C", "--C"),
    "mvn": ("-f", "--file"),
    **dict.fromkeys(("gradle", "gradlew"), ("-p", "--project-dir", "-b", "--build-file")),
    "terraform": ("-chdir",),
}


def runs_other_program(command: Sequence[str], spelled: str, folder: str | None) -> bool:
    """Whether a word behind those that the rule spells out makes a command run another program, or use another address.

    Args:
        command: The words of the command.
        spelled: The words of the rule before its wildcard.
        folder: Where the command runs, if that is known.
    """
    program = command[0].rpartition("/")[2]
    verb = next((word for word in command[1:] if not word.startswith("-")), "")
    known = _RUNNING_OPTIONS.get(program, frozenset[str]()) | _RUNNING_IN_SUBCOMMAND.get((program, verb), frozenset())
    if command[1:2] and command[1] in _NAMES_FOLLOW.get(program, ()):
        known = frozenset([option for option in known if option[0] == "-"])
    if "://" in spelled:
        known |= _OTHER_ADDRESSES.get(program, frozenset())
    given = _skip_spelled(command, program, spelled.split())
    text = _RUNNING_TEXTS.get(program)
    if program in ("tar", "bsdtar", "gtar") and _joins_letters(f"-{command[1]}" if command[1:] else "", "", known):
        return True  # `tar cvfI`: its first word may have no dash
    return (
        any(_runs_program(word, known, program) for word in given)
        or (text is not None and any(text.match(word) for word in given))
        or (program in ("mysql", "mariadb") and _runs_client_command(command[-1 - len(given) :]))
        or any(_list_other_projects(given, _PROJECT_OPTIONS.get(program, ()), folder))
    )


def _runs_client_command(given: Sequence[str]) -> bool:
    """Whether a statement for mysql holds a command of its client; one in a string is none if it surely is a string."""
    for option, statement in pairwise(given):
        if _STATEMENTS.fullmatch(option):
            bare = _STRING.sub("0", statement)
            unsure = _UNSURE_STRINGS.search(bare) or _COMMENT.search(statement) or not statement.isascii()
            if _CLIENT_COMMAND.search(statement if unsure else bare):
                return True
    return False


def _skip_spelled(command: Sequence[str], program: str, spelled: Sequence[str]) -> Sequence[str]:
    """Return the words that follow those a rule spells out: `git -c a=b *` allows no second `-c`."""
    names = [word.rpartition("/")[2] for word in spelled]
    start = names.index(program) + 1 if program in names else len(names)
    same = takewhile(lambda pair: pair[0] == pair[1], zip(command[1:], spelled[start:], strict=False))
    return command[1 + sum(1 for _ in same) :]


def _runs_program(word: str, known: frozenset[str], program: str) -> bool:
    name = word.partition("=")[0]
    if name in known:
        return True
    if not name.startswith("-"):
        return False
    stem = f"-{name.lstrip('-')}" if program in _SINGLE_DASH else ""
    if stem in known or (len(stem) > 4 and any(option.startswith(stem) for option in known)):
        return True  # TeX accepts the beginning of an option
    if name.startswith("--"):  # GNU programs accept any beginning of a long option that is not ambiguous
        return len(name) > 3 and any(option.startswith(name) for option in known)
    values = _VALUE_LETTERS.get(program)
    if values is not None:
        return _joins_letters(word, values, known)
    return len(word) > 2 and word[:2] in known  # a value glued to its letter


def _joins_letters(word: str, values: str, known: frozenset[str]) -> bool:
    """Whether a letter of a cluster runs a program; behind one that takes a value, that value follows."""
    for letter in word[1:]:
        if f"-{letter}" in known:
            return True
        if letter in values or not letter.isalnum():
            return False
    return False


def _list_other_projects(arguments: Sequence[str], options: Sequence[str], folder: str | None) -> Iterator[str]:
    """Yield the words with which a command is run for a project outside its folder."""
    for word, following in pairwise((*arguments, "")):
        for option in options:
            if len(option) > 2:
                name, _, glued = word.partition("=")
                value = (glued or following) if name == option else ""
            else:
                joined = word.startswith("-") and not word.startswith("--") and option[1] in word
                value = (word.partition(option[1])[2].removeprefix("=") or following) if joined else ""
            inside = folder is not None and is_below(value, (folder,))
            if (value.startswith(("/", "~")) and not inside) or ".." in value.split("/"):
                yield word
