"""Lines that only a read-only wall makes safe: what they run is not proven, but behind the wall it changes nothing.

The wall is what makes such a line safe: the disk read-only, no network, no sockets of other programs, secrets masked,
caches redirected. The lists here only save pointless runs: a program that exists to write, to connect or to keep
running would fail behind the wall, so the user is asked before it starts.

    a command of the line       may run unasked behind the wall
    proven to read only         yes
    writes, deletes, connects   no
    in the table of checkers    as its entry says: `pytest`, `ruff check` without `--fix`
    a reader with options that  yes, unless an option is known to write: `bat --style plain`, not `sort -o out`
    are unknown or computed
    in no table                 yes, unless its name, its flags or its verb say that it changes something
    a script of the workspace   no
"""

import re
from collections.abc import Callable, Sequence
from typing import TypeAlias

from callwright.core.access import Access, DeletePath, Reach, WritePath
from callwright.policy.tool_names import words
from callwright.shell import tables
from callwright.shell.plan import ShellPlan, SimpleCommand, Verdict
from callwright.shell.programs.git_shown import SHOWS_CONTENT
from callwright.shell.words import HARMLESS_TARGETS, Word
from callwright.shell.wrapper_tables import KEYWORDS
from callwright.system.sensitive_paths import comparable, is_secret

_Fits: TypeAlias = Callable[[Sequence[str]], bool]
_SYSTEM_FOLDERS = ("/bin/", "/usr/bin/", "/usr/local/bin/")
_PLAIN_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+-]*|\.")
_QUERY = re.compile(r"\s*(?:select|explain|pragma|with|\.tables|\.schema|\.indexes|\.dbinfo)\b", re.IGNORECASE)
_VERSIONED = re.compile(r"(python|ruby|node|php|lua|perl|pip)[\d.]*\Z")

# wrappers whose command runs as another user, in another place, with secrets, or keeps running
_LEAVING = words(
    "sudo doas pkexec su runuser gosu su-exec setuidgid sg chroot nsenter unshare systemd-run start-stop-daemon entr"
    " watch ssh-agent dbus-run-session dbus-launch bwrap firejail machinectl nodemon watchexec screen nix nix-shell"
) | {
    *KEYWORDS,  # behind which the parser has misread the line
    *("docker exec", "podman exec", "kubectl exec", "lxc exec", "incus exec", "ip exec", "guix shell"),
    *("op run", "doppler run", "infisical run", "aws-vault exec", "chamber exec"),
}
_FETCHING = words("npx bunx uvx pipx") | {"npm exec", "npm x", "pnpm dlx", "yarn dlx", "uv tool run"}
"""Wrappers that download what is not installed: only programs of the table run behind them."""


def is_walled(plan: ShellPlan) -> bool:
    """Whether a line may run unasked behind a complete read-only wall.

    Every command in it must be read-only or fit one of the lists; the words that are not literal may be anything,
    because the wall holds whatever they become.
    """
    if plan.problem or plan.dangers or not plan.commands or uncovers_secrets(plan):
        return False
    return all(map(_fits, plan.commands))


def uncovers_secrets(plan: ShellPlan) -> bool:
    """Whether git may print committed secrets, which no wall masks: settings in git's environment hide them."""
    printing = [command for command in plan.commands if _prints_content(command)]
    if not printing:
        return False
    if not plan.proven or any(command.verdict is Verdict.UNKNOWN for command in printing):
        return True
    unknown = [command.words for command in plan.commands if command.verdict is Verdict.UNKNOWN and command.words]
    return any(command[0] in _CHANGES_SHELL for command in unknown)


def _prints_content(command: SimpleCommand) -> bool:
    if command.program != "git" or command.words[1:2] == ("help",):
        return False
    return not _GIT_PRINTS.isdisjoint(command.words)  # any word may be the sub-command: options before it take values


