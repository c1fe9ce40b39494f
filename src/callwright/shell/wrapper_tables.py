"""The tables of wrappers: programs that run the command in their arguments, with the options that stand before it."""

import re
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import NamedTuple

from callwright.shell.words import Word


class Wrapper(NamedTuple):
    """The options of a wrapper, and how many operands stand before the command."""

    values: frozenset[str] = frozenset()
    flags: frozenset[str] = frozenset()
    operands: int = 0
    doubt: str = ""
    doubtful: frozenset[str] = frozenset()
    """Options with a value that do more than run the command."""


def wrapper(values: str = "", flags: str = "", operands: int = 0, doubt: str = "", doubtful: str = "") -> Wrapper:
    """Return a wrapper's grammar; options are separated by spaces."""
    return Wrapper(frozenset(values.split()), frozenset(flags.split()), operands, doubt, frozenset(doubtful.split()))


PAIRS = (
    *("--bind", "--ro-bind", "--dev-bind", "--bind-try", "--ro-bind-try", "--dev-bind-try"),
    *("--setenv", "--symlink", "--file", "--bind-data", "--ro-bind-data", "--chmod"),
)
"""Options of bwrap with two values."""
_OTHER_USER = "it runs as another user"
_KEEPS_RUNNING = "it starts something that keeps running"
_ELSEWHERE = "it changes where or how the program runs"
_DOWNLOADS = "it may download and run a package"

KEYWORDS = frozenset("! { if then elif else while until do".split())
"""Words of bash before a command, which the parser takes for programs behind `time` or `!`: `time { a; b; }`."""

