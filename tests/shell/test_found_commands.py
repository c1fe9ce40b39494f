"""Deny rules must see every command, in whatever construct, and what it would access."""

import pytest

from callwright.core.access import DeletePath, Reach, ReadPath, WritePath
from callwright.shell import SimpleCommand, Verdict, analyze
from callwright.shell.findings import MAX_FILLED_CHARS
from callwright.shell.words import home_folder

_HIDING_TOUCH = [
    "touch x",
    "ls && touch x",
    "ls & touch x",
    "ls\ntouch x",
    "(touch x)",
    "{ touch x; }",
    "! touch x",
    "time touch x",
    "coproc touch x",
    "if a; then touch x; fi",
    "for i in a; do touch x; done",
    "while a; do touch x; done",
    "case a in a) touch x;; esac",
    "f() { touch x; }",
    "echo $(touch x)",
    'echo "a $(touch x) b"',
    "echo `touch x`",
    "cat <(touch x)",
    "cat <<E\n$(touch x)\nE",
    "cat <<E\n`touch x`\nE",
    "sh <<E\ntouch x\nE",
    "sh <<< 'touch x'",
    "b=y; bc=touch; $bc x",
    "b='$a x'; a=touch; eval $b",
    "a=touch; b='$a x'; sh -c \"$b\"",
    "d='$c'; c='$b x'; b='$a'; a=touch; eval $d",
    f"p={'y' * 1_000}; d='{'$p' * 12};$c'; c='$b'; b='touch x'; eval $d",
    "for i in y x; do b=(1); touch $i; done",
    "a=ls; a=touch; $a x",
    "a=$(b); a=touch; $a x",
    "for i in ls; do i=touch; $i x; done",
    "for i in touch; do $i x; done",
    "for i in touch; do $i x; done # \u200b",
    "for i in y touch z; do $i x; done",
    "for i in touch; do b=(1); $i x; done",
    "for i in y 'touch x'; do eval $i; done",
    "cat <<E | sh\ntouch x\nE",
    "echo touch x | sh",
    "printf 'touch x' | bash",
    "echo ${x:=$(touch x)}",
    "echo $(( $(touch x) ))",
    "x=$(touch x)",
    "ls > $(touch x)",
    "> out touch x",
    "touch 2>/dev/null x",
    "env touch x",
    "env A=1 -u B touch x",
    "env -S 'touch x'",
    "command touch x",
    "builtin eval touch x",
    "eval 'touch x'",
    "trap 'touch x' EXIT",
    "exec touch x",
    "nohup touch x",
    "nice -n 5 touch x",
    "timeout -k 1 5 touch x",
    "sudo -u root touch x",
    "sudo env nice touch x",
    "watch -n1 touch x",
    "xargs touch x",
    "xargs -0 -n1 touch x",
    "parallel touch ::: x",
    "parallel ::: 'touch x'",
    "busybox touch x",
    "su -c 'touch x'",
    "find . -exec touch x \\;",
    "find . -exec sh -c 'touch x' \\;",
    "fd -x touch x",
    "bash -c 'touch x'",
    "bash -xec 'touch x'",
    "bash -o pipefail -c 'touch x'",
    'bash -c "bash -c \\"touch x\\""',
    "zsh -c 'touch x'",
    "docker exec -it box touch x",
    "kubectl exec pod -- touch x",
    "uv run touch x",
    "npx touch x",
    "T=touch; $T x",
    "'tou'ch x",
    "$'\\x74ouch' x",
    "t\\ouch x",
    "to\\\nuch x",
    "touch x 'unterminated",
    "ls ) touch x",
    "a | b |& c\ntouch x > y",
    "[ -f a\ntouch x ]",
    "ls 2>/dev/null\ntouch x",
    "| touch x",
    "a | b |& c\ntouch x <<E\n$(d)\nE\n",
    "true && " * 3000 + "touch x",
    "echo " + "$(echo " * 150 + "$(touch x)" + ")" * 150,
]


def _layers(command: SimpleCommand) -> tuple[tuple[str, ...], ...]:
    return (command.words, *command.wrapped)


def test_hidden_commands_are_found() -> None:
    for line in _HIDING_TOUCH:
        layers = [layer for command in analyze(line, "/w").commands for layer in _layers(command)]
        assert any(layer[:2] == ("touch", "x") for layer in layers), line


def test_program_path_does_not_hide_its_name() -> None:
    (command,) = analyze("/usr/bin/touch x", "/w").commands
    assert command.words == ("/usr/bin/touch", "x")
    assert command.wrapped == (("touch", "x"),)


