"""What a line puts into its variables reaches the guards in bypass mode too, and ordinary lines are not asked about."""

from pathlib import Path

import pytest

from callwright.core.access import Allow, Ask, Decision, Deny
from callwright.policy import judge_command


def _judge(line: str, folder: Path, *deny: str) -> Decision:
    return judge_command(line, cwd=folder, workspace=folder, mode="bypass", deny=deny)


@pytest.mark.parametrize(
    "line",
    [
        # appended texts and elements
        'x=(rm); x+=(-rf /); "${x[@]}"',
        'x=(rm); x+=(-rf); x+=(/); "${x[@]}"',
        'x+=(rm -rf /); "${x[@]}"',
        'x=("rm -rf"); x+=(/); ${x[@]}',
        'x="rm -rf"; x+=" /"; $x',
        'x="rm -rf"; x+=" /"; eval "$x"',
        "x=r; x+=m; y=-rf; y+=' /'; $x $y",
        "x=rm; (x=ls); x+=' -rf /'; $x",
        "x=ls; unset x; x+='rm -rf'; x+=' /'; $x",
        "x=(rm -rf); x+=' '; x+=(/); ${x[@]}",
        "x='-rf /'; x=\"rm $x\"; $x",
        'x=(-rf /); x=(rm "${x[@]}"); "${x[@]}"',
        "declare x='rm -rf'; declare x+=' /'; $x",
        'for i in rm -rf /; do x+=" $i"; done; $x',
        'for i in rm -rf /; do x+=($i); done; "${x[@]}"',
        'for i in rm -rf /; do x+=("$i"); done; "${x[@]}"',
        'i=rm; x=("$i" -rf /); "${x[@]}"',
        # elements that are set one by one
        'a[0]=rm; a[1]=-rf; a[2]=/; "${a[@]}"',
        'a=(ls -rf /); a[0]=rm; "${a[@]}"',
        "a=(r -rf /); a[0]+=m; ${a[@]}",
        'declare -A m=([a]=rm [b]=-rf [c]=/); "${m[@]}"',
        "m[k]=rm; m[l]=-rf; m[m]=/; ${m[@]}",
        "x=(a rm -rf /); ${x[@]:1}",
        "x=(a rm -rf / b); ${x[@]:1:3}",
        "x='arm -rf /b'; y=${x:1:8}; $y",
        "x=(a b rm -rf /); ${x[@]: -3}",
        "x=(a b rm -rf /); ${x[@]: 2}",
        "x='arm -rf /b'; y=${x: 1:8}; $y",
        "x='bc rm -rf /'; ${x: -8}",
        # positional parameters
        'set -- /; rm -rf "$@"',
        "set -- /; rm -rf $*",
        'set -- rm -rf /; "$@"',
        "set rm -rf /; $@",
        "set -e -o pipefail -- rm -rf /; $@",
        "set - a /; rm -rf ${2}",
        "set -- a rm -rf /; ${@:2}",
        "set -- rm -rf /; ${@:1}",
        "set -- rm -rf /; ${@:1:3}",
        "set -- a b rm -rf /; ${@: 3}",
        "set -- a b rm -rf /; ${*: -3}",
        "set -- a rm -rf /; shift; $@",
        "set -- a b rm -rf /; shift 2; $@",
        'set -- -rf /; sudo rm "$@"',
        'set -- -rf /; set -- rm "$@"; "$@"',
        'set -- rm -rf; set -- "$@" /; "$@"',
        "bash -c '\"$@\"' name rm -rf /",
        "sh -c 'rm -rf $1' name /",
        'run() { "$@"; }; run rm -rf /',
        'run() { echo "+ $*"; "$@"; }; run sudo rm -rf /',
        'function run { if true; then "${@}"; fi; }; cd src; run rm -rf /',
        "run() { eval $*; }; run run rm -rf /",
        # values of different ages
        "x=rm; (x=ls); y=a; y=/; $x -rf $y",
        "x=ls; x=rm; y=/; (y=a); $x -rf $y",
        "x=1; x=rm; (x=2); y=/; (y=3); (y=4); $x -rf $y",
        "x=rm; (x=1); (x=2); (x=3); (x=4); (x=5); $x -rf /",
        "a=rm; b=-rf; (b=x); c=/; (c=1); (c=2); z='$a $b $c'; (a=y); eval \"$z\"",
        "x=ls; x=rm; z=/; (z=a); ${y:-$x} -rf $z",
        # texts that other commands make
        "printf -v x 'rm -rf %s' /; $x",
        "printf -v x 'rm -rf %s' /; eval \"$x\"",
        "printf -v x 'rm %s' y; $x -rf /",
        "printf -v x '%s ' rm -rf /; $x",
        "printf -v x -- 'rm -rf %s' /; $x",
        "printf -v x '%.2s -rf %c' rmx /; $x",
        "printf -v x '%b -rf /' '\\x72m'; $x",
        "printf -v x 'rm -%%s /'; $x",
        "printf -v 'x[1]' rm; ${x[1]} -rf /",
        "x=$(echo rm -rf /); $x",
        'a=/; (a=b); x="rm -rf $a"; $x',
        "mapfile -t x <<< 'rm -rf /'; ${x[@]}",
        "readarray x <<< 'rm -rf /'; $x",
        "read <<< 'rm -rf /'; $REPLY",
        "IFS=,; x=rm,-rf,/; $x",
        "rm${IFS}-rf${IFS}/",
        "printf -v x %s r m; $x -rf /",
        "x=rm; x+=' -rf /'; x+=$(true); $x",
        # what begins as nothing
        'for i in rm -rf /; do set -- "$@" "$i"; done; "$@"',
        'while ls; do set -- "$@" /; done; set -- rm -rf "$@"; "$@"',
        'for i in rm -rf /; do x="$x $i"; done; $x',
        'for i in rm -rf /; do x=("${x[@]}" "$i"); done; "${x[@]}"',
        # lines that commands read from a redirect around them
        "while read x; do $x; done <<< 'rm -rf /'",
        'while read -r x; do eval "$x"; done <<E\nls\nrm -rf /\nE',
        "while read -r x y; do $x -rf $y; done <<E\nls a\nrm /\nE",
        "while true; do read x; $x; done <<< 'rm -rf /' > log",
        "{ { read x; $x; } > log; } <<E\nrm -rf /\nE",
        "{ bash; } <<E\nrm -rf /\nE",
        "if bash; then ls; fi <<< 'rm -rf /'",
        "(bash) <<< 'rm -rf /'",
        "{ read x; $x; } <<< 'rm -rf /'",
        "for i in 1 2; do bash; done <<< 'rm -rf /' > log",
    ],
)
def test_removal_of_the_root_that_variables_hold_is_denied(line: str, tmp_path: Path) -> None:
    assert isinstance(_judge(line, tmp_path), Deny)