WRAPPERS = {
    **dict.fromkeys(KEYWORDS, wrapper(doubt="a word of bash before it was taken for a program")),
    "timeout": wrapper("-k -s --kill-after --signal", "-v --verbose --foreground --preserve-status -f -p", 1),
    "gtimeout": wrapper("-k -s --kill-after --signal", "-v --foreground --preserve-status", 1),
    "nice": wrapper("-n --adjustment", "-#"),
    "ionice": wrapper("-c -n --class --classdata", "-t"),
    "stdbuf": wrapper("-i -o -e --input --output --error"),
    "time": wrapper("", "-p", doubtful="-o -f --output --format"),
    "builtin": wrapper(),
    "command": wrapper("", "-p"),
    "arch": wrapper("", "-x86_64 -arm64 -i386 -64 -32"),
    "nohup": wrapper(doubt="it may write nohup.out"),
    "exec": wrapper("-a", "-c -l", doubt="it replaces the shell"),
    "coproc": wrapper(doubt=_KEEPS_RUNNING),
    "setsid": wrapper("", "-f -w -c", doubt=_KEEPS_RUNNING),
    "disown": wrapper(doubt=_KEEPS_RUNNING),
    "noglob": wrapper(doubt=_ELSEWHERE),
    "nocorrect": wrapper(doubt=_ELSEWHERE),
    "sudo": wrapper(
        "-u -g -h -p -C -D -R -T -U -a -c -r -t --user --group --host --prompt --chdir --chroot --role --type "
        "--close-from --command-timeout --other-user --auth-type --login-class",
        doubt=_OTHER_USER,
    ),
    "doas": wrapper("-u -C", doubt=_OTHER_USER),
    "pkexec": wrapper("--user", doubt=_OTHER_USER),
    "gosu": wrapper("", "", 1, doubt=_OTHER_USER),
    "runuser": wrapper("-u -g -G", doubt=_OTHER_USER),
    "chroot": wrapper("--userspec --groups", "", 1, doubt=_ELSEWHERE),
    "taskset": wrapper("", "", 1, doubt=_ELSEWHERE),
    "chrt": wrapper("-T -P -D", "", 1, doubt=_ELSEWHERE),
    "unshare": wrapper(
        "-S -G -R -w --setuid --setgid --root --wd --map-user --map-group --map-users --map-groups --propagation "
        "--setgroups --monotonic --boottime",
        doubt=_ELSEWHERE,
    ),
    "nsenter": wrapper("-t -S -G -W --target --setuid --setgid --wdns", doubt=_ELSEWHERE),
    "setarch": wrapper("", "", 1, doubt=_ELSEWHERE),
    "prlimit": wrapper("-p", doubt=_ELSEWHERE),
    "setpriv": wrapper(
        "--reuid --regid --groups --inh-caps --ambient-caps --bounding-set --securebits --pdeathsig --selinux-label "
        "--apparmor-profile --ruid --euid --rgid --egid --landlock-access --landlock-rule --seccomp-filter --ptracer",
        doubt=_ELSEWHERE,
    ),
    "choom": wrapper("-n --adjust -p --pid", doubt=_ELSEWHERE),
    "numactl": wrapper(
        "-i -m -N -C -p -P -l -w --interleave --membind --cpunodebind --physcpubind --preferred --preferred-many",
        doubt=_ELSEWHERE,
    ),
    "uclampset": wrapper("-m -M -p", doubt=_ELSEWHERE),
    "linux32": wrapper(doubt=_ELSEWHERE),
    "linux64": wrapper(doubt=_ELSEWHERE),
    "x86_64": wrapper(doubt=_ELSEWHERE),
    "i386": wrapper(doubt=_ELSEWHERE),
    "cgexec": wrapper("-g", doubt=_ELSEWHERE),
    "firejail": wrapper(doubt=_ELSEWHERE),
    "bwrap": wrapper(
        f"{' '.join(PAIRS)} --tmpfs --proc --dev --chdir --unsetenv --dir --uid --gid "
        "--hostname --cap-add --cap-drop --seccomp --args",
        doubt=_ELSEWHERE,
    ),
    "capsh": wrapper(doubt=_ELSEWHERE),
    "eatmydata": wrapper(doubt=_ELSEWHERE),
    "faketime": wrapper("-f", "", 1, doubt=_ELSEWHERE),
    "dbus-run-session": wrapper("--config-file --dbus-daemon", doubt=_ELSEWHERE),
    "dbus-launch": wrapper(doubt=_ELSEWHERE),
    "ssh-agent": wrapper("-a -t -E", doubt=_KEEPS_RUNNING),
    "systemd-cat": wrapper("-t -p --identifier --priority", doubt=_ELSEWHERE),
    "tini": wrapper("-p -e", doubt=_ELSEWHERE),
    "dumb-init": wrapper("-r --rewrite", doubt=_ELSEWHERE),
    "su-exec": wrapper("", "", 1, doubt=_OTHER_USER),
    "setuidgid": wrapper("", "", 1, doubt=_OTHER_USER),
    "chpst": wrapper("-u -U -e -m -d -o -p -f -c -b -/ -n -l -L", doubt=_ELSEWHERE),
    "envdir": wrapper("", "", 1, doubt=_ELSEWHERE),
    "softlimit": wrapper("-a -c -d -f -l -m -o -p -r -s -t", doubt=_ELSEWHERE),
    "start-stop-daemon": wrapper(doubt=_KEEPS_RUNNING),
    "entr": wrapper(doubt=_KEEPS_RUNNING),
    "hyperfine": wrapper("-w -m -M -r -p -c -s --warmup --runs --prepare --cleanup", doubt="it repeats what it runs"),
    "perf": wrapper("-e -o -p -F", "", 1, doubt="it traces what it runs"),
    "catchsegv": wrapper(doubt=_ELSEWHERE),
    **dict.fromkeys(
        ("ld.so", "ld-linux.so.2", "ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1", "ld-musl-x86_64.so.1"),
        wrapper("--library-path --preload --argv0 --audit --inhibit-rpath", doubt=_ELSEWHERE),
    ),
    "trickle": wrapper("-d -u -w -t -l -n", doubt=_ELSEWHERE),
    "aa-exec": wrapper("-p -n --profile", doubt=_ELSEWHERE),
    "runcon": wrapper("-t -u -r -l", "", 1, doubt=_ELSEWHERE),
    "sg": wrapper("", "-c", 1, doubt=_OTHER_USER),
    "cpulimit": wrapper("-l -p -e", doubt=_ELSEWHERE),
    "systemd-run": wrapper(
        "-p -u --unit --property -M -H -E --machine --host --description --slice --service-type --uid --gid --nice "
        "--working-directory --setenv --on-active --on-boot --on-startup --on-unit-active --on-unit-inactive "
        "--on-calendar --timer-property --path-property --socket-property",
        doubt=_ELSEWHERE,
    ),
    "systemd-inhibit": wrapper("--what --who --why --mode", doubt=_ELSEWHERE),
    "strace": wrapper(
        "-e -o -p -s -u -b -E -P -a -I -O -S -U -X --output --env --attach --user --trace --trace-path --string-limit "
        "--columns --interruptible --detach-on",
        doubt="it traces what it runs",
    ),
    "screen": wrapper("-S -c -e -h -s -t -T", doubt=_KEEPS_RUNNING),
    "ltrace": wrapper("-e -o -p -s -u -n", doubt="it traces what it runs"),
    "valgrind": wrapper(doubt="it writes reports"),
    "unbuffer": wrapper(doubt=_ELSEWHERE),
    "chronic": wrapper(doubt=_ELSEWHERE),
    "ifne": wrapper("", "-n", doubt=_ELSEWHERE),
    **dict.fromkeys(("ccache", "distcc", "sccache", "torify", "aoss"), wrapper(doubt=_ELSEWHERE)),
    "sshpass": wrapper("-f -d -p -P", "-e -v", doubt=_ELSEWHERE),
    "grc": wrapper("-c --config", "-e -s --pty --colour=auto", doubt=_ELSEWHERE),
    "multitime": wrapper("-f -I -i -n -o -r -s", "-l -q -v", doubt="it repeats what it runs"),
    "logsave": wrapper("", "-a -s -v", 1, doubt="it writes a log"),
    "setlock": wrapper("", "-n -N -x -X", 1, doubt="it waits for a lock"),
    "run0": wrapper("-u -g -D --user --group --chdir --nice --setenv --property --unit --slice", doubt=_OTHER_USER),
    "rlwrap": wrapper(doubt=_ELSEWHERE),
    "torsocks": wrapper(doubt=_ELSEWHERE),
    "proxychains": wrapper("-f", doubt=_ELSEWHERE),
    "proxychains4": wrapper("-f", doubt=_ELSEWHERE),
    "caffeinate": wrapper("-t -w", doubt=_KEEPS_RUNNING),
    "busybox": wrapper(doubt="its programs differ from the standard ones"),
    "toybox": wrapper(doubt="its programs differ from the standard ones"),
    "npx": wrapper("-p --package -c --call", doubt=_DOWNLOADS),
    "bunx": wrapper(doubt=_DOWNLOADS),
    "pipx": wrapper("--spec", "", 1, doubt=_DOWNLOADS),
    "uvx": wrapper("--from --with -p --python --index --env-file", doubt=_DOWNLOADS),
    "watchexec": wrapper(
        "-e -w -i -f -d -s --exts --watch --ignore --filter --debounce --signal", doubt=_KEEPS_RUNNING
    ),
    "direnv": wrapper("", "", 2, doubt=_ELSEWHERE),
    "dotenv": wrapper("-f -e -v -q --file", doubt=_ELSEWHERE),
    "xvfb-run": wrapper(
        "-n -s -e -f -p -w --server-num --server-args --error-file --auth-file --xauth-protocol --wait",
        doubt=_ELSEWHERE,
    ),
    "fakeroot": wrapper("-l -s -i", doubt=_ELSEWHERE),
}
# --replace, --eof and --max-lines take a value only after "="
XARGS = wrapper(
    "-I -n -P -d -a -E -L -s -J -R -S --max-args --max-procs --delimiter --arg-file --max-chars",
    "-0 --null -r --no-run-if-empty -t --verbose -x --exit -i -e -l",
    doubtful="--process-slot-var",
)
FLOCK = wrapper("-w -E --timeout --wait --wb --conflict-exit-code")
WATCH = wrapper("-n -q -s --interval --equexit")
PARALLEL = wrapper("-j --jobs -a -I -S --results --joblog -d -N -n -L --colsep --timeout --retries -P")
PROGRAM_VARIABLES = frozenset(
    "GIT_PAGER PAGER MANPAGER SYSTEMD_PAGER AWS_PAGER GIT_EXTERNAL_DIFF GIT_SSH_COMMAND GIT_SSH GIT_PROXY_COMMAND "
    "GIT_ASKPASS SSH_ASKPASS GIT_EDITOR GIT_SEQUENCE_EDITOR EDITOR VISUAL BROWSER LESSOPEN LESSCLOSE PROMPT_COMMAND "
    "PS4 RUSTC_WRAPPER".split()
)
"""Variables whose value some program runs."""
_TAR = ("-I", "-F", "--use-compress-program", "--to-command", "--info-script", "--rsh-command", "--checkpoint-action")
PROGRAM_OPTIONS = {
    **dict.fromkeys(("tar", "bsdtar", "gtar"), _TAR),
    **dict.fromkeys(("sort", "gsort"), ("--compress-program",)),
    **dict.fromkeys(("rg", "ripgrep"), ("--pre", "--hostname-bin")),
    **dict.fromkeys(("man", "ag", "ack"), ("-P", "--pager")),
    **dict.fromkeys(("mapfile", "readarray"), ("-C",)),
    "git grep": ("-O", "--open-files-in-pager"),
    "git difftool": ("-x", "--extcmd"),
    "git rebase": ("-x", "--exec"),
    "script": ("-c", "-qc", "-qec", "-eqc", "-qfc", "--command"),
    "split": ("--filter",),
    "gdb": ("--args",),
}
"""Options whose value a program runs."""
RUN_VALUES = frozenset(
    "--context --cluster -e --env -u --user -w --workdir -n --namespace -c --with -p --python --extra -C --directory "
    "--project --env-file --group --package --index --filter -F --name --prefix --cwd".split()
)
"""Options with a value before or behind the verbs of programs that run others."""
RUN_VERBS = {
    "uv": ("run",),
    "poetry": ("run",),
    "pipenv": ("run",),
    "pdm": ("run",),
    "hatch": ("run",),
    "rye": ("run",),
    "pnpm": ("exec", "dlx"),
    "yarn": ("exec", "dlx"),
    "npm": ("exec", "x"),
    **dict.fromkeys(("bundle", "cabal", "stack", "opam", "lxc", "incus"), ("exec",)),
    "rustup": ("run",),
    "mise": ("exec", "x"),
    **dict.fromkeys(("op", "doppler", "infisical"), ("run",)),
    **dict.fromkeys(("aws-vault", "chamber"), ("exec",)),
    "guix": ("shell",),
    **dict.fromkeys(("asdf", "pyenv", "rbenv"), ("exec",)),
    "conda": ("run",),
    "docker": ("exec",),
    "podman": ("exec",),
    "kubectl": ("exec",),
    "cargo": (),
}


