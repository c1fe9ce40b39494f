"""A repository that names programs in its own settings is not looked at without asking."""

import os
import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings, strategies as st

from callwright import Allow, Ask, Deny
from callwright.core.access import Decision
from callwright.policy import judge_command
from callwright.policy.git_reads import find_compared_secret, find_unnamed_object
from callwright.policy.repository import find_hook, find_repository_program, parse_git_settings
from callwright.policy.toolchains import find_ruff_fixes, find_rust_program


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    subprocess.run(["git", "init", "--quiet", str(tmp_path)], check=True)
    return tmp_path


def judged(line: str, folder: Path, **options: str) -> Decision:
    return judge_command(line, cwd=folder, workspace=folder, **options)  # type: ignore[arg-type] - modes only


def test_ordinary_repository_is_read_unasked(repository: Path) -> None:
    for line in ("git status", "git diff", "git log -p | head", "git show HEAD"):
        assert isinstance(judged(line, repository), Allow), line


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("diff.external", "touch pwned"),
        ("diff.pdf.textconv", "sh -c x"),
        ("diff.pdf.command", "evil"),
        ("filter.x.clean", "evil"),
        ("filter.x.process", "evil"),
        ("include.path", "../evil"),
        ("includeIf.gitdir:/.path", "../evil"),
    ],
)
def test_program_in_git_settings_makes_reading_ask(repository: Path, setting: str, value: str) -> None:
    subprocess.run(["git", "-C", str(repository), "config", "--local", setting, value], check=True)
    below = repository / "src"
    below.mkdir()
    for folder in (repository, below):
        for mode in ("default", "auto", "bypass"):
            decision = judged("git diff", folder, mode=mode)
            assert isinstance(decision, Ask), (setting, mode)
            assert decision.source == "guard repository"


def test_guard_stops_lines_that_would_run_unasked(repository: Path) -> None:
    subprocess.run(["git", "-C", str(repository), "config", "--local", "filter.x.clean", "evil"], check=True)
    decision = judged("git add .", repository, mode="auto")
    assert isinstance(decision, Ask) and decision.firm and "guard repository" in decision.source
    unknown = judge_command("git frobnicate", cwd=repository, workspace=repository, allow=["Bash(git frobnicate)"])
    assert isinstance(unknown, Allow)  # a line that only a rule lets run is the rule's decision


def test_linked_work_tree_uses_its_repository_settings(repository: Path, tmp_path: Path) -> None:
    run = ["git", "-C", str(repository), "-c", "user.name=a", "-c", "user.email=a@b"]
    subprocess.run([*run, "commit", "--quiet", "--allow-empty", "-m", "x"], check=True)
    tree = tmp_path.parent / f"{tmp_path.name}-tree"
    subprocess.run([*run, "worktree", "add", "--quiet", str(tree)], check=True)
    assert find_repository_program(str(tree)) == ""
    subprocess.run([*run, "config", "diff.external", "evil"], check=True)
    assert "external = evil" in find_repository_program(str(tree))


def test_bare_repository_is_checked(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "--quiet", "--bare", str(tmp_path)], check=True)
    subprocess.run(["git", "-C", str(tmp_path), "config", "diff.external", "evil"], check=True)
    assert isinstance(judged("git log", tmp_path), Ask)


def test_no_program_outside_a_repository(tmp_path: Path) -> None:
    assert find_repository_program(str(tmp_path)) == ""


def _git(folder: Path, *words: str) -> None:
    run = ["git", "-C", str(folder), "-c", "user.name=a", "-c", "user.email=a@b", *words]
    subprocess.run(run, check=True, capture_output=True)