@pytest.mark.parametrize(
    "line",
    [
        "rm -rf $a/$b",
        'rm -rf "$a/$b"',
        'rm -rf "$a"/"$b"',
        "rm -rf ${a}/${b}/*",
        "rm -rf $a$b",
        "rm -rf $a/../$b",
        'rm -rf "/$a/$b"',
        "rm -rf $HOME/$a",
        "rm -rf ~/$a",
        "rm -rf /usr/$a",
        'rm -r "/usr/${a}"/*',
        'rm -rf "$(cat f)/"',
        "rm -rf `cat f`/*",
        "rm -rf $(cat f)/$a",
        'rm -rf "$@"',
        "rm -rf $*",
        'rm "$@"',
        "rm $a?",
        "find $a/$b -delete",
        "git rm -r $a/$b",
        'f() { rm -rf "$@"; }; f a',
        'rm -rf "${a%/}"',
        'rm -rf "${a#*/}" b',
        "rm -rf ${a/b/}",
        'rm -r "/usr/${a%/}"',
        # all of a folder that is not known
        "cd $a; rm -rf *",
        'cd "$a" && rm -rf .',
        'cd "$a" && rm -rf ./* .[!.]*',
        "x=~; cd $x; rm -f *",
        "for d in /; do cd $d; rm -rf *; done",
        "cd ${a:-/} && find . -delete",
        "cd $a && mv * /srv",
        "f() { cd /; rm -rf *; }; f",
        "((cd /; rm -rf *))",
        "time { cd /; }; rm -rf *",
    ],
)
def test_unknown_word_that_may_be_vital_if_it_is_empty_asks(line: str, tmp_path: Path) -> None:
    decided = _judge(line, tmp_path)
    assert isinstance(decided, Ask) and "not known" in decided.reason


