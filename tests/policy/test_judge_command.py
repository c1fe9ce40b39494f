"""One call decides a shell line: the mode, the rules, the fence and the guards together."""

from pathlib import Path

import pytest
from tests.counting import count_calls

from callwright.core.access import Allow, Ask, Deny, RunCommand
from callwright.policy import ByMode, judge_command, standard_policies
from callwright.policy.dry_run import dry_run_line
from callwright.system.paths import Workspace


def _decide(line: str, root: Path, **options: object) -> type:
    return type(judge_command(line, cwd=root, workspace=root, **options))  # type: ignore[arg-type] - options vary by test


_READS = [
    "ls -la",
    "git status",
    "cat README.md | head -3",
    "grep -rn x . && wc -l a",
    "cd sub && ls",
    "echo hi 2>/dev/null",
]
_WRITES = ["mkdir -p a/b", "touch a", "cp a b", "mv a b", "sed -i s/a/b/ a", "echo hi > a", "echo hi >> sub/a", "tee a"]
_DESTROYS = [
    "rm -rf build",
    "git reset --hard",
    "git push --force",
    "git clean -fdx",
    "unknown-program",
    "python x.py",
    "make",
    "echo x | python",
]


@pytest.mark.parametrize("line", _READS)
def test_reading_runs_in_every_mode(tmp_path: Path, line: str) -> None:
    for mode in ("plan", "default", "auto", "dontAsk", "bypass"):
        assert _decide(line, tmp_path, mode=mode) is Allow


@pytest.mark.parametrize("line", _WRITES)
def test_write_inside_depends_on_the_mode(tmp_path: Path, line: str) -> None:
    expected = {"plan": Deny, "default": Ask, "auto": Allow, "acceptEdits": Allow, "dontAsk": Deny, "bypass": Allow}
    assert {mode: _decide(line, tmp_path, mode=mode) for mode in expected} == expected


@pytest.mark.parametrize("line", ["scp a host:", "git push", "rsync a host:b", "curl -T a https://x.org", "rm a"])
def test_sending_and_deleting_ask_in_auto_mode(tmp_path: Path, line: str) -> None:
    assert _decide(line, tmp_path, mode="auto") is Ask


@pytest.mark.parametrize("line", _DESTROYS)
def test_destructive_and_unknown_depend_on_the_mode(tmp_path: Path, line: str) -> None:
    expected = {"plan": Deny, "default": Ask, "auto": Ask, "dontAsk": Deny, "bypass": Allow}
    assert {mode: _decide(line, tmp_path, mode=mode) for mode in expected} == expected


@pytest.mark.parametrize(
    "line",
    ["touch /etc/x", "cp a ../b", "echo x > ../y", "mkdir ~/z", "mv a /tmp/b", "echo x > $HOME/.x", "cd .. && touch a"],
)
def test_write_outside_asks_in_auto_mode(tmp_path: Path, line: str) -> None:
    root = tmp_path / "root"
    root.mkdir()
    assert _decide(line, root, mode="auto") is Ask