@pytest.mark.parametrize(
    "text",
    [
        "[diff] external = evil\n",
        "[diff]external=evil",
        '[filter "x"] clean = "evil"\n',
        "[core] bare = false\n[core]x=1\n [ diff ]\n",
        "[alias] lfs = !evil\n",
        "[format] pretty = %G?\n",
        '[pretty "x"]\n\tformat = %h\n[pretty] y = "%G?"\n',
        "[core] fsmonitor = ./evil\n",
        '[core]\n\tsshCommand = evil\n[remote "o"]\n\tpromisor = true\n',
        "[core] worktree = ../elsewhere\n",
        '[includeIf "gitdir:/"] path = x\n',
        "[include]\r\n\tpath = x\r\n",
        "[blame] ignoreRevsFile = .env\n",
        '[submodule "x"] update = !evil\n',
        "[gc] recentObjectsHook = evil\n",
        '[remote "o"] url = ext::evil\n',
        "[unknown] key = value\n",
        '[core] pager = "x\ny\n',
        '[diff "x\\"y"] textconv = evil\n',
        '[DIFF "x"] TextConv = evil\n',
        "[diff.x] textconv = evil\n",
        "[diff]\n\texternal = \\\n evil\n",
        '[filter "lfs"] clean = evil\n',
        '[alias "lfs"] command = !evil\n',
        '[branch "main"] mergeOptions = -s evil\n',
        "[commit] gpgSign = true\n",
        '[url "ext::evil "] insteadOf = o\n',
        "[core] sshCommand = evil\n[extensions] partialClone = o\n",
    ],
)
def test_setting_in_any_spelling_makes_reading_ask(repository: Path, text: str) -> None:
    with (repository / ".git/config").open("a") as file:
        file.write(text)
    assert isinstance(judged("git status", repository), Ask)


@pytest.mark.parametrize(
    "text",
    [
        '[remote "o"]\n\turl = https://example.com/x\n\tfetch = +refs/heads/*:refs/remotes/o/*\n',
        '[branch "main"]\n\tremote = o\n\tmerge = refs/heads/main\n\tvscode-merge-base = o/main\n',
        "[user]\n\tname = A # external = x\n[pull]\n\trebase = true\n",
        "[core]\n\thooksPath = .husky/_\n\tfsmonitor = true\n\tsshCommand = ssh -i key\n",
        "[credential]\n\thelper = store\n[alias]\n\tst = status\n\tx = !evil\n",
        '[filter "lfs"]\n\tclean = git-lfs clean -- %f\n\trequired = true\n',
        "[format]\n\tpretty = %h %s\n; external = x\n",
        "[extensions]\n\tworktreeConfig = true\n",
        "[commit]\n\tgpgSign = false\n",
    ],
)
def test_usual_settings_are_read_unasked(repository: Path, text: str) -> None:
    with (repository / ".git/config").open("a") as file:
        file.write(text)
    assert isinstance(judged("git status", repository), Allow)


@pytest.mark.parametrize("line", ["git ls-remote o", "git fetch --dry-run o", "git remote show o"])
def test_connection_settings_count_for_remotes(repository: Path, line: str) -> None:
    assert isinstance(judged(line, repository, network_reads="allow"), Allow)
    _git(repository, "config", "core.sshCommand", "evil")
    assert isinstance(judged(line, repository, network_reads="allow"), Ask)


@pytest.mark.parametrize(
    "line",
    [
        "git -C sub status",
        "cd sub && git diff",
        "(cd sub; git log)",
        "env -C sub git status",
        "/usr/bin/git -C sub diff",
    ],
)
def test_settings_of_the_folder_that_git_enters_count(repository: Path, line: str) -> None:
    sub = repository / "sub"
    subprocess.run(["git", "init", "--quiet", str(sub)], check=True)
    if ";" not in line:  # a failed cd would leave git in the first repository, so the folder is not certain
        assert isinstance(judged(line, repository), Allow)
    _git(sub, "config", "diff.external", "evil")
    assert isinstance(judged(line, repository), Ask)


@pytest.mark.parametrize("version", ["2", "4"])
def test_settings_of_submodules_count(repository: Path, version: str) -> None:
    sub = repository / "deep/sub"
    subprocess.run(["git", "init", "--quiet", str(sub)], check=True)
    _git(sub, "commit", "--quiet", "--allow-empty", "-m", "x")
    _git(repository, "add", "deep/sub")
    assert isinstance(judged("git status", repository), Allow)
    _git(repository, "update-index", "--index-version", version)
    _git(sub, "config", "filter.x.clean", "evil")
    assert isinstance(judged("git status", repository), Ask)


def test_work_tree_of_a_submodule_is_its_own(repository: Path) -> None:
    _git(repository, "config", "core.worktree", "..")
    assert isinstance(judged("git status", repository), Allow)