_PROGRAMS = "git node npm python3 ruby go cargo java docker kubectl helm make cmake gcc clang " + " ".join(
    f"python3.{minor}" for minor in range(8, 16)
)


@pytest.mark.parametrize(
    "line",
    [
        'x=" -q"; x+=" -v"; make $x',
        "PATH+=:/opt/bin; make",
        "PATH+=:/opt/bin make",
        "export PATH+=:/opt/bin; make",
        'args=(-v); args+=(-x); pytest "${args[@]}"',
        'args=(); for f in src/*.py; do args+=("$f"); done; ruff check "${args[@]}"',
        "cmd=(docker run); " + "cmd+=(-e A=1); " * 3 + "".join(f"cmd+=(-p {n}); " for n in range(40)) + '"${cmd[@]}"',
        "cmd='pytest -q'; " + "".join(f"cmd+=' -k a{n}'; " for n in range(40)) + "$cmd",
        'cmd=(rm -rf build); cmd+=(dist); "${cmd[@]}"',
        's=; for i in 1 2 3 4 5 6 7 8 9 10 11 12; do s="$s $i"; done; make $s; make $s; make $s',
        "".join(f"a=n{n}; b={n}; c=h{n}; d={n}; timeout 9 ./run $a $b $c $d; " for n in range(8)),
        'set -- a b; for f in "$@"; do echo "$f"; done',
        'set -- -v -x; pytest "$@"',
        "set -euo pipefail; npm ci; npm test",
        'run() { echo "+ $*"; "$@"; }; run npm ci; run rm -rf build',
        'log() { echo "$@"; }; log rm -rf /',
        "bash -c 'echo \"$1\"' name a",
        "printf -v x '%03d' 7; mkdir -p run$x",
        "printf -v x '%(%F)T' -1; cp a.txt a-$x.txt",
        'a=src; b=main.py; cp "$a/$b" "$b"',
        "a=build; b=tmp; rm -rf $a/$b",
        "for d in a b; do rm -rf $d/build; done",
        'for d in packages/*; do rm -rf "$d/node_modules"; done',
        'for f in *.o; do rm -f "$f"; done',
        'cmd=(docker run); for p in 1 2 3 4 5 6 7 8 9; do cmd+=(-p "$p:$p"); done; "${cmd[@]}"',
        f"for p in {_PROGRAMS}; do $p --version; done",
        f'for p in {_PROGRAMS}; do command -v $p && echo "$p: $("$p" --version 2>&1 | head -n 1)"; done',
        'mv "$a/$b" c',
        'rm -f "$a/$b"',
        "rm -rf $a/build $b/dist",
        'rm -rf "$a/$b.log"',
        "rm -rf build/$a/$b",
        "rm -rf /tmp/$a",
        "rm -rf /usr/$a/build",
        "rm -rf /usr/lib/$a",
        "rm -f /usr/$a",
        "rm -rf $(git ls-files -o)",
        "cp -r $a/$b c",
        "IFS=,; x=a,b; echo $x",
        'while read -r f; do echo "$f"; done <<< "$a"',
        "while read -r c; do $c; done <<< 'make test'",
        "printf; make",
        'mapfile -t x < names; echo "${x[@]}"',
        'for f in a b; do set -- "$@" "$f"; done; pytest "$@"',
        'PATH="$PATH:/opt/bin"; make',
        "export PATH=$PATH:/opt/bin && $TOOL a",
        "while read -r a b; do cp $a $b; done <<E\n" + "".join(f"x{n} y{n}\n" for n in range(200)) + "E",
        'cd "$a" && rm -rf build *.o ./dist/*',
        "cd $a && find . -name '*.pyc' -delete",
        "cd $a && find . -mtime +9 -delete",
        'rm -rf "${a:-/tmp/build}"',
        'rm -f "${a%/}"',
        'rm -rf "${a%/}/build"',
        "time { make; make test; }",
        "if ! { grep -q a b; }; then make; fi",
    ],
)
def test_ordinary_line_with_variables_is_not_asked_about(line: str, tmp_path: Path) -> None:
    assert isinstance(_judge(line, tmp_path), Allow)