def test_wrappers_are_named_outermost_first() -> None:
    (command,) = analyze("sudo env A=1 timeout 5 touch x", "/w").commands
    assert command.wrappers == ("sudo", "env", "timeout")
    assert command.wrapped[0] == ("sudo", "env", "A=1", "timeout", "5", "touch", "x")
    assert command.words == ("touch", "x")
    assert command.assignments == (("A", "1"),)


def test_inside_names_the_enclosing_construct() -> None:
    inside = {command.words[0]: command.inside for command in analyze("echo $(ls); bash -c pwd", "/w").commands}
    assert inside == {"echo": "", "ls": "command substitution", "pwd": "bash -c"}


CURL_WRITES = (
    "-o --output -c --cookie-jar -D --dump-header --trace --trace-ascii --stderr --libcurl --etag-save --hsts --alt-svc"
    " --ssl-sessions --trace-asc"
).split()
WGET_WRITES = (
    "-O --output-document -o --output-file -a --append-output --save-cookies --hsts-file --warc-file --warc-tempdir"
    " --rejected-log --rejected"
).split()


@pytest.mark.parametrize(
    ("line", "access"),
    [
        ("echo a > x", WritePath("/w/x")),
        ("echo a >| x", WritePath("/w/x")),
        ("echo a &>> x", WritePath("/w/x")),
        ("echo a >& x", WritePath("/w/x")),
        ("> x", WritePath("/w/x")),
        ("cat <<E > x\nE", WritePath("/w/x")),
        ("{ ls; } 2> x", WritePath("/w/x")),
        ("cd a && echo > x", WritePath("/w/a/x")),
        ("cd a & echo > x", WritePath("/w/x")),
        ("(cd a); echo > x", WritePath("/w/x")),
        ("ls | tee x", WritePath("/w/x")),
        ("touch -r a x", WritePath("/w/x")),
        ("cp a b/", WritePath("/w/b")),
        ("cp -t b a", WritePath("/w/b")),
        ("mv a b", DeletePath("/w/a")),
        ("mv a b", WritePath("/w/b")),
        ("rm -rf a", DeletePath("/w/a")),
        ("rm -- -f", DeletePath("/w/-f")),
        ("rmdir a", DeletePath("/w/a")),
        ("mkdir -p a/b", WritePath("/w/a/b")),
        ("ln -s /etc/passwd x", WritePath("/w/x")),
        ("ln /etc/hosts x", WritePath("/etc/hosts")),
        ("link /etc/hosts x", WritePath("/etc/hosts")),
        ("dd if=a of=b", WritePath("/w/b")),
        ("chmod -R 777 a", WritePath("/w/a")),
        ("truncate -s 0 a", WritePath("/w/a")),
        ("sed -i s/a/b/ x", WritePath("/w/x")),
        ("tar xf a.tar -C b", WritePath("/w/b")),
        ("unzip a.zip -d b", WritePath("/w/b")),
        ("curl -o x https://a.example", WritePath("/w/x")),
        *((f"curl {option} x https://a.example", WritePath("/w/x")) for option in CURL_WRITES),
        ("curl -scx https://a.example", WritePath("/w/x")),
        ("curl -Dx https://a.example", WritePath("/w/x")),
        ("curl --cookie-j=x https://a.example", WritePath("/w/x")),
        ("curl -O https://a.example/b/x?y", WritePath("/w/x")),
        ("curl -sSLO https://a.example/x", WritePath("/w/x")),
        ("curl --remote-name-all --output-dir b https://a.example/x", WritePath("/w/b/x")),
        ("curl --output-dir b -o x https://a.example", WritePath("/w/b/x")),
        *((f"wget {option} x https://a.example", WritePath("/w/x")) for option in WGET_WRITES),
        ("wget https://a.example/%78", WritePath("/w/x")),
        ("wget -N https://a.example/x", WritePath("/w/x")),
        ("wget -m https://a.example/", WritePath("/w")),
        ("wget -P b https://a.example/x", WritePath("/w/b/x")),
        ("wget -b -O x https://a.example/", WritePath("/w/wget-log")),
        ("curl -d a https://a.example", Reach("https://a.example")),
        ("sort -o x a", WritePath("/w/x")),
        ("sort -ox a", WritePath("/w/x")),
        ("sort -o=x a", WritePath("/w/x")),
        ("sort -ro x a", WritePath("/w/x")),
        ("sort -rox a", WritePath("/w/x")),
        ("sort --output x a", WritePath("/w/x")),
        ("sort --output=x a", WritePath("/w/x")),
        ("sort --outp=x a", WritePath("/w/x")),
        ("sort --o=x a", WritePath("/w/x")),
        ("gcc -MF x a.c", WritePath("/w/x")),
        ("gcc -ox a.c", WritePath("/w/x")),
        ("go test -coverprofile=x ./...", WritePath("/w/x")),
        ("go test -coverprofile x", WritePath("/w/x")),
        ("sed -nf x a", ReadPath("/w/x")),
        ("sed --file=x a", ReadPath("/w/x")),
        ("git config -f x a.b c", WritePath("/w/x")),
        ("git config --file x a.b c", WritePath("/w/x")),
        ("dd if=a of=~/x", WritePath(f"{home_folder()}/x")),
        ("dd of=y if=~/x", ReadPath(f"{home_folder()}/x")),
        ("bsdtar -cf a.tar -f x b", WritePath("/w/x")),
        ("bsdtar cf a.tar --file=x b", WritePath("/w/x")),
        ("zip a x", WritePath("/w/a.zip")),
        ("zip a.zip y -lf x", WritePath("/w/x")),
        ("zip -rlf x a.zip y", WritePath("/w/x")),
        ("zip -tt 2030-01-01 x y", WritePath("/w/x")),
        ("zip -x a @ x y", WritePath("/w/x")),
        ("zip a y -O=x", WritePath("/w/x")),
        ("rsync a x --timeout 10", WritePath("/w/x")),
        ("rsync -F x b", ReadPath("/w/x")),
        ("rsync -J x b", ReadPath("/w/x")),
        ("rsync --files-from=x . b", ReadPath("/w/x")),
        ("rsync --exclude-from x . b", ReadPath("/w/x")),
        ("find a -delete", DeletePath("/w/a")),
        ("find . -fprint x", WritePath("/w/x")),
        ("xargs rm a", DeletePath("/w/a")),
        ("X=a; rm $X", DeletePath("/w/a")),
    ],
)
def test_writes_list_their_accesses(line: str, access: object) -> None:
    accesses = analyze(line, "/w").accesses
    if isinstance(access, Reach):
        assert any(isinstance(found, Reach) and found.url == access.url for found in accesses)
    else:
        assert access in accesses