def test_hook_asks_in_auto_mode_and_a_rule_allows_it(repository: Path) -> None:
    lines = ("git commit -m x", "git --no-pager commit -m x", "git -C . commit -m x")
    assert all(isinstance(judged(line, repository, mode="auto"), Allow) for line in lines)
    hook = repository / ".git/hooks/pre-commit"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\n")
    assert find_hook(str(repository), "commit") == ""  # git runs only executable hooks
    hook.chmod(0o755)
    assert find_hook(str(repository), "commit") == str(hook)
    assert all(isinstance(judged(line, repository, mode="auto"), Ask) for line in lines)
    assert isinstance(judged("git add x", repository, mode="auto"), Allow)
    allowed = judge_command("git commit -m x", cwd=repository, workspace=repository, allow=["Bash(git commit *)"])
    assert isinstance(allowed, Allow)
    hook.unlink()
    _git(repository, "config", "core.hooksPath", "mine")
    (repository / "mine").mkdir()
    (repository / "mine/commit-msg").write_text("#!/bin/sh\n")
    (repository / "mine/commit-msg").chmod(0o755)
    assert isinstance(judged("git commit -m x", repository, mode="auto"), Ask)
    (repository / "mine/commit-msg").unlink()
    with (repository / ".git/config").open("a") as config:
        config.write("# long\n" * 1_000_000)
    with pytest.raises(ValueError, match="too large"):
        find_hook(str(repository), "commit")
    assert isinstance(judged("git commit -m x", repository, mode="auto"), Ask)


@pytest.mark.parametrize(
    ("file", "text", "runs"),
    [
        ("rust-toolchain.toml", '[toolchain]\npath = "./evil"\n', True),
        ("rust-toolchain.toml", '[toolchain]\nchannel = "1.80"\n', False),
        ("rust-toolchain.toml", '[toolchain]\nchannel = "./evil"\n', True),
        ("rust-toolchain.toml", 'toolchain = "stable"\n', True),
        ("rust-toolchain", "stable\n", False),
        ("rust-toolchain", '[toolchain]\npath = "x"\n', True),
        (".cargo/config.toml", '[build]\nrustc = "./evil"\n', True),
        (".cargo/config", '[build]\nrustc-wrapper = "./evil"\n', True),
        (".cargo/config.toml", "[net]\nretry = 3\n", False),
    ],
)
def test_rust_toolchain_in_the_folder_counts(tmp_path: Path, file: str, text: str, runs: bool) -> None:
    below = tmp_path / "a/b"
    below.mkdir(parents=True)
    (tmp_path / file).parent.mkdir(exist_ok=True)
    (tmp_path / file).write_text(text)
    assert bool(find_rust_program(str(below))) is runs
    assert isinstance(judged("cargo tree --locked", below), Ask if runs else Allow)


@pytest.mark.parametrize(
    ("file", "text", "changes"),
    [
        ("ruff.toml", "fix = true\n", True),
        (".ruff.toml", '"fix-only" = true\n', True),
        ("pyproject.toml", "tool.ruff.fix = true\n", True),
        ("pyproject.toml", '[tool.ruff]\nextend = "../other.toml"\n', True),
        ("ruff.toml", "fix = \n", True),
        ("ruff.toml", "fix = false\nline-length = 100\n", False),
        ("pyproject.toml", "[tool.black]\nfix = true\n", False),
    ],
)
def test_ruff_settings_that_fix_files_count(tmp_path: Path, file: str, text: str, changes: bool) -> None:
    below = tmp_path / "a/b"
    below.mkdir(parents=True)
    (tmp_path / file).write_text(text)
    assert bool(find_ruff_fixes(str(below))) is changes
    assert isinstance(judged("ruff check .", below), Ask if changes else Allow)
    assert isinstance(judged("cd a && ruff check .", tmp_path), Ask if changes else Allow)
    assert isinstance(judged("ls", below), Allow)
    ruled = judge_command("ruff check .", cwd=below, workspace=below, allow=["Bash(ruff *)"])
    assert isinstance(ruled, Ask) is changes and (isinstance(ruled, Allow) or ruled.source == "guard project settings")
    assert not isinstance(ruled, Ask) or ruled.firm
    elsewhere = judge_command("cd $X && ruff check .", cwd=below, workspace=below, allow=["Bash"], mode="bypass")
    assert isinstance(elsewhere, Ask) and elsewhere.source == "guard repository"
    assert isinstance(judge_command("cd $X && ls", cwd=below, workspace=below, allow=["Bash"], mode="bypass"), Allow)


