"""Calls that only read are asked about where a file of the project makes them run a program; nothing is run here."""

from pathlib import Path

import pytest

from callwright import Allow, Ask
from callwright.core.access import Decision
from callwright.policy import judge_command


def _judge(line: str, folder: Path, mode: str = "default") -> Decision:
    return judge_command(line, cwd=folder, workspace=folder, mode=mode)  # type: ignore[arg-type] - modes only


@pytest.mark.parametrize(
    ("line", "file", "text"),
    [
        ("cargo tree --locked", ".cargo/config.toml", '[build]\n"r\\u0075stc" = "tools/r.sh"\n'),
        (
            "cargo metadata --locked",
            ".cargo/config.toml",
            "[ env ]\nLD_PRELOAD = { value = 'e.so', relative = true }\n",
        ),
        ("cargo tree --locked", ".cargo/config.toml", "[build\n"),
        ("cargo tree --locked", ".cargo/config.toml", "include = 'other.toml'\n"),
        ("cargo tree --locked", ".cargo/config.toml", "[build]\nrustflags = ['-Zx']\n"),
        ("cargo tree --locked", ".cargo/config.toml", "[profile.dev]\nrustflags = ['-Zx']\n"),
        ("cargo info serde", ".cargo/config.toml", "[alias]\ninfo = 'run'\n"),
        ("cargo xtask --help", ".cargo/config.toml", "[alias]\nxtask = 'run -p xtask --'\n"),
        ("cargo -q b -h", ".cargo/config.toml", "[alias]\nb = ['run']\n"),
        ("cargo --version", "rust-toolchain", 'toolchain.path = "x" \\\n'),
        ("poetry show", ".poetry/plugins/x.py", ""),
        ("poetry --version", ".poetry/plugins/x.py", ""),
        ("poetry show", "poetry.toml", "[virtualenvs]\npath = 'envs'\n"),
        ("poetry env info", "poetry.toml", "virtualenvs.path = 'envs'\n"),
        ("poetry show", "poetry.toml", "cache-dir = 'cache'\n"),
        ("poetry env list", "poetry.toml", "[python]\ninstallation-dir = 'tools'\n"),
        ("poetry show", "poetry.toml", "[virtualenvs\n"),
        ("pnpm list", "package.json", '{"packageManager": "pnpm@https://example.com/x.js"}'),
        ("pnpm help", "package.json", '{"packageManager": "pnpm@file:x.js"}'),
        ("pnpm list", "package.json", '{"packageManager": {"name": "pnpm"}}'),
        ("pnpm list", ".corepack.env", "COREPACK_NPM_REGISTRY=https://example.com\n"),
        ("pnpm list", ".npmrc", "pnpmfile=tools/x.cjs\n"),
        ("pnpm list", "pnpm-workspace.yaml", "pnpmfile: tools/x.cjs\n"),
        ("pnpm list", "pnpm-workspace.yaml", '"pnpm\\u0066ile": tools/x.cjs\n'),
        ("pnpm why x", "package.json", '{"pnpm": {"configDependencies": {"pnpm-plugin-x": "1"}}}'),
        ("uv python find", ".python-version", "./tools/python\n"),
        ("uv python find", ".python-version", "3.12\ntools\n"),
        ("go list -json ./...", ".hg/hgrc", "[extensions]\nx = x.py\n"),
        ("packer version", "packer-plugin-x", "#!/bin/sh\n"),
        ("packer version", "github.com/a/b/packer-plugin-x_linux_amd64", "#!/bin/sh\n"),
        ("golangci-lint --version", ".golangci.yml", "linters-settings: {}\n"),
        ("pnpm list", "package.json", '{"packageManager": '),
        ("npm ls", ".npmrc", '"logs-dir"=/any\n'),
        ("npm ls", ".npmrc", "globalconfig=/any\n"),
        ("npm ls", ".npmrc", "'globalconfig'=/any\n"),
        ("npm ls", ".npmrc", "logs${NOPE?}-dir=/any\n"),
        ("npm ls", ".npmrc", "logs-dir[]=/any\n"),
        ("npm ls", ".npmrc", "logs-dir;x=/any\n"),
        ("npm ls", ".npmrc", "x=1\rlogs-dir=/any\n"),
        ("npm ls", ".npmrc", '"logs\\u002ddir"=/any\n'),
        ("git whatchanged", ".git/config", "[alias]\n\twhatchanged = !x\n"),
        ("delta a b", ".git/config", "[delta]\n\tpager = ./x\n\tpaging = always\n"),
    ],
)
def test_project_file_makes_reading_ask(tmp_path: Path, line: str, file: str, text: str) -> None:
    (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / file).write_text(text, newline="")
    for mode in ("default", "auto"):
        assert isinstance(_judge(line, tmp_path, mode), Ask), mode