def _fits(command: SimpleCommand) -> bool:
    if command.words[:1] in (("sqlite3",), ("duckdb",)):
        return not command.redirected and _queries(command.words[1:])
    if any(map(_leaves_wall, command.accesses)):
        return False
    if command.verdict is Verdict.READ_ONLY or not command.words:
        return command.verdict is Verdict.READ_ONLY
    if command.verdict is not Verdict.UNKNOWN or not _LEAVING.isdisjoint(command.wrappers):
        return False
    name, *arguments = command.words
    if any(map(_names_secret, arguments)):  # masked in the workspace and the home folder, but not everywhere
        return False
    for folder in _SYSTEM_FOLDERS:
        name = name.removeprefix(folder)
    if not _PLAIN_NAME.fullmatch(name):
        return name in _BUILD_SCRIPTS and bool(arguments) and _CHECKING_SCRIPTS.issuperset(arguments)
    fits = _PROGRAMS.get(_VERSIONED.sub(r"\1", name))
    if fits is not None and fits(arguments):
        return True
    if not _FETCHING.isdisjoint(command.wrappers):
        return False
    return _shows_help(arguments) or (fits is None and (_reads(name, arguments) or _is_plain_program(name, arguments)))


def _names_secret(word: str) -> bool:
    return is_secret(comparable(f"/{word.rpartition('=')[2]}"))


def _leaves_wall(access: Access) -> bool:
    if isinstance(access, WritePath):
        return access.path not in HARMLESS_TARGETS
    return isinstance(access, (DeletePath, Reach))


def _shows_help(arguments: Sequence[str]) -> bool:
    if len(arguments) == 1:
        return arguments[0] in ("--help", "--version", "-h", "-V", "-v", "-version", "version", "help", "--info")
    return bool(arguments) and arguments[-1] in ("--help", "--version")


def _reads(name: str, arguments: Sequence[str]) -> bool:
    """Whether a program that is known to read was only given options that the tables do not know, or computed words."""
    if name == "git":
        return _reads_git(arguments)
    if name in _READERS:
        return True
    rule = tables.find_rule(name) if tables.shows_machine_or_files(name) else None
    if rule is None or rule.subcommands or rule.secret or rule.network or rule.needs:
        return False
    if _has_writing_flag(arguments):
        return False
    return rule.allowed is not None or not rule.flag_objection([Word(argument) for argument in arguments])


def _reads_git(arguments: Sequence[str]) -> bool:
    """Whether a git call reads, and prints no content of files."""
    place = 0
    while place < len(arguments) and arguments[place][:1] == "-":
        if arguments[place] not in ("-C", "--no-pager", "-P", "--git-dir", "--work-tree"):
            return False
        place += 1 if arguments[place][:3] == "--n" or arguments[place] == "-P" else 2
    verb = arguments[place] if place < len(arguments) else ""
    return verb in _GIT_READS and not _has_writing_flag(arguments)


def _is_plain_program(name: str, arguments: Sequence[str]) -> bool:
    """Whether a program is in no table, and nothing in its call says that it changes something."""
    if name in _CHANGES or name in tables.known_programs() or _has_writing_flag(arguments):
        return False
    operand = next((argument for argument in arguments if argument[:1] != "-"), "")
    return operand not in _CHANGING_VERBS


def _has_writing_flag(arguments: Sequence[str]) -> bool:
    return any(argument.partition("=")[0] in _WRITING_FLAGS for argument in arguments)


_QUERY_VALUES = words("-separator -nullvalue -newline")


def _queries(arguments: Sequence[str]) -> bool:
    """Whether a database program is given questions only; it counts as a writer, because it opens the file to write."""
    operands: list[str] = []
    previous = ""
    for argument in arguments:
        if argument[:1] != "-" and previous not in _QUERY_VALUES:
            operands.append(argument)
        previous = argument
    # without a statement it reads its input, which is empty or comes from a command of the line
    return bool(operands) and all(map(_QUERY.match, operands[1:]))