@pytest.mark.parametrize("line", ["sort -n x", "sort --reverse x", "gcc -foo x", "gcc -c x", "sort -o /dev/null x"])
def test_other_options_list_no_writes(line: str) -> None:
    assert not [access for access in analyze(line, "/w").accesses if isinstance(access, WritePath)]


@pytest.mark.parametrize(
    "line",
    [
        "rm -rf a",
        "rm -fr a",
        "rm --recursive a",
        "git reset --hard",
        "git clean -fd",
        "git push --force",
        "git push -fu origin x",
        "git checkout -- a",
        "git branch -D a",
        "git stash clear",
        "find . -delete",
        "kill -9 1",
        "shutdown now",
        "mkfs.ext4 /dev/sda1",
        "dd if=a of=/dev/sda",
        "rsync -a --delete a b",
    ],
)
def test_irreversible_commands_are_destructive(line: str) -> None:
    assert analyze(line, "/w").verdict is Verdict.DESTRUCTIVE


@pytest.mark.parametrize(
    "line",
    [
        "zip -lf x a b",
        "zip -x a @ b c",
        "rsync --filter='. x' a b",
        "split --additional-suffix=x a b",
        "bsdtar -cf a -f b c",
        "find . -fprint x -y",
        "rsync --filter 'merge x' a b",
    ],
)
def test_writers_that_use_a_further_file_are_unknown(line: str) -> None:
    assert analyze(line, "/w").verdict is Verdict.UNKNOWN


@pytest.mark.parametrize("line", ["touch a", "rm a", "mkdir a", "cp a b", "git add .", "git commit -m x", "ls > a"])
def test_known_writers_get_the_writes_verdict(line: str) -> None:
    plan = analyze(line, "/w")
    assert (plan.proven, plan.verdict) == (True, Verdict.WRITES)


@pytest.mark.parametrize(
    "line",
    [
        "! ! touch x",
        "time ! touch x",
        "time -p { ls; touch x; }",
        "time { touch x; }",
        "! { touch x; }",
        "! time { touch x\n}",
        "if ! { touch x; }; then ls; fi",
        "ls && ! { touch x; } && ls",
        "! if ls; then touch x; fi",
        "time if ls; then ls; elif touch x; then ls; fi",
        "time if ls; then ls; else touch x; fi",
        "! while touch x; do ls; done",
        "! until ls; do touch x; done",
        "time for i in a; do touch x; done",
        "coproc if touch x; then ls; fi",
    ],
)
def test_commands_that_the_parser_takes_for_operands_are_found(line: str) -> None:
    plan = analyze(line, "/w")
    assert ("touch", "x") in [command.words for command in plan.commands]
    assert plan.verdict is Verdict.UNKNOWN


def test_folder_is_unknown_behind_cd_that_the_parser_takes_for_an_operand() -> None:
    for line in ("time { cd /a; }; touch x", "! { cd /a; }; touch x", "time if cd /a; then ls; fi; touch x"):
        assert analyze(line, "/w").commands[-1].cwd is None
    assert analyze("time { ls a; }; touch x", "/w").commands[-1].cwd == "/w"