@pytest.mark.parametrize(
    ("line", "file", "text"),
    [
        ("cargo tree --locked", ".cargo/config.toml", "[alias]\nxtask = 'run -p xtask --'\n[net]\nretry = 3\n"),
        (
            "cargo tree --locked",
            ".cargo/config.toml",
            "[source.crates-io]\nreplace-with = 'v'\n[source.v]\ndirectory='v'",
        ),
        ("cargo tree --locked", ".cargo/config.toml", "[registries.mine]\nindex = 'sparse+https://example.com/'\n"),
        (
            "cargo tree --locked",
            ".cargo/config.toml",
            "[profile.dev]\ndebug = 1\n[build]\njobs = 2\ntarget-dir = 't'\n",
        ),
        ("cargo build --help", ".cargo/config.toml", "[alias]\nxtask = 'run -p xtask --'\n"),
        ("cargo --version", "rust-toolchain", "nightly-2026-01-01\n"),
        ("packer version", "packer-plugin-sdk/go.mod", "module x\n"),
        ("go version", ".hg/hgrc", "[extensions]\nx = x.py\n"),
        ("poetry check", "pyproject.toml", "[tool.poetry]\nname = 'x'\n"),
        ("poetry show", "poetry.toml", "[virtualenvs]\nin-project = true\n[installer]\nparallel = false\n"),
        ("pnpm list", "package.json", '{"packageManager": "pnpm@10.4.1+sha512.abc123"}'),
        ("pnpm list", ".npmrc", "registry=https://example.com\n"),
        ("pnpm list", "pnpm-workspace.yaml", "packages:\n  - 'packages/*'\n"),
        ("pnpm list", "package.json", '{"scripts": {"test": "node -e \\"1\\""}}'),
        ("uv python find", ".python-version", "# ours\n3.12.1\npypy3.10\n"),
        (
            "npm ls",
            ".npmrc",
            "//registry.npmjs.org/:_authToken=${NPM_TOKEN}\n'@a:registry'=https://example.com\n; cache=x\n",
        ),
        ("git log", ".git/config", "[alias]\n\tst = status\n"),
        ("delta a b", ".git/config", "[alias]\n\tst = status\n"),
    ],
)
def test_usual_project_file_is_read_unasked(tmp_path: Path, line: str, file: str, text: str) -> None:
    (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / file).write_text(text)
    assert isinstance(_judge(line, tmp_path), Allow)


@pytest.mark.parametrize(
    ("line", "file", "text"),
    [
        ("cargo tree --locked", ".cargo/config.toml", "[build]\nrustc-wrapper = 'x.sh'\n"),
        ("npm ls", ".npmrc", "logs-dir=/any\n"),
        ("ruff check", "ruff.toml", "fix = true\n"),
        ("poetry show", "poetry.toml", "virtualenvs.path = 'envs'\n"),
        ("git status", ".git/config", "[filter 'x']\n\tclean = x.sh\n"),
    ],
)
def test_setting_behind_a_long_comment_asks(tmp_path: Path, line: str, file: str, text: str) -> None:
    (tmp_path / file).parent.mkdir(exist_ok=True)
    (tmp_path / file).write_text(f"{'# padding' * 10}\n" * 12_000 + text)
    decision = _judge(line, tmp_path)
    assert isinstance(decision, Ask) and decision.firm and "too large" in decision.reason