def test_link_out_of_the_workspace_is_outside(tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    (root / "out").symlink_to(tmp_path)
    decision = judge_command("touch out/a", cwd=root, workspace=root, mode="auto")
    assert isinstance(decision, Ask)
    assert str(tmp_path.resolve() / "a") in decision.reason


@pytest.mark.parametrize(
    "line",
    [
        "rm -rf /",
        "rm -rf /*",
        "rm -rf ~",
        "rm -r $HOME",
        "sudo rm -rf /usr",
        "cd / && rm -rf etc",
        "for x in ls rm; do $x -rf /; done",
        "x=ls; x=rm; $x -rf /",
    ],
)
def test_machine_destruction_is_always_denied(tmp_path: Path, line: str) -> None:
    for mode in ("default", "auto", "bypass"):
        assert _decide(line, tmp_path, mode=mode, allow=["Bash", "Bash(rm *)", f"Bash({line})", "Edit"]) is Deny


@pytest.mark.parametrize(
    "line",
    [":(){ :|:& };:", "dd if=/dev/zero of=/dev/sda", "mkfs.ext4 /dev/sda1", "echo x > /dev/sda", "chmod -R 777 /"],
)
def test_fork_bombs_and_raw_devices_are_always_denied(tmp_path: Path, line: str) -> None:
    for mode in ("default", "auto", "bypass"):
        assert _decide(line, tmp_path, mode=mode, allow=["Bash", "Edit"]) is Deny


@pytest.mark.parametrize("line", ["rm -rf .", "rm -rf *", "rm -rf ./*", "cd .. && rm -rf *", 'rm -rf "$PWD"'])
def test_removing_the_workspace_asks(tmp_path: Path, line: str) -> None:
    for mode in ("default", "auto", "bypass"):
        assert _decide(line, tmp_path, mode=mode, allow=["Bash", "Bash(rm *)"]) is not Allow


def test_no_mode_runs_what_too_much_text_of_variables_hides(tmp_path: Path) -> None:
    filler = f"p='{'y ' * 20_000}'; d=': {'$p' * 10}'; "
    lines = [f"{filler}a='rm -rf /'; eval \"$d; $a\"", f"{filler}a='git push'; eval \"$d; $a\""]
    lines.append(f'p={"y" * 5_000}; q="{"$p" * 21}"; b=(1); for x in rm; do $x -rf /; done')
    for line in lines:
        for mode in ("default", "auto", "bypass", "dontAsk", "plan"):
            assert _decide(line, tmp_path, mode=mode, allow=["Bash"]) is Deny
            assert _decide(line, tmp_path, mode=mode, deny=["Bash(git push *)"]) is Deny


def test_removing_the_current_folder_asks(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    for line in ("rm -rf *", "rm -rf .", "rm -rf ../sub"):
        decision = judge_command(line, cwd=tmp_path / "sub", workspace=tmp_path, mode="bypass", allow=["Bash"])
        assert isinstance(decision, Ask)


def test_find_delete_with_tests_is_an_ordinary_ask(tmp_path: Path) -> None:
    assert _decide("find . -name '*.pyc' -delete", tmp_path, mode="bypass") is Allow
    assert _decide("find . -delete", tmp_path, mode="bypass") is Ask
    assert _decide("find / -delete", tmp_path, mode="bypass") is Deny


@pytest.mark.parametrize(("line", "expected"), [("rm -rf $X", Ask), ("rm -rf ${X}/", Deny), ("rm -rf build/$X", Allow)])
def test_removing_a_bare_variable_asks(tmp_path: Path, line: str, expected: type) -> None:
    assert _decide(line, tmp_path, mode="bypass", allow=["Bash"]) is expected


_SECRETS = [
    "cat ~/.ssh/id_rsa",
    "cat $HOME/.ssh/id_rsa",
    'cat "$HOME"/.ssh/id_rsa',
    "cp ~/.ssh/id_rsa x",
    "cat < ~/.ssh/id_rsa",
    "base64 ~/.aws/credentials",
    "grep . .env",
    "head -1 .env.local",
    "tar c ~/.gnupg",
    "cd ~/.ssh && cat id_rsa",
    "echo $(cat ~/.netrc)",
    "cat /etc/shadow",
    "grep -r '' ~/.aws",
    "openssl rsa -in ~/.ssh/id_rsa",
    "git diff --no-index ~/.ssh/id_rsa /dev/null",
    "for x in .env; do a=(1); cat $x; done",
    "for x in .env; do . ./a; cat $x; done",
]


@pytest.mark.parametrize("line", _SECRETS)
def test_secrets_are_not_read_through_the_shell(tmp_path: Path, line: str) -> None:
    for mode in ("default", "auto", "bypass"):
        assert _decide(line, tmp_path, mode=mode, allow=["Bash", "Read", "Bash(cat *)"]) is Ask


@pytest.mark.parametrize(
    "line", ["echo x > .git/hooks/pre-commit", "cd .git && echo x > config", "touch .bashrc", "cp a .npmrc"]
)
def test_protected_paths_are_not_written_through_the_shell(tmp_path: Path, line: str) -> None:
    assert _decide(line, tmp_path, mode="auto", allow=["Bash(cp *)", "Bash(touch *)", "Edit"]) is Ask
    assert _decide(line, tmp_path, mode="bypass") is Allow


def test_every_command_of_a_line_must_be_allowed(tmp_path: Path) -> None:
    rules = ["Bash(npm run *)", "Bash(make)"]
    assert _decide("npm run build && make", tmp_path, allow=rules) is Allow
    assert _decide("npm run build && ls", tmp_path, allow=rules) is Allow
    assert _decide("npm run build && other", tmp_path, allow=rules) is Ask
    assert _decide("make; make; other", tmp_path, allow=rules) is Ask


def test_command_rule_never_allows_a_redirect(tmp_path: Path) -> None:
    assert _decide("npm run build > log", tmp_path, allow=["Bash(npm run *)"]) is Ask
    assert _decide("npm run build > log", tmp_path, allow=["Bash"]) is Ask
    assert _decide("npm run build > log", tmp_path, allow=["Bash(npm run *)", "Edit(log)"]) is Allow
    assert _decide("npm run build > /etc/log", tmp_path, mode="auto", allow=["Bash(npm run *)"]) is Ask
    assert _decide("npm run build 2>/dev/null", tmp_path, allow=["Bash(npm run *)"]) is Allow


def test_edit_rule_allows_the_redirect_of_a_read(tmp_path: Path) -> None:
    assert _decide("echo hi > src/a", tmp_path, allow=["Edit(src/**)"]) is Allow
    assert _decide("echo hi > lib/a", tmp_path, allow=["Edit(src/**)"]) is Ask
    assert _decide("touch src/a > src/b", tmp_path, allow=["Edit(src/**)"]) is Ask
    assert _decide("> src/a", tmp_path, allow=["Edit(src/**)"]) is Allow
    assert _decide("echo hi > src/a", tmp_path, mode="plan", allow=["Edit(src/**)"]) is Deny


def test_allowed_command_may_write_inside(tmp_path: Path) -> None:
    assert _decide("cp a b", tmp_path, allow=["Bash(cp *)"]) is Allow
    assert _decide("cp a b 2>/dev/null", tmp_path, allow=["Bash(cp *)"]) is Allow
    assert _decide("cp a b > c", tmp_path, allow=["Bash(cp *)"]) is Ask
    assert _decide("cp a /etc/b", tmp_path, allow=["Bash(cp *)"]) is Ask


@pytest.mark.parametrize(
    "line",
    ["timeout 5 build-it", "time -p build-it", "nice -n 5 build-it", "LANG=C build-it", "NODE_ENV=test build-it"],
)
def test_allow_rule_applies_through_transparent_wrappers(tmp_path: Path, line: str) -> None:
    assert _decide(line, tmp_path, allow=["Bash(build-it *)"]) is Allow


@pytest.mark.parametrize(
    "line",
    [
        "sudo build-it",
        "env build-it",
        "LD_PRELOAD=./e.so build-it",
        "PATH=. build-it",
        "BUILDFLAGS=x build-it",
        "watch build-it",
        "xargs build-it",
        "find . -exec build-it {} ;",
        "bash -c build-it",
        "./build-it",
        "/tmp/build-it",
        "build-it $(id)",
        "build-it $X",
        "build-it & other",
        "build-it\nother",
        "build-it <(other)",
        "/usr/bin/time -o /etc/cron.d/x build-it",
        "/usr/bin/time --output=.bashrc build-it",
        "command time -ao .git/config build-it",
        "nice time -f text -o .bashrc build-it",
        "timeout --unknown 5 build-it",
    ],
)
def test_allow_rule_does_not_apply_through_launchers(tmp_path: Path, line: str) -> None:
    assert _decide(line, tmp_path, allow=["Bash(build-it *)", "Bash(build-it)"]) is Ask


@pytest.mark.parametrize(
    ("rule", "line"),
    [
        ("Bash(env *)", "env rm x"),
        ("Bash(watch *)", "watch ls"),
        ("Bash(xargs *)", "xargs rm"),
        ("Bash(find *)", "find . -exec rm {} ;"),
        ("Bash(find *)", "find . -delete"),
        ("Bash(bash *)", "bash -c 'rm x'"),
        ("Bash(npx *)", "npx anything"),
        ("Bash(sudo *)", "sudo rm x"),
        ("Bash(git *)", "git -c core.pager=x log"),
        ("Bash(git *)", "git --exec-path=/tmp/x status"),
        ("Bash(git *)", "git ls-remote --upload-pa=x ."),
        ("Bash(git *)", "git config alias.q '!x'"),
        ("Bash(git log *)", "git log --output=x"),
        ("Bash(sort *)", "sort --compress-prog x y"),
        ("Bash(sort *)", "nice sort --compress-program=x y"),
        ("Bash(rg *)", "rg --pre=sh y"),
        ("Bash(awk *)", "awk 'BEGIN{system(1)}'"),
        ("Bash(tar *)", "tar xf a --to-command=sh"),
        ("Bash(tar *)", "tar xf a -Ish"),
        ("Bash(python *)", "python -c x"),
        ("Bash(node *)", "node --eval=x"),
        ("Bash(npm *)", "npm exec x"),
        ("Bash(npm *)", "npm --loglevel silent config set a b"),
        ("Bash(git submodule *)", "git submodule foreach x"),
        ("Bash(curl *)", "curl -d @a https://example.com"),
        ("Bash(R *)", "R --no-save -e 'system(1)'"),
        ("Bash(Rscript *)", "Rscript -e 'system(1)'"),
        ("Bash(rscript *)", "rscript -e 'system(1)'"),
        ("Bash(ip *)", "ip netns exec a x"),
        ("Bash(ip *)", "ip -b x"),
        ("Bash(ip *)", "ip -4 netns e a x"),
        ("Bash(ip *)", "ip vrf exec a x"),
        ("Bash(helm *)", "helm plugin install x"),
        ("Bash(helm *)", "helm --debug plugin install x"),
        ("Bash(ghc *)", "ghc -e main x.hs"),
        ("Bash(ghc *)", "ghc -c -F -pgmF./x a.hs"),
        ("Bash(rustup *)", "rustup run stable x"),
        ("Bash(sshpass *)", "sshpass -p a x"),
        ("Bash(pip *)", "pip config --editor x edit"),
        ("Bash(rpm *)", "rpm --eval '%(x)'"),
        ("Bash(hg *)", "hg --config alias.a='!x' a"),
        ("Bash(gh *)", "gh alias set a '!x'"),
        ("Bash(brew *)", "brew ruby -e x"),
        ("Bash(helm *)", "helm template a --post-renderer x"),
        ("Bash(openssl *)", "openssl req -engine ./x.so"),
        ("Bash(pandoc *)", "pandoc -F x a.md"),
        ("Bash(pandoc *)", "pandoc -t x.lua a.md"),
        ("Bash(pdflatex *)", "pdflatex -shell-esc a.tex"),
        ("Bash(latexmk *)", "latexmk -pdflatex='x #' a.tex"),
        ("Bash(exiftool *)", "exiftool -if x a.jpg"),
        ("Bash(mvn *)", "mvn exec:exec -Dexec.executable=x"),
        ("Bash(yt-dlp *)", "yt-dlp --exec x https://example.com/"),
    ],
)
def test_wildcard_never_chooses_the_program(tmp_path: Path, rule: str, line: str) -> None:
    assert _decide(line, tmp_path, allow=[rule]) is Ask


def test_exact_rule_covers_a_launched_program(tmp_path: Path) -> None:
    assert _decide("watch date -u", tmp_path, allow=["Bash(watch date -u)"]) is Allow
    assert _decide("npx eslint src", tmp_path, allow=["Bash(npx eslint *)"]) is Allow


@pytest.mark.parametrize(
    ("rule", "line", "expected"),
    [
        ("Bash(git *)", "git commit -m x", Allow),
        ("Bash(git *)", "nohup git reset --hard", Ask),
        ("Bash(git add *)", "git add config hook", Allow),
        ("Bash(npm run *)", "npm run x", Allow),
        ("Bash(npm *)", "npm run config", Allow),
        ("Bash(pip install *)", "pip install config", Allow),
        ("Bash(helm *)", "helm upgrade plugin x", Allow),
        ("Bash(ip *)", "ip a show dev e", Allow),
        ("Bash(ghc *)", "ghc -c -prof x.hs", Allow),
        ("Bash(latexmk *)", "latexmk -pdf -lualatex a.tex", Allow),
        ("Bash(pandoc *)", "pandoc --pdf-engine=xelatex -o a.pdf a.md", Allow),
        ("Bash(git -c a=b *)", "git -c a=b commit", Allow),
        ("Bash(python *)", "python x.py", Allow),
        ("Bash(node scripts/*)", "node scripts/x.js", Allow),
        ("Bash(node *)", "node build.js .env", Allow),
        ("Bash(node scripts/*)", "node scripts/../../x.js", Ask),
        ("Bash(sed *)", "sed -i s/a/b/ f", Allow),
        ("Bash(git *)", "git reset --hard", Ask),
        ("Bash(git *)", "git push --force", Ask),
        ("Bash(git push *)", "git push --force", Ask),
        ("Bash(git push --force *)", "git push --force origin", Allow),
        ("Bash(git reset --hard *)", "git reset --hard HEAD", Allow),
        ("Bash(rm *)", "rm -rf build", Allow),
    ],
)
def test_wildcard_never_adds_destruction(tmp_path: Path, rule: str, line: str, expected: type) -> None:
    assert _decide(line, tmp_path, allow=[rule]) is expected


def test_hard_link_is_another_name_to_write_to_its_source(tmp_path: Path) -> None:
    assert _decide("ln ../notes.txt x", tmp_path, mode="auto") is Ask
    assert _decide("ln -s ../notes.txt x", tmp_path, mode="auto") is Allow
    assert _decide("ln notes.txt x", tmp_path, mode="auto") is Allow
    assert _decide("ln notes.txt x", tmp_path, mode="auto", deny=["Edit(notes.txt)"]) is Deny


def test_ask_rule_beats_allow_also_through_wrappers(tmp_path: Path) -> None:
    rules = {"allow": ["Bash(git *)"], "ask": ["Bash(git push *)"]}
    assert _decide("git commit -m x", tmp_path, **rules) is Allow
    assert _decide("git push", tmp_path, **rules) is Ask
    assert _decide("ls && timeout 5 git push", tmp_path, **rules) is Ask
    assert _decide("ls", tmp_path, ask=["Bash(ls *)"]) is Ask


def test_shell_reads_outside_follow_the_workspace(tmp_path: Path) -> None:
    assert _decide("cat /etc/hosts", tmp_path) is Allow
    assert _decide("cat /etc/hosts", tmp_path, reads="inside") is Ask
    assert _decide("cat /etc/hosts", tmp_path, reads="inside", allow=["Read(//etc/hosts)"]) is Allow
    assert _decide("cat /etc/hosts", tmp_path, reads="inside", allow=["Bash(//etc/hosts)", "Edit(//etc/hosts)"]) is Ask


def test_network_read_asks_unless_allowed(tmp_path: Path) -> None:
    assert _decide("curl https://example.com/", tmp_path) is Ask
    assert _decide("curl https://example.com/", tmp_path, network_reads="allow") is Allow
    assert _decide("curl -d @a https://example.com/", tmp_path, network_reads="allow") is Ask
    assert _decide("git pull", tmp_path, mode="auto", network_reads="allow") is Ask


def test_sandboxed_auto_runs_unknown_but_asks_destructive(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path, reads="anywhere", outside="ask")
    policies = standard_policies(workspace, by_mode=ByMode("auto", sandboxed=True))

    def decided(line: str) -> type:
        return type(policies.decide(RunCommand(line, str(tmp_path)), dry_run_line(line)))

    assert decided("unknown-program --flag") is Allow
    assert decided("for i in 1 2; do unknown $i; done") is Allow
    assert decided("rm -rf build") is Ask
    assert decided("git reset --hard") is Ask
    assert decided("unknown; git clean -fdx") is Ask
    assert decided("unknown > /etc/x") is Ask
    assert decided("cat ~/.ssh/id_rsa") is Ask


def test_reason_names_the_command_and_its_target(tmp_path: Path) -> None:
    decision = judge_command("ls && rm -rf build", cwd=tmp_path, workspace=tmp_path)
    assert isinstance(decision, Ask)
    assert "rm -rf build" in decision.reason
    assert decision.source == "mode default"


@pytest.mark.parametrize(
    "line", ["", "   ", "\0", "ls \0", "\udcff", "(" * 500, "$(" * 300, "a" * 100_000, "ls\r\nrm x", "\u202els"]
)
def test_no_line_raises(tmp_path: Path, line: str) -> None:
    for mode in ("default", "bypass"):
        judge_command(line, cwd=tmp_path, workspace=tmp_path, mode=mode, deny=["Bash(rm *)"], allow=["Bash(ls *)"])


@pytest.mark.parametrize("line", ["ls '", "$(" * 300, "ls && (", "if true; then ls"])
def test_unparsed_line_is_never_allowed_unasked(tmp_path: Path, line: str) -> None:
    assert _decide(line, tmp_path, allow=["Bash(ls *)"]) is Ask
    assert _decide(line, tmp_path, allow=["Bash(*)"]) is Ask
    assert _decide(line, tmp_path, mode="bypass", deny=["Bash(rm *)"]) is Ask
    assert _decide(line, tmp_path, mode="plan") is Deny


def test_rule_for_every_command_covers_those_that_are_not_known(tmp_path: Path) -> None:
    assert _decide("frobnicate $X | other", tmp_path, allow=["Bash(*)"]) is Allow
    assert _decide("touch x", tmp_path, allow=["Bash(*)"]) is Allow
    assert _decide("touch $X/y", tmp_path, allow=["Bash(*)"]) is Ask


@pytest.mark.parametrize(
    "line",
    [
        "tar czf x.tgz src",
        "tar -cf x.tar --exclude='*.pyc' -C src main.py",
        "rsync -av --exclude=x src/ copy/",
        "split -l 100 notes.txt piece",
        "csplit -s notes.txt 2",
        "cp -b notes.txt README",
        "git worktree add tree",
    ],
)
def test_plain_writers_run_unasked_in_auto_mode(tmp_path: Path, line: str) -> None:
    decision = judge_command(line, cwd=tmp_path, workspace=tmp_path, mode="auto")
    assert isinstance(decision, Allow), decision


@pytest.mark.parametrize(
    "line",
    [
        "curl --url https://bad.example/x",
        "curl --url=https://bad.example/x",
        "curl -s https://a.example --url bad.example",
        "curl -x http://bad.example:80 https://a.example",
        "curl -xbad.example https://a.example",
        "curl --proxy=bad.example https://a.example",
        "curl --socks5-hostname bad.example:1080 https://a.example",
        "curl --connect-to ::bad.example:443 https://a.example",
        "curl --connect-to a.example:443:bad.example:443 https://a.example",
        "curl --resolve a.example:443:192.0.2.1 https://a.example",
        "curl --resolve a.example:443:192.0.2.9,192.0.2.1 https://a.example",
    ],
)
def test_denied_host_in_an_option_of_curl_is_denied(tmp_path: Path, line: str) -> None:
    deny = ["WebFetch(domain:bad.example)", "WebFetch(domain:192.0.2.1)"]
    for mode in ("auto", "bypass"):
        decision = judge_command(line, cwd=tmp_path, workspace=tmp_path, mode=mode, deny=deny, network_reads="allow")
        assert isinstance(decision, Deny), (mode, decision)


@pytest.mark.parametrize("cwd", [".", "", "../project"])
def test_relative_folder_is_that_of_the_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cwd: str) -> None:
    project = tmp_path / "project"
    (project / "private").mkdir(parents=True)
    (project / ".env").write_text("KEY=1")
    (project / "link").symlink_to(".env")
    monkeypatch.chdir(project)
    deny = [f"Read(/{project}/private/**)"]
    assert isinstance(judge_command("cat private/a", cwd=cwd, workspace=".", deny=deny), Deny)
    for line in ("cat link", "cat .e*", "grep -r KEY ."):
        assert isinstance(judge_command(line, cwd=cwd, workspace="."), Ask), line
    assert isinstance(judge_command("touch a", cwd=cwd, workspace=".", mode="auto"), Allow)
    named = RunCommand("cat link", cwd)
    policies = standard_policies(Workspace("."), by_mode=ByMode("default"))
    assert isinstance(policies.decide(named, dry_run_line(named.line)), Ask)


def test_line_is_judged_also_where_the_folder_of_the_process_is_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    named = RunCommand("touch a", ".")
    policies = standard_policies(tmp_path, mode="auto")
    assert isinstance(policies.decide(named, dry_run_line(named.line)), Deny)


@pytest.mark.parametrize(
    "line",
    [
        "touch {}",
        "chmod -R 644 {}",
        "rsync -a {} out/",
        "rsync -a --delete {} out/",
        "find {} -delete",
        "find {} -name '*.pyc' -delete",
    ],
)
def test_line_with_many_files_is_judged_in_linear_time(tmp_path: Path, line: str) -> None:
    def work(files: int) -> int:
        whole = line.format(" ".join(f"a{files}/{number}" for number in range(files)))
        return count_calls(lambda: judge_command(whole, cwd=tmp_path, workspace=tmp_path))

    work(10)  # loads what is imported late
    assert work(800) < 12 * work(100)
