"""A denied command stays denied however it is spelled, wrapped, nested or buried."""

from pathlib import Path

import pytest
from hypothesis import given, settings, strategies as st

from callwright.core.access import Allow, Ask, Deny
from callwright.policy import judge_command
from callwright.policy.modes import AutoAllow

_SPELLED = [
    "touch x",
    "  touch   x",
    "'touch' x",
    '"touch" x',
    "t'ou'ch x",
    r"\touch x",
    r"t\ouch x",
    "/usr/bin/touch x",
    "/bin/../usr/bin/touch x",
    "TOUCH x",
    "$'touch' x",
    "$'\\x74ouch' x",
]
_WRAPPED = [
    "command touch x",
    "builtin command touch x",
    "env touch x",
    "env -i A=1 touch x",
    "env -S 'touch x'",
    "/usr/bin/env touch x",
    "A=1 touch x",
    "PATH=/tmp touch x",
    "A=1 B=$(id) touch x",
    "timeout 5 touch x",
    "timeout -k 1 5 nice -n 3 touch x",
    "nohup touch x",
    "stdbuf -o0 touch x",
    "time touch x",
    "time -p touch x",
    "! touch x",
    "sudo touch x",
    "sudo -u root -- touch x",
    "doas touch x",
    "setsid touch x",
    "ionice -c 3 touch x",
    "watch touch x",
    "flock lock touch x",
    "exec touch x",
    "busybox touch x",
    "toybox touch x",
    "xargs touch",
    "echo x | xargs touch",
    "echo x | xargs -I{} touch {}",
    "find . -exec touch {} ;",
    "find . -execdir touch {} +",
    "awk 'BEGIN{system(\"touch x\")}'",
    "awk '{print | \"touch x\"}' f",
    "GIT_PAGER='touch x' git log",
    "GIT_SSH_COMMAND='touch x' git fetch",
    "tar -I 'touch x' -tf a",
    "tar --use-compress-program='touch x' -tf a",
    "tar cf a b --checkpoint=1 --checkpoint-action=exec='touch x'",
    "sort --compress-program=touch f",
    "rg --pre touch x",
    "git grep -Otouch x",
    "git difftool -x touch",
    "git -c alias.y='!touch x' y",
    "ssh -o ProxyCommand='touch x' host",
    "script -qc 'touch x' /dev/null",
    "mapfile -C 'touch x' -c 1 < f",
    "vim -c '!touch x'",
    "less '+!touch x' f",
    "man -P 'touch x' ls",
    "/lib64/ld-linux-x86-64.so.2 /usr/bin/touch x",
    "bash -c 'touch x'",
    "bash -lc 'touch x'",
    "sh -c \"bash -c 'touch x'\"",
    "eval touch x",
    "eval 'touch x'",
    'eval "$(echo y)"; touch x',
    "coproc touch x",
    "trap 'touch x' EXIT",
    "nice env timeout 3 sudo touch x",
]
_PLACED = [
    "ls && touch x",
    "ls || touch x",
    "ls; touch x",
    "ls | touch x",
    "ls |& touch x",
    "ls & touch x",
    "ls\ntouch x",
    "ls # comment\ntouch x",
    "(touch x)",
    "{ touch x; }",
    "if true; then touch x; fi",
    "while touch x; do break; done",
    "for i in 1; do touch $i; done",
    "case a in a) touch x;; esac",
    "f() { touch x; }; f",
    "echo $(touch x)",
    'echo "$(touch x)"',
    "echo `touch x`",
    'echo "$(pwd) `echo \\`touch x\\``"',
    "echo $((`echo \\`touch x\\``))",
    "cat <(touch x)",
    "tee >(touch x)",
    "echo ${y:-$(touch x)}",
    "echo $(( $(touch x) ))",
    "a=$(touch x)",
    "[[ $(touch x) ]]",
    "cat <<E\n$(touch x)\nE",
    "bash <<'E'\ntouch x\nE",
    "bash <<< 'touch x'",
    "touch x > /dev/null",
    "> out touch x",
    "touch x 2>&1",
    "touch x <<< y",
    "; ".join(["true"] * 60) + "; touch x",
    " && ".join(["ls"] * 200) + " && touch x",
]
_UNDECIDABLE = [
    "tou$@ch x",
    "{touch,x}",
    "$(echo touch) x",
    "$CMD x",
    "t?uch x",
    "${z}touch x",
    "/usr/bin/t*ch x",
    "echo dG91Y2ggeA== | base64 -d | bash",
    "touch\\\n x",
    "to\\\nuch x",
    "shopt -s expand_aliases\nalias ll='touch x'\nll",
    "touch x &&& ls",
    "touch x '",
]