def test_link_that_cargo_would_write_through_asks(tmp_path: Path) -> None:
    (tmp_path / "target").mkdir()
    assert isinstance(_judge("cargo tree --locked", tmp_path), Allow)
    (tmp_path / "target/.rustc_info.json").symlink_to("../elsewhere")
    assert isinstance(_judge("cargo tree --locked", tmp_path), Ask)


@pytest.mark.parametrize(
    ("line", "reads"),
    [
        ("openssl x509 -noout -in org.openssl.engine:/x/e.so:k", False),
        ("openssl x509 -noout -in=org.openssl.engine:/x/e.so:k", False),
        ("openssl crl -noout -in org.openssl.engine:/x/e.so:k", False),
        ("openssl req -noout -in org.openssl.engine:/x/e.so:k", False),
        ("openssl x509 -in .env -noout -text", False),
        ("openssl x509 -in server.crt -noout -checkend 86400", True),
        ("openssl req -in a.csr -noout -text", True),
        ("sensors -s", False),
        ("sensors -As", False),
        ("sensors -u", True),
        ("cpupower frequency-set -d 1GHz", False),
        ("cpupower -c 0 frequency-set -g powersave", False),
        ("cpupower -c all frequency-info -p", True),
        ("lsb_release -sc", True),
        ("tflint --version", False),
        ("ts-node -vv", False),
    ],
)
def test_only_reading_forms_run_unasked(tmp_path: Path, line: str, reads: bool) -> None:
    assert isinstance(_judge(line, tmp_path), Allow if reads else Ask)


@pytest.mark.parametrize("field", ['"packageManager": "pnpm@10.4.1"', '"devEngines": {"packageManager": {}}'])
@pytest.mark.parametrize(
    ("file", "text"),
    [(".npmrc", "@pnpm:registry=https://example.com\n"), ("pnpm-workspace.yaml", "registry: https://example.com\n")],
)
def test_version_of_pnpm_from_a_registry_of_the_project_asks(tmp_path: Path, field: str, file: str, text: str) -> None:
    (tmp_path / "package.json").write_text(f"{{{field}}}")
    assert isinstance(_judge("pnpm list", tmp_path), Allow)
    (tmp_path / file).write_text(text)
    assert isinstance(_judge("pnpm list", tmp_path), Ask)
    (tmp_path / "below").mkdir()
    assert isinstance(_judge("pnpm list", tmp_path / "below"), Ask)


def test_tool_versions_with_a_path_asks_for_programs_that_have_a_shim(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shims, project = tmp_path / ".asdf/shims", tmp_path / "project"
    shims.mkdir(parents=True)
    (project / "below").mkdir(parents=True)
    for name in ("node", "git", "jq"):
        (shims / name).touch()
    monkeypatch.setenv("PATH", f"{shims}:/usr/bin")
    lines = ("node --version", "git status", "jq . x.json", "cd below && node -v")
    (project / ".tool-versions").write_text("nodejs 22.1.0  # not path:x\n")
    assert all(isinstance(_judge(line, project), Allow) for line in lines)
    (project / ".tool-versions").write_text("# ours\nnodejs 22.1.0 path:./tools\n")
    assert all(isinstance(_judge(line, project), Ask) for line in lines)
    assert all(isinstance(_judge(line, project), Allow) for line in ("cat x.json", "A=1", "A=1; echo $A"))
    monkeypatch.setenv("HOME", str(project))  # what the user has chosen for every folder
    assert isinstance(_judge("node --version", project / "below"), Allow)
    (project / ".python-version").write_text("./tools/python\n")
    assert isinstance(_judge("uv python find", project / "below"), Ask)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("PATH", "/usr/bin")
    assert isinstance(_judge("node --version", project), Allow)


def test_program_of_a_repository_asks_in_every_mode_beside_a_change(tmp_path: Path) -> None:
    line = "touch x && go list -json ./..."
    assert isinstance(_judge(line, tmp_path, "bypass"), Allow)
    (tmp_path / ".hg").mkdir()
    assert isinstance(_judge(line, tmp_path, "bypass"), Ask)