def _any(_: Sequence[str]) -> bool:
    return True


def _without(*flags: str) -> _Fits:
    """Accept any arguments but these flags, which make the program write."""
    return lambda arguments: not any(argument.split("=")[0] in flags for argument in arguments)


def _with(*flags: str) -> _Fits:
    """Accept arguments that hold one of these flags."""
    return lambda arguments: any(argument.split("=")[0] in flags for argument in arguments)


def _first(**subcommands: _Fits) -> _Fits:
    """Accept these sub-commands; an underscore stands for a dash or a colon."""
    known = {name.replace("_", "-"): fits for name, fits in subcommands.items()}

    def fits(arguments: Sequence[str]) -> bool:
        operands = [place for place, argument in enumerate(arguments) if argument[:1] != "-"]
        if not operands:
            return bool(arguments) and arguments[-1] in ("--version", "-V", "-v", "--help", "-h")
        found = known.get(arguments[operands[0]])
        return found is not None and found(arguments[operands[0] + 1 :])

    return fits


def _script(arguments: Sequence[str]) -> bool:
    """Accept `test`, `lint` and the like as the script of a package."""
    return bool(arguments) and arguments[0] in _CHECKING_SCRIPTS


_CHECKING_SCRIPTS = words(
    "test tests test:unit test-unit unit unittest lint check typecheck type-check types tsc verify help tasks"
    " dependencies projects"
)
_BUILD_SCRIPTS = words("./gradlew ./mvnw")
_SCRIPT_FLAGS = words("--help -h --version --dry-run --check")
_WRITING_FLAGS = words("-o --output --out --output-file --outfile --in-place --write --fix --fix-only --save --delete")
_READERS = words("sed gsed awk gawk mawk nawk find gfind fd fdfind yq jq gojq printf test [ [[ read command set")
_GIT_READS = words(
    "status shortlog cherry describe rev-list ls-files ls-tree merge-base name-rev for-each-ref show-ref show-branch"
    " count-objects verify-pack rev-parse check-ignore check-attr fsck verify-commit verify-tag help"
)
_GIT_PRINTS = (SHOWS_CONTENT - words("stash apply hash-object patch-id")) | words(
    "fast-export bundle difftool unpack-file send-email request-pull"
)
_CHANGES_SHELL = words("export declare typeset readonly unset alias shopt source . eval exec set")
_CHANGES = words(
    # package managers and version managers
    "apt apt-get aptitude dpkg yum dnf rpm pacman apk zypper emerge port snap flatpak nix nix-env nix-build nix-shell"
    " guix brew easy_install cpan cpanm luarocks opam cabal stack sbt mix rebar3 mvn gradle ant bazel buck scons conan"
    " vcpkg spack sdk asdf mise bower jspm lerna nx turbo rush dotnet nuget msbuild xcodebuild pod carthage pre-commit"
    # servers and programs that wait for a user
    " uvicorn gunicorn hypercorn waitress-serve flask django-admin rails puma webpack vite next nuxt astro gatsby ng"
    " parcel rollup http-server json-server live-server nodemon pm2 celery redis-server postgres mysqld mongod"
    " memcached jupyter jupyter-lab streamlit gradio ollama tmux screen byobu htop btop vim vi nvim nano pico emacs ed"
    " ex micro hx helix code subl mc ranger lazygit tig gitk"
    # other machines
    " ssh scp sftp ssh-copy-id ssh-add ssh-keygen ftp lftp nc ncat netcat telnet socat http https xh aria2c axel"
    " youtube-dl yt-dlp nmap mosh openvpn wg wg-quick tailscale ngrok cloudflared mail mailx sendmail mutt ab wrk k6"
    " locust gsutil s3cmd hg svn bzr fossil jj sl cvs p4 glab hub pulumi serverless sls sam amplify cdk eksctl ctr"
    " crictl buildah skopeo lxc vagrant virsh multipass"
    # the machine
    " mount umount losetup swapon swapoff modprobe insmod rmmod iptables ip6tables nft ufw firewall-cmd useradd"
    " usermod groupadd groupmod adduser deluser passwd chpasswd visudo chsh at batch telinit update-alternatives"
    " update-grub grub-install ldconfig defaults osascript open xdg-open wall write reset clear"
    # programs that make files
    " make ninja meson cmake ld as ar ranlib strip objcopy javac ocamlc ocamlopt swiftc pdflatex latex xelatex lualatex"
    " latexmk sphinx-build mkdocs hugo jekyll doxygen typedoc ffmpeg sox convert magick mogrify inkscape blender gimp"
    " autopep8 yapf cookiecutter copier yo create-react-app alembic prisma typeorm knex flyway liquibase twine flit"
    " cpack rar xz bzip2 lz4 logrotate rename mmv"
)
_CHANGING_VERBS = words(
    "install uninstall add remove rm update upgrade delete create init new push pull publish deploy release start stop"
    " restart run serve dev watch build login logout apply destroy import export migrate up down exec set edit commit"
    " sync clean generate gen fix format fmt write save upload download enable disable"
)
_MODULES: dict[str, _Fits] = {
    **dict.fromkeys(
        "pytest unittest json.tool py_compile compileall ast tokenize dis site sysconfig platform timeit doctest mypy"
        " flake8 pylint pyright bandit vulture this calendar trace symtable inspect".split(),
        _any,
    ),
    "pip": _first(list=_any, show=_any, freeze=_any, check=_any, inspect=_any, help=_any, debug=_any),
    "ruff": _first(check=_without("--fix", "--unsafe-fixes", "--add-noqa"), format=_with("--check", "--diff")),
    "black": _with("--check", "--diff"),
    "isort": _with("--check", "--check-only", "--diff", "-c"),
    "coverage": _first(report=_any, run=_any),
}


