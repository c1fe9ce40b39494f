"""Names that a listing hands to xargs or to a substitution lead to no secret unasked."""

import subprocess
from pathlib import Path

import pytest

from callwright.core.access import Allow, Ask
from callwright.policy import judge_command


def _is_allowed(line: str, folder: Path) -> bool:
    return isinstance(judge_command(line, cwd=folder, workspace=folder), Allow)


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    home, folder = tmp_path / "home", tmp_path / "ws"
    (home / ".ssh").mkdir(parents=True)
    (home / ".ssh/id_rsa").write_text("x")
    monkeypatch.setenv("HOME", str(home))
    for name in ("app.py", "docs/a.txt", "src/b.py"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("x")
    for words in (["init", "-q"], ["add", "."], ["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "x"]):
        subprocess.run(["git", "-C", str(folder), *words], check=True)
    return folder


@pytest.mark.parametrize(
    "line",
    [
        "git ls-files | xargs wc -l",
        "git ls-files '*.py' | xargs cat",
        "git ls-files -mo --exclude-standard ':!docs' | xargs cat",
        "git diff --name-only | xargs cat",
        "git diff --name-only --cached -- src | xargs cat",
        "git diff --name-only HEAD | xargs cat",
        "git ls-tree -r --name-only HEAD src/ | xargs wc -l",
        "git grep -l 'foo bar' | xargs wc -l",
        "grep -rl foo --include='*.py' src | xargs cat",
        "rg -l foo -g '*.py' | xargs cat",
        "find . -name '*.txt' | xargs cat",
        "find . -print0 | xargs -0 cat",
        "fd -e py . src -x wc -l",
        "fd .env",
        "fd --search-path src py | xargs cat",
        "wc -l $(fd -e py)",
    ],
)
def test_ordinary_listings_are_free(project: Path, line: str) -> None:
    assert _is_allowed(line, project)


@pytest.mark.parametrize(
    "line",
    [
        "git diff --name-only --line-prefix='@home/.ssh/id_rsa ' HEAD | xargs cat",
        "cat $(git diff --name-only --line-prefix='@home/.ssh/id_rsa ' HEAD)",
        "git diff-tree --name-only --oneline HEAD | xargs cat",
        "git diff-tree --name-only -v HEAD | xargs cat",
        "cat $(git diff-tree --name-only --oneline HEAD)",
        "git diff --name-only -p | xargs cat",
        "git grep -l --no-name-only -h foo | xargs cat",
        "git ls-files :/ | xargs cat",
        "grep -L foo --label=@home/.netrc - | xargs cat",
        "rg -l --json foo | xargs cat",
        "rg -l --path-separator ' ' foo | xargs cat",
        "fd --path-separator ' ' | xargs cat",
        # a file of such a name may have stood in the other commit
        "git diff --name-only HEAD~1 | xargs cat",
        "git diff --name-only HEAD~1 HEAD -- src | xargs cat",
        "cat $(git diff-tree --name-only -r HEAD)",
        "git ls-tree --name-only other | xargs cat",
        # bash drops the zeros, so that two names become one
        "cat $(find .e nv -print0)",
        "cat $(git ls-files -z .e nv)",
        "find 'docs/a b' | xargs cat",
        "ls 'docs/a b' | xargs cat",
    ],
)
def test_other_text_than_names_asks(project: Path, line: str) -> None:
    assert not _is_allowed(line.replace("@home", str(Path.home())), project)


@pytest.mark.parametrize("name", ["a .e'n'v b.txt", 'a .e"n"v b.txt', "a .e\\nv b.txt", "lead .txt", "a .en? b.txt"])
def test_split_name_of_another_file_asks(project: Path, name: str) -> None:
    lines = ["find docs -name '*.txt' | xargs cat", "git ls-files 'docs/*.txt' | xargs cat"]
    assert all(_is_allowed(line, project) for line in lines)
    (project / "docs" / "my notes.txt").write_text("x")
    (project / "docs" / "[id].txt").write_text("x")
    assert all(_is_allowed(line, project) for line in lines)
    (project / "docs/lead").symlink_to(Path.home() / ".ssh/id_rsa")
    (project / "docs" / name).write_text("x")
    (project / ".env").write_text("x")
    asked = [line for line in lines if not _is_allowed(line, project)]
    assert asked == lines
    assert _is_allowed("find docs -name '*.txt' -print0 | xargs -0 cat", project)
    assert not _is_allowed("find docs -name '*.txt' | xargs -I -0 cat -0", project)


@pytest.mark.parametrize(
    "line",
    [
        "fd . @home/.ssh -x cat",
        "cat $(fd . @home/.ssh)",
        "fd . @home/.ssh | xargs cat",
        "fd --search-path @home/.ssh -x cat",
        "fd --search-path=@home/.ssh | xargs cat",
        "fd --base-directory @home/.ssh -x cat",
        "fd -C @home -x cat .ssh/id_rsa",
        "fd . .ssh -C @home -x cat",
        "fd . -x cat ';' @home/.ssh",
    ],
)
def test_folder_that_fd_is_given_is_checked(project: Path, line: str) -> None:
    assert not _is_allowed(line.replace("@home", str(Path.home())), project)


@pytest.mark.parametrize(
    "line",
    [
        "echo .env | bash -c 'xargs cat'",
        "cat names | timeout 5 sh -c 'xargs cat'",
        "cat names | bash -c 'sort | xargs cat'",
        "echo .env | sh -c 'sh -c \"xargs cat\"'",
        "bash -c 'xargs cat' < names",
        "echo .env | echo $(xargs cat)",
        "echo .env | echo $(sort | xargs cat)",
        "cat names | echo `xargs cat`",
        "cat names | cat <(xargs cat)",
    ],
)
def test_inner_script_reads_the_same_input(project: Path, line: str) -> None:
    (project / ".env").write_text("x")
    (project / "names").write_text(".env")
    assert not _is_allowed(line, project)


@pytest.mark.parametrize("line", ["echo app.py | bash -c 'xargs cat'", "bash -c 'ls src | xargs wc -l'"])
def test_known_input_of_an_inner_script_is_free(project: Path, line: str) -> None:
    assert _is_allowed(line, project)


@pytest.mark.parametrize(
    ("line", "name"),
    [
        ("ls | xargs grep ''", "-r"),
        ("git ls-files | xargs grep ''", "-r"),
        ("git ls-files -z | xargs -0 grep ''", "-r"),
        ("grep '' $(git ls-files)", "-r"),
        ("git ls-files '*.txt' | xargs wc -l", "--files0-from=a.txt"),
        ("git ls-files | xargs wc -l", "--files0-from=../home/a"),
        ("ls | xargs grep ''", "a -r"),
        ("fd -x wc -l", "-r"),
    ],
)
def test_names_that_are_options_ask(project: Path, line: str, name: str) -> None:
    (project / "leads").symlink_to(project.parent / "home")
    assert _is_allowed(line, project)
    (project / name).parent.mkdir(parents=True, exist_ok=True)
    (project / name).write_text("")
    assert not _is_allowed(line, project)


@pytest.mark.parametrize("name", ["a .env", "b\\ /etc/x", "leads"])
def test_names_that_lead_to_secrets_ask_in_every_mode(project: Path, name: str) -> None:
    if name == "leads":
        (project / name).symlink_to(project.parent / "home/.ssh/id_rsa")
    else:
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        (project / name).write_text("")
    decision = judge_command("ls | xargs cat", cwd=project, workspace=project, mode="bypass")
    assert isinstance(decision, Ask)
    assert ("private key" in decision.reason) is (name == "leads")


def test_names_behind_a_folder_are_no_options(project: Path) -> None:
    (project / "-r").write_text("")
    for line in ("find . -type f | xargs grep ''", "find . -exec grep '' {} +"):
        assert _is_allowed(line, project)