def skip_options(words: Sequence[Word], wrapper: Wrapper) -> tuple[int, str]:
    """Return how many leading words are options, and a doubt when one of them is unknown."""
    place, doubt, values, flags = 0, "", wrapper.values, wrapper.flags
    while place < len(words):
        text = words[place].text
        if text == "--":
            return place + 1, doubt
        if text[:1] != "-" or text == "-":
            break
        if text in values:
            place += 3 if text in PAIRS else 2
            continue
        name = text.partition("=")[0]
        known = name in flags or name in values or text[:2] in values or ("-#" in flags and text[1:].isdigit())
        doubt = doubt or ("" if known else f"{text} is an unknown option")
        place += 1 if known or not awaits_value(text, values | wrapper.doubtful) else 2
    return place, doubt


def has_known_options(words: Sequence[str]) -> bool:
    """Whether a wrapper has only options that are known: `time -o FILE` writes a file.

    Args:
        words: The wrapper, its options and the command behind them.
    """
    found = WRAPPERS.get(words[0].rpartition("/")[2])
    return found is not None and not skip_options([Word(text) for text in words[1:]], found)[1]


def awaits_value(option: str, values: frozenset[str]) -> bool:
    """Whether the next word is the value of an abbreviated option, or of the last of several joined letters."""
    if option[:2] == "--":
        return "=" not in option and any(value.startswith(option) for value in values)
    letters = [f"-{letter}" in values for letter in option[1:]]
    return any(letters) and letters.index(True) == len(letters) - 1


_NO_TIME = re.compile(r"(?!inf|nan|sig|rtm)[a-z][a-z0-9_-]+")
_SIGNALS = frozenset(
    "hup int quit ill trap abrt iot bus emt fpe kill usr1 segv usr2 pipe alrm term stkflt chld cld cont stop tstp ttin "
    "ttou urg xcpu xfsz vtalrm prof winch io poll pwr sys lost exit unused thr".split()
)


def names_program(word: Word) -> bool:
    """Whether a word is a program's name that timeout reads neither as a time nor as a signal."""
    return word.literal and _NO_TIME.fullmatch(word.text) is not None and word.text not in _SIGNALS


def find_loose(own: Iterable[Word], values: frozenset[str]) -> str:
    """Return the first word that is not literal, but for one word that is the value of an option among these."""
    for before, word in pairwise((Word(""), *own)):
        if not word.literal and not (word.single and before.literal and before.text in values):
            return word.text
    return ""