def _python(arguments: Sequence[str]) -> bool:
    for place, argument in enumerate(arguments):
        if argument == "-":  # the program stands in the line: a heredoc, or the output of another command
            return True
        if argument[:1] != "-":
            return not _SCRIPT_FLAGS.isdisjoint(arguments[place:])
        if argument.startswith("-c") or argument in ("-V", "-VV", "--version", "--help", "-h"):
            return True
        if argument == "-m":
            module, *rest = arguments[place + 1 :] or ("",)
            fits = _MODULES.get(module)
            return (fits is not None and fits(rest)) or bool(module and rest and rest[-1] in ("-h", "--help"))
        if argument in ("-W", "-X"):
            return False
    return not arguments


def _targets(arguments: Sequence[str]) -> bool:
    """Accept targets of a makefile that check something."""
    return bool(arguments) and _CHECKING_SCRIPTS.issuperset(arguments)


def _compiler(arguments: Sequence[str]) -> bool:
    """Accept a compiler that checks the syntax or prints what the preprocessor makes."""
    return _with("-fsyntax-only", "--version", "-v", "-E", "-M", "-MM")(arguments) and "-o" not in arguments


_NPM = _first(test=_any, t=_any, ls=_any, list=_any, run=_script, run_script=_script, explain=_any, why=_any)
_CHECKERS: dict[str, _Fits] = {
    "tsc": _with("--noEmit", "--version", "-v", "--showConfig", "--listFiles"),
    "eslint": _without("--fix", "-o", "--output-file"),
    "prettier": _with("--check", "-c", "-l", "--list-different"),
    "stylelint": _without("--fix", "-o", "--output-file"),
    "jest": _without("-u", "--updateSnapshot", "--init"),
    "vitest": _first(run=_without("-u", "--update"), list=_any, related=_any),
    "mocha": _any,
    "biome": _first(check=_without("--write", "--apply"), lint=_without("--write", "--apply"), ci=_any),
}
_MAKE_SHOWS = _with("-n", "--dry-run", "--just-print", "--recon", "-q", "--question", "-p", "--version", "-v")
_PROGRAMS: dict[str, _Fits] = {
    **dict.fromkeys(
        "pytest py.test mypy dmypy pyright basedpyright flake8 pylint bandit vulture shellcheck hadolint yamllint"
        " actionlint markdownlint golangci-lint staticcheck cppcheck ansible-lint source . ffprobe rspec tput".split(),
        _any,
    ),
    "tox": _with("-l", "--listenvs", "list", "l", "--version"),
    "nox": _with("-l", "--list", "--list-sessions", "--version"),
    "rubocop": _without("-a", "-A", "--autocorrect", "--auto-correct", "--fix-layout", "--regenerate-todo"),
    "rake": _with("-T", "--tasks", "-P", "--prereqs", "--version"),
    "bundle": _first(list=_any, show=_any, info=_any, outdated=_any, check=_any, platform=_any),
    "composer": _first(show=_any, validate=_any, licenses=_any, why=_any, depends=_any, check_platform_reqs=_any),
    "dotnet": _with("--info", "--version", "--list-sdks", "--list-runtimes"),
    "pandoc": _without("-o", "--output", "-F", "--filter", "--lua-filter", "--extract-media"),
    "pdftotext": lambda arguments: arguments[-1:] == ["-"],
    "identify": _without("-write"),
    "jupyter": lambda arguments: arguments[:1] == ["nbconvert"] and "--stdout" in arguments,
    "pyenv": _first(versions=_any, version=_any, which=_any, whence=_any, root=_any),
    "nvm": _first(ls=_any, list=_any, current=_any, which=_any),
    "mktemp": _without("-p", "--tmpdir"),
    "code": _with("--list-extensions", "--version"),
    **{name: _MODULES[name] for name in ("ruff", "black", "isort", "coverage", "pip")},
    **_CHECKERS,
    "python": _python,
    "pypy": _python,
    "node": _with("-e", "--eval", "-p", "--print", "-v", "--version", "-c", "--check", "-pe", "--test"),
    "deno": _first(check=_any, lint=_without("--fix"), eval=_any, info=_any, test=_any),
    "bun": _first(test=_any),
    "ruby": _with("-e", "-c", "-v", "--version", "-wc"),
    "perl": lambda arguments: (
        _with("-e", "-ne", "-E", "-c", "-v", "-pe", "-lne", "-lane", "-nle")(arguments)
        and not any(argument.startswith("-i") for argument in arguments)
    ),
    "php": _with("-r", "-l", "-v", "-m", "-i"),
    "lua": _with("-e", "-v"),
    "bash": _with("-n", "--version"),
    "sh": _with("-n"),
    "zsh": _with("-n", "--version"),
    **dict.fromkeys(("make", "gmake"), lambda arguments: _MAKE_SHOWS(arguments) or _targets(arguments)),
    "ninja": _with("-n", "-t", "--version"),
    "go": _first(
        vet=_any, test=_without("-o", "-c", "-coverprofile", "-fuzz"), list=_any, doc=_any, env=_without("-w", "-u")
    ),
    "gofmt": _without("-w"),
    "cargo": _first(check=_any, test=_any, clippy=_without("--fix"), tree=_any, metadata=_any, fmt=_with("--check")),
    "rustc": _with("--version", "-V", "--print", "--explain"),
    "rustfmt": _with("--check"),
    "npm": _NPM,
    "pnpm": _NPM,
    "yarn": _first(test=_any, run=_script, lint=_any, why=_any, list=_any, info=_any),
    "npx": _first(**_CHECKERS),
    **dict.fromkeys(("gcc", "g++", "cc", "c++", "clang", "clang++"), _compiler),
    "clang-tidy": _without("--fix", "-fix", "--fix-errors"),
    "clang-format": _without("-i"),
    **dict.fromkeys("export declare typeset readonly unset alias shopt".split(), _any),
}
"""By program, without the number of its version."""