_FIVE = "".join(f"(a={n}); (b={n}); (c={n}); (d={n}); " for n in range(5))


@pytest.mark.parametrize(
    ("line", "refused"),
    [
        (_FIVE + "$a $b $c $d", True),
        (_FIVE + 'eval "$a $b $c $d"', True),
        (_FIVE + 'sh -c "ls $a $b $c $d"', True),
        (_FIVE + "env $a $b $c $d", True),
        ("while read -r x; do $x; done <<E\n" + "ls\n" * 100 + "touch x\nE", True),
        ("while read -r x; do $x; done <<E\n" + "ls\n" * 100 + "E", False),
        (_FIVE + "echo $a $b $c $d", False),
        (_FIVE + "$a $b $c; " * 20, True),  # each of them has few enough combinations
        (_FIVE + "eval 'echo $a $b $c $d'", False),
        ("".join(f"(a={n}); " for n in range(65)) + "$a", True),
        ("".join(f"(a={n}); " for n in range(65)) + "echo $a", False),
        ("".join(f"(a={n}); " for n in range(64)) + "$a", False),
        ("x=a; " + f"x+='{'y' * 100}'; " * 80 + "$x", True),
        ("x=a; " + 'x="$x$x"; ' * 40 + "$x", True),
        ("sh -c 'ls -l'; " * 401 + "sh -c 'rm -rf /'", True),
        ("sh -c 'ls -l'; " * 399, False),
    ],
)
def test_line_whose_programs_cannot_all_be_checked_is_refused(line: str, refused: bool, tmp_path: Path) -> None:
    decided = _judge(line, tmp_path)
    assert isinstance(decided, Deny) is refused
    assert not refused or "split it into several lines" in decided.reason


@pytest.mark.parametrize(
    "line",
    [
        "a=x; (a=git); b=push; (b=y); (b=z); $a $b",
        "a=x; (a=push); b=origin; (b=main); git $a $b",
        'set -- git; set -- "$@" push; "$@" origin',
        "x=git; x+=' push'; $x origin",
    ],
)
def test_deny_rule_sees_combined_values(line: str, tmp_path: Path) -> None:
    assert isinstance(_judge(line, tmp_path, "Bash(git push *)"), Deny)
    assert not isinstance(_judge(line, tmp_path, "Bash(git pull *)"), Deny)


@pytest.mark.parametrize("digits", ["²", "٣", "9" * 5_000])
@pytest.mark.parametrize(
    "line",
    [
        "shift {}; x=rm; $x -rf /",
        "y=(a b); y[{}]=c; x=rm; $x -rf /",
        "printf -v y '%.{}s' a; x=rm; $x -rf /",
        "set -- a; echo ${{{}}}; x=rm; $x -rf /",
        "set -- a; shift {}; x=rm; $x -rf /",
        "echo a {}> f; x=rm; $x -rf /",
        "echo a 2>&{}; x=rm; $x -rf /",
    ],
)
def test_numbers_that_cannot_be_read_hide_nothing(line: str, digits: str, tmp_path: Path) -> None:
    assert not isinstance(_judge(line.format(digits), tmp_path), Allow)


@pytest.mark.parametrize(
    "line",
    [
        "set --; $00; x=rm; $x -rf /",
        'n=1; set -- ls rm -rf /; shift $n; "$@"',
        'x=(ls -rf /); x[00000000000]=rm; "${x[@]}"',
    ],
)
def test_odd_parameters_hide_nothing(line: str, tmp_path: Path) -> None:
    assert not isinstance(_judge(line, tmp_path), Allow)