@pytest.mark.parametrize("lines", [_SPELLED, _WRAPPED, _PLACED], ids=["spelled", "wrapped", "placed"])
def test_denied_command_is_denied_in_every_disguise(tmp_path: Path, lines: list[str]) -> None:
    for line in lines:
        decision = judge_command(
            line, cwd=tmp_path, workspace=tmp_path, mode="bypass", allow=["Bash", "Edit"], deny=["Bash(touch *)"]
        )
        assert isinstance(decision, Deny), line


_WRAPS = [
    "{}",
    "env {}",
    "env -i X=1 {}",
    "sudo -n {}",
    "timeout 3 {}",
    "nice -n 2 {}",
    "command {}",
    "nohup {}",
    "busybox {}",
    "setsid {}",
]
_NESTS = [
    "{}",
    "( {} )",
    "{{ {}; }}",
    "ls; {}",
    "ls && {} || ls",
    "ls | {} | ls",
    "{} & ls",
    "ls\n{}\nls",
    "if {}; then ls; fi",
    "while {}; do break; done",
    "f() {{ {}; }}; f",
    "echo $( {} )",
    'echo "$( {} )"',
    "cat <( {} )",
    "x=$( {} )",
    "cat <<E\n$( {} )\nE",
    "{} > /dev/null 2>&1",
    "for i in a b; do {}; done",
    "case a in a) {};; esac",
    "[[ -n $( {} ) ]]",
]


@given(
    st.sampled_from(["touch x", "'touch' x", 't"ou"ch x', "/usr/bin/touch x", "\\touch x"]),
    st.lists(st.sampled_from(_WRAPS), max_size=3),
    st.sampled_from(["{}", "time {}", "X=1 {}", "! {}"]),
    st.lists(st.sampled_from(_NESTS), max_size=4),
)
@settings(max_examples=100, deadline=None)
def test_disguises_may_be_stacked(command: str, wraps: list[str], front: str, nests: list[str]) -> None:
    for template in (*wraps, front, *nests):
        command = template.format(command)
    decision = judge_command(
        command, cwd="/w", workspace="/w", mode="bypass", allow=["Bash", "Edit", "Read"], deny=["Bash(touch *)"]
    )
    assert isinstance(decision, Deny)


@pytest.mark.parametrize("line", _UNDECIDABLE)
def test_possible_denied_command_is_never_allowed(tmp_path: Path, line: str) -> None:
    for mode, allow in (("default", ["Bash"]), ("auto", []), ("bypass", ["Bash", "Edit"])):
        decision = judge_command(line, cwd=tmp_path, workspace=tmp_path, mode=mode, allow=allow, deny=["Bash(touch *)"])
        assert not isinstance(decision, Allow)


@pytest.mark.parametrize(
    ("rule", "line"),
    [
        ("Bash(sudo *)", "sudo ls"),
        ("Bash(sudo *)", "ls && timeout 5 sudo -u x ls"),
        ("Bash(env *)", "env ls"),
        ("Bash(xargs *)", "ls | xargs cat"),
        ("Bash(bash -c *)", "bash -c ls"),
        ("Bash(npx *)", "npx eslint"),
        ("Bash(LD_PRELOAD=*)", "LD_PRELOAD=x ls"),
    ],
)
def test_denied_wrapper_is_denied_with_any_command(tmp_path: Path, rule: str, line: str) -> None:
    decision = judge_command(line, cwd=tmp_path, workspace=tmp_path, mode="bypass", allow=["Bash"], deny=[rule])
    assert isinstance(decision, Deny)


def test_possible_denied_path_is_never_read_unasked(tmp_path: Path) -> None:
    for line in ("cat $FILE", "cat < $FILE", "cp $FILE x"):
        decision = judge_command(
            line, cwd=tmp_path, workspace=tmp_path, mode="bypass", allow=["Bash", "Read"], deny=["Read(secret)"]
        )
        assert isinstance(decision, Ask)


@pytest.mark.parametrize(
    "line", ["echo touch x", "ls touch", "git log --grep 'touch x'", "cat touch", "echo 'touch x'", "grep touch x"]
)
def test_denied_name_as_an_argument_is_not_denied(tmp_path: Path, line: str) -> None:
    decision = judge_command(line, cwd=tmp_path, workspace=tmp_path, deny=["Bash(touch *)"])
    assert isinstance(decision, Allow)