def test_nearest_ruff_settings_count(tmp_path: Path) -> None:
    below = tmp_path / "a"
    below.mkdir()
    (tmp_path / "ruff.toml").write_text("fix = true\n")
    (below / "ruff.toml").write_text("line-length = 100\n")
    assert isinstance(judged("ruff check .", below), Allow)
    assert isinstance(judged('cd "$X" && ruff check .', below), Ask)


_PIECES = st.sampled_from(
    [
        "[core]",
        "[diff]",
        '[filter "a b"]',
        '[x "q\\"r"]',
        "[a.b]",
        "\n",
        " ",
        "\t",
        "\r\n",
        "external",
        "bare",
        "a-b",
        "=",
        "= v",
        '"',
        "\\",
        "\\n",
        "\\\n",
        "#",
        ";",
        "x",
        "[",
        "]",
        "true",
        "=1",
        "\\t",
        "é",
    ]
)


@given(st.lists(_PIECES, max_size=14).map("".join))
@settings(max_examples=60, deadline=None)
def test_settings_are_parsed_as_git_parses_them(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    file = tmp_path_factory.getbasetemp() / "settings"
    file.write_text(text, newline="")
    run = subprocess.run(
        ["git", "config", "--file", str(file), "--list", "-z", "--no-includes"], capture_output=True, check=False
    )
    if run.returncode:
        return  # git stops at such a file, so nothing in it takes effect
    theirs = [entry.partition("\n") for entry in run.stdout.decode().split("\0") if entry]
    try:
        ours = list(parse_git_settings(text))
    except ValueError:
        return  # what cannot be parsed is asked about
    names = [".".join(filter(None, (found.section, found.subsection, found.key))) for found in ours]
    assert names == [name for name, _, _ in theirs]
    values = [found.value for found, (_, given, _) in zip(ours, theirs, strict=True) if given]
    # inside a value, git before 2.45 turns every white space into a blank
    assert [value.replace("\t", " ").replace("\r", " ") for value in values] == [
        value.replace("\t", " ").replace("\r", " ") for _, given, value in theirs if given
    ]


def _run_git(folder: Path, *arguments: str) -> str:
    identity = ("-c", "user.name=a", "-c", "user.email=a@b", "-c", "gc.auto=0")
    done = subprocess.run(["git", *identity, *arguments], cwd=folder, check=True, capture_output=True, text=True)
    return done.stdout.strip()


@pytest.mark.parametrize("kind", ["sha1", "sha256"])
def test_kinds_of_objects_are_those_that_git_knows(tmp_path: Path, kind: str) -> None:
    _run_git(tmp_path, "init", "--quiet", f"--object-format={kind}")
    for number in range(6):  # similar contents, which a pack stores as differences
        (tmp_path / f"notes{number}").write_text("".join(f"{line * number}\n" for line in range(300)))
        _run_git(tmp_path, "add", ".")
        _run_git(tmp_path, "commit", "--quiet", "-m", f"step {number}")
    _run_git(tmp_path, "tag", "-a", "v1", "-m", "x")
    listed = ("cat-file", "--batch-all-objects", "--batch-check=%(objectname) %(objecttype) %(deltabase)")
    for packed in (False, True):
        if packed:
            _run_git(tmp_path, "repack", "-adfq", "--depth=50")
        known = [line.split() for line in _run_git(tmp_path, *listed).splitlines()]
        assert {row[1] for row in known} == {"commit", "tree", "blob", "tag"}
        assert packed == any(set(row[2]) != {"0"} for row in known)
        for name, expected, _ in known:
            word = find_unnamed_object(["show", name], str(tmp_path))
            assert (word == name) == (expected == "blob"), (name, expected)
            word = find_unnamed_object(["diff", name[:20]], str(tmp_path))
            assert bool(word) == (expected in ("blob", "tree")), (name, expected)


def test_objects_of_an_alternate_repository_count(tmp_path: Path) -> None:
    _run_git(tmp_path, "init", "--quiet", "first")
    (tmp_path / "first" / ".env").write_text("SECRET=x\n")
    _run_git(tmp_path / "first", "add", ".env")
    _run_git(tmp_path / "first", "commit", "--quiet", "-m", "x")
    _run_git(tmp_path, "clone", "--quiet", "--shared", "first", "second")
    blob = _run_git(tmp_path / "second", "rev-parse", "HEAD:.env")
    assert isinstance(judged(f"git show {blob}", tmp_path / "second"), Ask)


def test_objects_behind_an_index_of_the_first_version_are_asked_about(repository: Path) -> None:
    (repository / ".env").write_text("SECRET=x\n")
    _run_git(repository, "add", ".env")
    _run_git(repository, "commit", "--quiet", "-m", "x")
    _run_git(repository, "-c", "pack.indexVersion=1", "repack", "-adq")
    blob = _run_git(repository, "rev-parse", "HEAD:.env")
    assert isinstance(judged(f"git show {blob}", repository), Ask)


@pytest.mark.parametrize("packed", [False, True])
def test_commits_and_names_are_shown_unasked(repository: Path, packed: bool) -> None:
    (repository / "src").mkdir()
    (repository / "src" / "main.py").write_text("print()\n")
    (repository / ".env").write_text("SECRET=x\n")
    _run_git(repository, "add", "src")
    _run_git(repository, "commit", "--quiet", "-m", "x")
    _run_git(repository, "branch", "decade")
    if packed:
        _run_git(repository, "gc", "--quiet")
    commit = _run_git(repository, "rev-parse", "HEAD")
    tree = _run_git(repository, "rev-parse", "HEAD^{tree}")
    lines = (
        f"git show {commit}",
        f"git show {commit[:7]}",
        f"git diff {commit}..HEAD",
        f"git show {commit}:src/main.py",
    )
    lines += (
        f"git diff {commit[:9]} HEAD -- src",
        f"git cat-file -p {tree}",
        "git show decade",
        "git diff decade HEAD",
    )
    lines += (
        "git diff HEAD .",
        "git diff -- '*/src/*.py'",
        "git diff src",
        "git diff 4b825dc642cb6eb9a060e54bf8d69288fbee4904 HEAD -- src",
    )
    lines += ("git show feed", "git grep print", "git log --oneline -n 1000", "git diff -U2000", "git remote -v")
    for line in lines:
        assert isinstance(judged(line, repository), Allow), line


def test_package_managers_that_run_nothing_of_the_project_stay_unasked(tmp_path: Path) -> None:
    (tmp_path / ".venv").mkdir()
    (tmp_path / "Brewfile").touch()
    (tmp_path / ".pnpmfile.cjs").touch()
    for line in ("uv --version", "uv cache dir", "uv tool list", "poetry about", "pnpm help", "brew --version"):
        assert isinstance(judged(line, tmp_path), Allow), line
    (tmp_path / ".npmrc").write_text("git-tag-version=false\nregistry=https://example.com\nsave-prefix=~\n")
    assert isinstance(judged("npm ls", tmp_path), Allow)
    (tmp_path / "below").mkdir()
    decision = judged("poetry show", tmp_path / "below")
    assert isinstance(decision, Ask) and ".venv" in decision.reason


def _break_repository(how: str, store: Path) -> None:
    """Change a repository's files to what no git writes."""
    objects = store / "objects"
    match how:
        case "alternate with a null byte":
            (objects / "info" / "alternates").write_bytes(b"a\0b\n")
        case "endless alternates":
            for place in range(40):
                (objects / str(place) / "info").mkdir(parents=True)
                (objects / str(place) / "info" / "alternates").write_text(f"../{place + 1}\n../{place}\n" * 20)
            (objects / "info" / "alternates").write_text("0\n")
        case "pipe as index of a pack":
            os.mkfifo(objects / "pack" / "a.idx")
        case "pipe as object":
            (objects / "ab").mkdir()
            os.mkfifo(objects / "ab" / ("cd" * 19))
        case "pipe as index":
            os.mkfifo(store / "index")
        case "pack with the same id many times":
            count = 100_000
            head = b"\xfftOc\0\0\0\2" + bytes(255 * 4) + count.to_bytes(4, "big")
            (objects / "pack" / "a.idx").write_bytes(head + b"\xab\xcd" * 14 * count + bytes(40))
            (objects / "pack" / "a.pack").write_bytes(b"\x10" * 100)
        case _:
            raise AssertionError(how)


@pytest.mark.parametrize(
    "how",
    [
        "alternate with a null byte",
        "endless alternates",
        "pipe as index of a pack",
        "pipe as object",
        "pipe as index",
        "pack with the same id many times",
    ],
)
def test_repository_that_no_git_wrote_is_asked_about(repository: Path, how: str) -> None:
    _break_repository(how, repository / ".git")
    decision = judged("git show abcd", repository, mode="auto")
    assert isinstance(decision, Ask) and decision.firm, decision


def test_link_to_a_repository_that_cannot_be_followed_is_asked_about(tmp_path: Path) -> None:
    (tmp_path / ".git").write_text("gitdir: a\0b")
    for line in ("git status", "git show abcd", "git add a.txt", "git commit -m x"):
        assert isinstance(judged(line, tmp_path, mode="auto"), Ask), line


@pytest.mark.parametrize("line", ["git status", "git show abcd", "git commit -m x", "uv tree", "cargo tree", "npm ls"])
def test_folder_with_a_name_that_is_too_long_gets_a_decision(tmp_path: Path, line: str) -> None:
    decision = judged(f"cd {'a' * 300} && {line}", tmp_path, mode="auto")
    assert isinstance(decision, (Allow, Ask, Deny)), decision  # there is no such folder: nothing would run in it


def test_more_ids_than_are_looked_up_are_asked_about(repository: Path) -> None:
    ids = " ".join(f"{number:08x}" for number in range(250))
    assert isinstance(judged(f"git show {ids}", repository, mode="auto"), Ask)


@pytest.mark.parametrize("inside", [False, True])
@pytest.mark.parametrize("word", ["secre[^x]s", "./[^x]ecrets", "secre[[:alpha:]]s", "sec*/dee*", "s?crets"])
def test_wildcards_of_compared_folders_match_as_in_bash(tmp_path: Path, word: str, inside: bool) -> None:
    (tmp_path / "secrets" / "deep").mkdir(parents=True)
    (tmp_path / "secrets" / "deep" / ".env").write_text("SECRET=x\n")
    (tmp_path / "other").mkdir()
    if inside:
        _run_git(tmp_path, "init", "--quiet")
    line = f"git diff {'--no-index' if inside else ''} {word} other"
    assert isinstance(judged(line, tmp_path, mode="auto"), Ask)


@pytest.mark.parametrize(
    ("word", "known"), [("../o[^x]", False), ("/o[^x]", False), ("~/o[^x]", False), ("o[^x]", True)]
)
def test_wildcards_that_lead_out_of_the_repository_are_not_known(repository: Path, word: str, known: bool) -> None:
    assert find_compared_secret(["diff", word, "x"], str(repository)) == ("" if known else None)


def test_compared_folders_that_are_too_many_are_asked_about(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("callwright.policy.git_reads._MAX_MATCHES", 3)
    for name in ("a1", "a2", "a3", "a4"):
        (tmp_path / name).mkdir()
    assert find_compared_secret(["diff", "--no-index", "a*"], str(tmp_path)) is None
    assert find_compared_secret(["diff", "--no-index", "a1", "a2"], str(tmp_path)) == ""


def _add_hook(folder: Path, name: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text("#!/bin/sh\n")
    (folder / name).chmod(0o755)


@pytest.mark.parametrize(
    ("hook", "line"),
    [
        ("reference-transaction", "git branch foo"),
        ("reference-transaction", "git remote set-head origin main"),
        ("post-index-change", "git reset -q"),
        ("post-index-change", "git mv a b"),
        ("post-index-change", "git sparse-checkout set src"),
        ("post-index-change", "mkdir x && git diff"),
        ("post-index-change", "git diff > out"),
        ("pre-auto-gc", "git commit -m x"),
        ("post-checkout", "git stash branch foo"),
        ("post-checkout", "git bisect start HEAD HEAD~1"),
    ],
)
def test_hooks_that_any_command_runs_ask(repository: Path, hook: str, line: str) -> None:
    _git(repository, "commit", "--quiet", "--allow-empty", "-m", "x")
    assert isinstance(judged(line, repository, mode="auto"), Allow)
    _add_hook(repository / ".git/hooks", hook)
    assert isinstance(judged(line, repository, mode="auto"), Ask)
    assert isinstance(judged("git diff", repository, mode="auto"), Allow)  # runs without hooks


@pytest.mark.parametrize("line", ["git push --dry-run o main", "git push -n o main", "touch x; git push --dry-run o"])
def test_hook_that_a_dry_run_of_push_runs_asks(repository: Path, line: str) -> None:
    for mode in ("default", "auto")[line.startswith("touch") :]:
        assert isinstance(judged(line, repository, mode=mode, network_reads="allow"), Allow)
    _add_hook(repository / ".git/hooks", "pre-push")
    for mode in ("default", "auto"):
        assert isinstance(judged(line, repository, mode=mode, network_reads="allow"), Ask)
    assert isinstance(judged("git ls-remote o", repository, network_reads="allow"), Allow)
    assert isinstance(judged("touch x; git log", repository, mode="auto"), Allow)
    assert isinstance(judged("touch x", repository, mode="auto"), Allow)


def test_only_git_asks_because_of_hooks(repository: Path) -> None:
    _add_hook(repository / ".git/hooks", "reference-transaction")
    assert isinstance(judged("touch x", repository, mode="auto"), Allow)
    assert isinstance(judged("git branch x", repository, mode="auto"), Ask)


@pytest.mark.parametrize("line", ["git grep . HEAD:.config/gh", "git diff @ HEAD:.aws", "git diff {tree}:gh main"])
def test_folders_whose_names_make_their_files_secret_ask(repository: Path, line: str) -> None:
    (repository / ".config/gh").mkdir(parents=True)
    (repository / ".config/gh/hosts.yml").write_text("x")
    _git(repository, "add", ".")
    _git(repository, "commit", "--quiet", "-m", "x")
    find = ["git", "-C", str(repository), "rev-parse", "HEAD", "HEAD:.config"]
    commit, tree = subprocess.run(find, check=True, capture_output=True, text=True).stdout.split()
    for mode in ("default", "bypass"):
        assert isinstance(judged(line.format(tree=tree), repository, mode=mode), Ask)
        assert isinstance(judged(f"git show {tree}:gh/hosts.md", repository, mode=mode), Ask)
    assert isinstance(judged(f"git show {commit}:src/a.py", repository), Allow)
    assert isinstance(judged("git grep . HEAD:src", repository), Allow)
    below = repository / ".config/gh"
    assert isinstance(judge_command("git grep . HEAD:./", cwd=below, workspace=repository), Ask)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("cp a rust-toolchain.toml && cargo tree --locked", Ask),
        ("git checkout other && cargo tree --locked", Ask),
        ("git stash pop; cargo --version", Ask),
        ("cp -r a .venv && uv python find", Ask),
        ("for x in 1 2; do npm ls; mv a b; done", Ask),
        ("cd src || cd lib; go version", Ask),
        ("cargo tree --locked", Allow),
        ("git checkout other && git status", Allow),
        ("sed -i s/a/b/ a.py && ruff check", Allow),
    ],
)
def test_settings_that_the_line_itself_may_change_ask(repository: Path, line: str, expected: type[Decision]) -> None:
    assert isinstance(judged(line, repository, mode="auto"), expected)


def test_hooks_of_a_folder_named_like_a_command_ask(repository: Path) -> None:
    subprocess.run(["git", "init", "--quiet", str(repository / "add")], check=True)
    _add_hook(repository / "add/.git/hooks", "pre-commit")
    assert isinstance(judged("git -C add commit -m x", repository, mode="auto"), Ask)


@pytest.mark.parametrize("value", ["mine", "%(prefix)/../mine", ":(optional)mine"])
def test_folder_of_hooks_of_one_work_tree_counts(repository: Path, value: str) -> None:
    _git(repository, "config", "extensions.worktreeConfig", "true")
    _add_hook(repository / "mine", "pre-commit")
    assert isinstance(judged("git commit -m x", repository, mode="auto"), Allow)
    (repository / ".git/config.worktree").write_text(f"[core]\n\thooksPath = {value}\n")
    assert isinstance(judged("git commit -m x", repository, mode="auto"), Ask)
