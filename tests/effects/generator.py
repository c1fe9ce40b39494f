"""Generates shell lines: payloads behind quoting, expansion and wrappers, and programs with options of the tables."""

import random
from collections.abc import Callable, Iterator
from typing import Any

from callwright.shell import tables

PAYLOADS = (
    "touch @B@/PWNED",
    "./evil.sh",
    "cat .env",
    "head -1 @B@/home/.ssh/id_rsa",
    "rm notes.txt",
    "tee new.txt",
    "cp notes.txt ../outside/x",
    "cp evil.sh .git/hooks/pre-commit",
    "printenv API_KEY",
    "sort -o out notes.txt",
    "sed -i s/one/1/ notes.txt",
    "git config core.pager ./evil.sh",
    "ln -s ../outside o",
)
_QUOTINGS: tuple[Callable[[str], str], ...] = (
    lambda line: line,
    lambda line: "\\" + line,
    lambda line: line[:1] + "''" + line[1:],
    lambda line: f'"{line.split()[0]}" {" ".join(line.split()[1:])}',
    lambda line: "$'" + line.split()[0] + "' " + " ".join(line.split()[1:]),
    lambda line: "{" + ",".join(line.split()) + "}",
    lambda line: f"x='{line}'; $x",
    lambda line: f'set -- {line}; "$@"',
    lambda line: line.replace(" ", "\t"),
    lambda line: line.replace(" ", "${IFS}"),
    lambda line: line.replace(" ", " \\\n"),
)
_EXPANSIONS = (
    "echo $({})",
    "echo `{}`",
    'echo "$({})"',
    'printf "%s\\n" "`{}`"',
    "echo ${{x:-$({})}}",
    "echo $(( $({}; echo 1) ))",
    "a[$({})]=1",
    "test -v 'a[$({})]'",
    "[[ -n $({}) ]]",
    "cat <({})",
    "ls > >({})",
    "cat <<E\n$({})\nE",
    "cat <<'E'\n$({})\nE",
    "wc -c <<< $({})",
    "for i in $({}); do echo $i; done",
    "case $({}) in x) ;; esac",
    "ls $({})",
    "grep -c . $({})",
    "X=$({}) ls",
    "echo ${{x[$({})]}}",
    "let 'a[$({})]'",
    "unset 'a[$({})]'",
    "echo {{a,$({})}}",
    "cat notes.txt # $({})",
    "echo '$({})'",
)
_WRAPPERS = (
    "{}",
    "env {}",
    "env -i {}",
    "command {}",
    "exec {}",
    "eval '{}'",
    "bash -c '{}'",
    "sh -c '{}'",
    "timeout 2 {}",
    "nice {}",
    "nohup {}",
    "setsid {}",
    "stdbuf -oL {}",
    "time {}",
    "! {}",
    "( {} )",
    "{{ {}; }}",
    "{} &",
    "true && {}",
    "false || {}",
    "ls; {}",
    "ls | {}",
    "{} | cat",
    "{} 2>/dev/null",
    "{} < notes.txt",
    "if {}; then :; fi",
    "while {}; do break; done",
    "f() {{ {}; }}; f",
    "trap '{}' EXIT",
    "coproc {}",
    "echo x | xargs {}",
    "find . -name README -exec {} \\;",
    "cd src && {}",
    "cd src; {}",
    "awk 'BEGIN{{system(\"{}\")}}'",
    "sed '1e {}' notes.txt",
    "python3 -c 'import os; os.system(\"{}\")'",
    "make -n -f <(echo 'x:;{}')",
    "pytest -q; {}",
)
_OPERANDS = (
    ".env",
    "notes.txt",
    "README",
    "../outside/keep.txt",
    "@args",
    "-",
    "--",
    "out",
    ".",
    "~/.ssh/id_rsa",
    "x=y",
)
_TAILS = ("", "", "", " | cat", " > out", " 2>&1", " && ls", " -- .env", "; ./evil.sh")


LINES_PER_FOLDER = 40
"""Lines of the same mode that run one after the other in one folder."""


def generate(count: int, seed: int) -> Iterator[dict[str, Any]]:
    """Yield cases; the same seed gives the same lines."""
    choose = random.Random(seed)
    programs = sorted(tables.known_programs())
    modes = ("default", "auto", "plan", "dontAsk")
    for number in range(count):
        line = _program_line(choose, programs) if choose.random() < 0.5 else _payload_line(choose)
        walled = number % 2 == 0
        yield {"line": line, "mode": modes[number // LINES_PER_FOLDER % 4], "walled": walled, "setup": ""}


def _payload_line(choose: random.Random) -> str:
    line = choose.choice(_QUOTINGS)(choose.choice(PAYLOADS))
    for _ in range(choose.randrange(1, 3)):
        template = choose.choice((choose.choice(_EXPANSIONS), choose.choice(_WRAPPERS)))
        line = template.format(line)
    return line


def _program_line(choose: random.Random, programs: list[str]) -> str:
    name = choose.choice(programs)
    words = [name]
    rule = tables.find_rule(name)
    if rule is not None and rule.subcommands and choose.random() < 0.9:
        below = choose.choice(sorted(rule.subcommands))
        words.append(below.replace("*", "x"))
        rule = rule.subcommands[below]
    flags = sorted(
        {*(rule.refused if rule else ()), *(rule.allowed or () if rule else ()), *(rule.values if rule else ())}
    )
    for _ in range(choose.randrange(4)):
        kind = choose.random()
        if kind < 0.45 and flags:
            flag = choose.choice(flags)
            words.append(choose.choice((flag, flag[: max(3, len(flag) - 2)], f"{flag}={choose.choice(_OPERANDS)}")))
        elif kind < 0.55:
            words.append(f"-{choose.choice('abcdefinoprstuvwxCDIOR')}")
        else:
            words.append(choose.choice(_OPERANDS))
    line = " ".join(words) + choose.choice(_TAILS)
    return line if choose.random() < 0.8 else choose.choice(_WRAPPERS).format(line.replace("'", ""))