@pytest.mark.parametrize(
    "line",
    [
        ":(){ :|:& };:",
        "bomb() { bomb | bomb & }; bomb",
        "dd if=/dev/zero of=/dev/sda",
        "echo a > /dev/sda",
        "cat a > /dev/nvme0n1",
        "mkfs.ext4 /dev/sdb1",
        "wipefs -a /dev/sda",
        "shred /dev/sda",
        "rm -rf /",
        "sudo -Hu root rm -rf /",
        "timeout -vk 5 10 rm -rf /",
        "rm -rf /*",
        "sudo rm -rf -- /",
        'rm -rf "$X"/*',
        "rm -rf $X/",
        "echo $(rm -rf /)",
        "bash -c 'rm -rf /'",
        "echo / | xargs -I{} rm -rf / {}",
    ],
)
def test_dangers_are_reported(line: str) -> None:
    assert analyze(line, "/w").dangers


@pytest.mark.parametrize(
    "line",
    [
        "echo 'rm -rf /'",
        "rm -rf ./build",
        "rm -rf $TMPDIR/x",
        "grep 'rm -rf /' x",
        "cat <<E\nrm -rf /\nE",
        "f() { ls; }; f",
    ],
)
def test_harmless_lookalikes_are_no_danger(line: str) -> None:
    assert not analyze(line, "/w").dangers


_LONG = "y " * 20_000
_OVERFILLED = [
    f"a='{_LONG}'; eval {'$a ' * 50}",
    f"a='{_LONG}'; eval \"{'$a' * 50}\"",
    f"a='{_LONG}'; sh -c \"{'$a;' * 50}\"",
    f"a='{_LONG}'; " + "echo $a; " * 50,
    f"a='{'$b' * 100}'; b='{'$c' * 100}'; c='{'y' * 1_000}'; eval $a",
    f"a={'y' * 4_000} && cat {'$a' * 2_000}",
    f'a={"y" * 4_000} && echo "{"$a" * 2_000}"',
    f"a={'y' * 4_000} && b={'$a' * 2_000} && cat $b",
    f"for a in {'y' * 4_000}; do cat {'$a' * 2_000}; done",
]


@pytest.mark.parametrize("line", _OVERFILLED, ids=range(len(_OVERFILLED)))
def test_variables_that_stand_for_too_much_text_are_not_filled_in(line: str) -> None:
    plan = analyze(line, "/w")
    assert not plan.proven and plan.problem and plan.dangers
    texts = {text for command in plan.commands for layer in _layers(command) for text in layer}
    assert sum(map(len, texts)) < 10 * MAX_FILLED_CHARS


@pytest.mark.parametrize("use", ['cat "$a"', "cat $a"])
def test_variables_that_stand_for_much_text_are_filled_in(use: str) -> None:
    plan = analyze(f"a={'y' * 90} && {' && '.join([use] * 500)}", "/w")
    assert plan.proven and not plan.dangers


def test_unknown_program_with_literal_words_is_proven() -> None:
    plan = analyze("make all", "/w")
    assert (plan.proven, plan.verdict) == (True, Verdict.UNKNOWN)
    assert "make" in plan.reason


@pytest.mark.parametrize(
    "line", ["for f in x y; do grep a $f; done; b=(1); make", "make; for f in x; do ls $f; done; b=(1); make"]
)
def test_last_command_of_a_line_that_is_not_understood_is_last(line: str) -> None:
    """It decides what the exit code of the line means, also where texts of variables add commands."""
    assert analyze(line, "/w").commands[-1].words == ("make",)


def test_line_verdict_is_the_worst_of_its_commands() -> None:
    assert analyze("ls; touch a; rm -rf b", "/w").verdict is Verdict.DESTRUCTIVE
    assert analyze("ls; touch a", "/w").verdict is Verdict.WRITES
    assert analyze("", "/w").verdict is Verdict.READ_ONLY


@pytest.mark.parametrize("line", ["echo $(touch xy", "echo `touch xy", "cat <(touch xy", "echo $(touch xy; ls"])
def test_command_of_an_unclosed_substitution_is_whole(line: str) -> None:
    found = [command.words for command in analyze(line, "/w").commands if command.words[0] == "touch"]
    assert found and set(found) == {("touch", "xy")}


@pytest.mark.parametrize("option", ["-o -", "-o /dev/null", "-b a=b", "--cookie a=b", "-D -"])
def test_response_that_is_only_printed_writes_nothing(option: str) -> None:
    plan = analyze(f"curl -s {option} https://a.example/x", "/w")
    assert plan.verdict is Verdict.READS_NETWORK
    assert not any(isinstance(access, WritePath) for access in plan.accesses)