_READS_SECRET = [
    "cat secret",
    "cat ./secret",
    "cat sub/../secret",
    "cat < secret",
    "head -n 1 secret",
    "cat link",
    "cat s*t",
    "cat -- secret",
    "grep a secret",
    "sed -n 1p secret",
    "cp secret other",
    "mv secret other",
    "cd sub && cat ../secret",
    "bash -c 'cat secret'",
    "echo $(cat secret)",
    "echo $(<secret)",
    "env cat secret",
    "cat $PWD/secret",
    "tail -f secret",
    "wc -l secret",
    "diff secret /dev/null",
    "echo x > secret",
    "echo x >> secret",
    "tee secret",
    "rm secret",
    "cat <secret >/dev/null",
]


@pytest.mark.parametrize("line", _READS_SECRET)
def test_denied_file_is_not_read_through_the_shell(tmp_path: Path, line: str) -> None:
    (tmp_path / "secret").write_text("s")
    (tmp_path / "sub").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "secret")
    for mode in ("default", "bypass"):
        decision = judge_command(
            line, cwd=tmp_path, workspace=tmp_path, mode=mode, allow=["Bash", "Edit", "Read"], deny=["Read(secret)"]
        )
        assert not isinstance(decision, Allow)


@pytest.mark.parametrize(
    "word",
    [
        "~/{.ssh/id_*,x}",
        "{~/.netr*,x}",
        "~/.{netrc,x}",
        "{.e,x}n*",
        "{,.}env",
        ".e{n,x}v",
        "{a,{.e,b}n}*",
        "{.env,{1..300}}",
        "@home/{.netr,x}*",
        "~other/.netr*",
        "~+/.en*",
        "{~,x}/.netr*",
    ],
)
def test_braces_and_other_homes_hide_no_secret(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, word: str) -> None:
    home, workspace = tmp_path / "home", tmp_path / "ws"
    (home / ".ssh").mkdir(parents=True)
    workspace.mkdir()
    for secret in (home / ".ssh/id_rsa", home / ".netrc", workspace / ".env", workspace / "env"):
        secret.write_text("x")
    monkeypatch.setenv("HOME", str(home))
    for line in (f"cat {word}", f"for f in {word}; do cat $f; done", f"grep -h . {word}"):
        decided = judge_command(line.replace("@home", str(home)), cwd=workspace, workspace=workspace)
        assert isinstance(decided, Ask), line


@pytest.mark.parametrize("word", ["{kept/a,x}", "{kept/*,x}", "ke{pt,xy}/a", "{kept,{b,c}}/*", "kep{s..u}/a*"])
@pytest.mark.parametrize("auto_allow", ["proven", "walled"])
def test_braces_hide_no_path_from_a_rule(tmp_path: Path, word: str, auto_allow: AutoAllow) -> None:
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept/a").write_text("x")
    decided = judge_command(
        f"cat {word}", cwd=tmp_path, workspace=tmp_path, deny=["Read(./kept/**)"], auto_allow=auto_allow
    )
    assert not isinstance(decided, Allow)


def test_braces_with_harmless_names_are_free(tmp_path: Path) -> None:
    for line in ("cat {a,b}.txt", "ls src/{x,y}", "head -n 3 file{1..3}.txt", "wc -l {a,b}/*.py", "cat '{a}' x{}"):
        assert isinstance(judge_command(line, cwd=tmp_path, workspace=tmp_path), Allow), line


@pytest.mark.parametrize(
    "line",
    [
        "rg . secret",
        "rg .",
        "diff secret other",
        "sort */k.txt",
        "sort -u ~+/secret/k.txt",
        "jq -R . */*",
        "git diff --no-index /dev/null */k.txt",
        "grep -R . linked",
        "grep -d recurse . .",
        "cat linked/../secret/k.txt",
        "find linked/ -type f -exec cat {} +",
    ],
)
def test_denied_folder_is_not_read_as_a_whole(tmp_path: Path, line: str) -> None:
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret/k.txt").write_text("s")
    (tmp_path / "linked").symlink_to("secret")
    decided = judge_command(line, cwd=tmp_path, workspace=tmp_path, allow=["Bash", "Read"], deny=["Read(secret/**)"])
    assert not isinstance(decided, Allow)
