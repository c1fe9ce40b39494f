"""Ordinary read-only lines must be proven, or people stop reading the approval requests."""

import pytest

from callwright.core.access import ReadPath
from callwright.shell import Verdict, analyze

_LOCAL = [
    "pip -q --timeout 5 list",
    "npm --silent ls",
    "rustfmt --check --edition 2021 src/main.rs",
    "sysctl -n net.ipv4.* kernel/hostname",
    "gdu -sh src",
    "nvidia-smi dmon",
    "systemctl --user --no-pager status x",
    "systemctl -t service --state=running list-units",
    "cargo -q --color never tree --locked",
    "apt -qq list --installed",
    "getent passwd root",
    "ps -eo pid,comm,%mem --sort=-%mem | head",
    "ps axo user,time,%mem",
    "echo 'scale=2; 1/3' | bc -l",
    "lsof -i :8080",
    "lsof -nP -iTCP:8080 -sTCP:LISTEN",
    "lsof -i TCP@127.0.0.1:80 node_modules/@types/x",
    "ss -tlnp '( sport = :http or dport = :443 )'",
    "ss state established dst 10.0.0.1:443",
    "ss -x src /run/a.sock",
    "arp -an",
    "ls",
    "ls -la src | head -5",
    "cat README.md docs/*.md",
    "pwd && whoami && id",
    "echo 'rm -rf /'",
    'echo "it\'s $HOME"',
    "echo $?",
    'echo "$a $b"',
    'if [[ "$(uname -s)" == "Darwin" ]]; then echo mac; fi',
    '[ -z "$(git status --porcelain)" ] && echo clean',
    'test -n "$(git status --porcelain)" || echo clean',
    'test -f "$x" -a "$y" = b',
    "[[ $(git branch --show-current) == main ]] && echo main",
    "while read -r a b; do printf '%s\\n' \"$b  ${a}\"; done < x",
    "grep -rn 'foo bar' src --include='*.py' | sort | uniq -c",
    "grep -E 'a|b' x || true",
    "rg -n --hidden foo",
    "rg -tzig -g'*.zip' foo",
    "yq -o=json '.on.workload' x.yml",
    "yq -pxml -oyaml -o json . x.xml",
    "jq -r '.import, .compilerOptions.include[], .debug' x.json",
    "systemctl show -pMainPID nginx",
    "find . -name '*.py' -not -path './.venv/*' -mtime -7",
    "find . -type f -exec grep -l TODO {} +",
    "find . -name '*.log' -exec wc -l {} \\;",
    "git ls-files | xargs wc -l",
    "find . -print0 | xargs -0 -n 5 head -1",
    "fd -e py -x wc -l",
    "sed -n '1,20p' x",
    "sed 's/a/b/g; /c/d' x",
    "sed -E -e 's|/a/|/b/|' -e '$d' x",
    "awk -F: '$3 > 10 {print $1, $2}' x",
    'awk \'BEGIN {FS=","} NR > 1 && /a.b/ {n[$1]++} END {for (k in n) print k, n[k] > "/dev/stderr"}\' x',
    "git status -sb",
    "git log --oneline -5 -- src",
    "git diff HEAD~1 --stat",
    "git log -p -S foo",
    "git show HEAD:README.md",
    "git branch -a",
    "git branch --list 'feature/*'",
    "git tag -l 'v1.*'",
    "git config --get user.name",
    "git stash list",
    "git --no-pager log -3",
    "diff <(sort a) <(sort b)",
    "test -f x && echo yes",
    '[ -d "$HOME" ] || echo no',
    "[[ $x == a* && -f y ]]",
    "if [ -f a ]; then cat a; else echo none; fi",
    "for f in a b c; do echo $f; wc -l $f; done",
    'while read -r line; do echo "$line"; done < x',
    "case $x in a) ls;; *) pwd;; esac",
    "x=5; echo $x",
    "cd src && ls ..",
    "(cd src; pwd)",
    "! grep -q foo x",
    "time ls",
    "timeout 5 ls",
    "env LANG=C sort x",
    "LC_ALL=C ls",
    "bash -c 'ls | wc -l'",
    "command -v python",
    "tar tzf x.tar.gz",
    "unzip -l x.zip",
    "xz -l x.xz",
    "xz -dc x.xz | head",
    "xz -tv x.xz",
    "bunzip2 -c x.bz2",
    "zstd -lv x.zst",
    "xz --version",
    "lastlog -u root",
    "apt-cache policy x",
    "gunzip -c x.gz | head",
    "jq -r '.a[]' x.json",
    "ls 2>/dev/null",
    "ls > /dev/null 2>&1",
    "cat <<'E'\n$(rm -rf /)\nE",
    "sort -k2,2n -t: x",
    "date +%s",
    "ps aux | grep '[p]ython'",
    "du -sh * | sort -h",
    "python3 --version",
    "date -Iseconds",
    "date -u +%FT%TZ",
    "date -d yesterday +%F",
    "date -v-1d +%F",
    "kill -0 123 456",
    "docker --version",
    "ls \\\n  -la",
    "git -C src status",
    "git -C src -C lib log --oneline",
    "cd src && git diff",
    "(cd src && git log -3)",
    "/usr/bin/git status",
    "node -v",
    "ruby -v",
    "less README.md",
    "less -N README.md",
    "bash -n script.sh",
    "X=$(git rev-parse HEAD); echo $X",
    'NAME=$(basename $(pwd)); echo "$NAME"',
    "export FOO=bar",
    "DEBUG=1 ls",
    "unset x",
    'for f in *.md; do wc -l "$f"; done',
    "for f in src/*.py; do head -1 $f; done",
    'for f in *.md; do echo "docs/$f"; cat "docs/$f"; done',
    "wc -l $(git ls-files '*.py')",
    "find . -name '*.py' | xargs wc -l",
    "git ls-files '*.py' | grep -v test | sort | xargs wc -l",
    "find . -name '*.py' -exec wc -l {} +",
    "printf '%s\\n' a b | xargs ls",
    "printf '%s %d%%\\n' a 3",
    "awk '{print $1/$2, (a+b)/2}' f",
    "awk '/[/]x/ {n++} END {print n/NR}' f",
    "sed ':a;N;$!ba;s/x/y/g' f",
    "sed -n '/x/{p;q}' f",
    "GIT_PAGER=cat git log -3",
    "hexdump -C -n0xff -s 16 f",
    "PAGER= git diff",
    "zig version",
    "dotnet --list-sdks",
    "sed -n '$!{N;ba}; # all\n1,5p' src/*.py",
    "awk '/a/ && length/2 > 3, /b/ {print length / 2}' f",
    "gzip -dc x.gz",
    "zcat x.gz | head",
    "grep -e foo -f patterns.txt src/a.py",
    "jq .env package.json",
    "sqlite3 -readonly app.db '.tables'",
    "sqlite3 -readonly app.db 'select 1'",
    "sqlite3 -readonly x 'select [order date], count(*) from t -- each'",
    """sqlite3 -readonly x 'select json_extract(a, "$.a","$.b") from t where b like "[a]%"'""",
    "git branch --list 'x*'",
    "git tag -l 'v*' --sort=-creatordate",
    "ps -ef",
    "ps -e -o pid,cmd",
    "printenv HOME",
    "ruff format --check .",
    "ruff check --no-fix src",
    "ruff check src --select E501",
    "git log -S'def main' --oneline",
    "git log -G 'a b' -- src",
    "zsh -c 'ls -la src'",
    "cat notes.txt | tee /dev/null | wc -l",
    "tee",
    "top -b -n 1",
    "stty -a",
    "tput cols",
    "7z t -p archive.7z",
    "xargs -a /dev/stdin grep pattern",
    "env -i ls",
]

_REMOTE = [
    "curl -sSL https://a.example/x",
    "curl -I https://a.example",
    "curl -s -o /dev/null -w '%{http_code}' https://a.example",
    "wget -qO- https://a.example",
    "gh pr view 12 --json title",
    "gh api repos/a/b",
    "aws ec2 describe-instances --region eu-west-1",
    "aws --profile x s3 ls",
    "az vm list -o table",
    "gcloud compute instances list --project x",
    "kubectl get pods -n kube-system -o wide",
    "kubectl get pods -nkube-system -lapp=nginx,tier=web-service -ojsonpath='{.items[*].status}'",
    "kubectl logs -f web-1",
    "docker ps -a",
    "docker compose -p x logs",
    "helm list -A",
    "npm view react versions",
    "git ls-remote origin",
    "git fetch --dry-run",
    """psql -c "select a[1], b::numeric(10,2), '{1}'::int[] from t /* all */" """,
    "psql -h db -c 'select count(*) from users where name like ''a%'''",
    "ping -c 1 a.example",
    "dig a.example",
    "getent hosts a.example",
]


@pytest.mark.parametrize(("lines", "verdict"), [(_LOCAL, Verdict.READ_ONLY), (_REMOTE, Verdict.READS_NETWORK)])
def test_common_lines_that_read_are_proven(lines: list[str], verdict: Verdict) -> None:
    plans = {line: analyze(line, "/srv/project") for line in lines}
    wrong = {line: plan.reason for line, plan in plans.items() if (plan.proven, plan.verdict) != (True, verdict)}
    assert wrong == {}


@pytest.mark.parametrize(
    ("line", "path"),
    [
        ("cat a", "/srv/project/a"),
        ("cat ./a/../b", "/srv/project/b"),
        ("cat ../../x", "/x"),
        ("cd src && cat a", "/srv/project/src/a"),
        ("cd /etc; cat passwd", "/etc/passwd"),
        ("grep -f /etc/x y", "/etc/x"),
        ("grep --file=/etc/x y", "/etc/x"),
        ("grep -r foo", "/srv/project"),
        ("grep -r --regexp foo", "/srv/project"),
        ("grep -r --include '*' foo", "/srv/project"),
        ("grep -r --label x foo", "/srv/project"),
        ("grep -r --max-c 3 foo", "/srv/project"),  # grep takes the beginning of an option for it
        ("grep --max-c 3 foo .env", "/srv/project/.env"),
        ("zgrep --label foo .env", "/srv/project/.env"),  # which takes no value for this one
        ("git diff --no-index a /etc/shadow", "/etc/shadow"),
        ("git diff --no-index a b", "/srv/project/b"),
        ("sort < in", "/srv/project/in"),
        ("cat $PWD/a", "/srv/project/a"),
        ("cat src/*.py", "/srv/project/src/*.py"),
        ("find /etc -name x | xargs cat", "/etc"),
        ("echo /etc/shadow | xargs cat", "/etc/shadow"),
        ("env -C /etc cat passwd", "/etc/passwd"),
        ("bash -c 'cat /etc/passwd'", "/etc/passwd"),
        ("echo $(cat /etc/passwd)", "/etc/passwd"),
        ("echo $(</etc/passwd)", "/etc/passwd"),
        ("cat <(cat /etc/passwd)", "/etc/passwd"),
        ("7z l -slt a.7z", "/srv/project/a.7z"),
        ("unrar lb a.rar", "/srv/project/a.rar"),
        ("dpkg -c a.deb", "/srv/project/a.deb"),
        ("dpkg --info a.deb control", "/srv/project/a.deb"),
        ("rpm -qpl a.rpm", "/srv/project/a.rpm"),
    ],
)
def test_reads_list_absolute_paths(line: str, path: str) -> None:
    assert ReadPath(path) in analyze(line, "/srv/project").accesses


def test_names_of_packages_are_no_files() -> None:
    for line in ("dpkg -S /bin/ls", "dpkg -l nginx", "rpm -qf /bin/ls", "rpm -q nginx"):
        plan = analyze(line, "/srv/project")
        assert plan.verdict is Verdict.READ_ONLY
        assert plan.accesses == ()


def test_cd_that_may_fail_keeps_both_folders() -> None:
    paths = {access.path for access in analyze("cd src; cat a", "/w").accesses if isinstance(access, ReadPath)}
    assert {"/w/a", "/w/src/a"} <= paths


def test_unknown_path_is_not_absolute() -> None:
    plan = analyze('cat "$FILE"', "/w")
    assert [access.path[0] == "/" for access in plan.accesses if isinstance(access, ReadPath)] == [False]


def test_xargs_names_from_a_file_are_unknown() -> None:
    plan = analyze("cat list | xargs cat", "/w")
    assert ReadPath("{}") in plan.accesses


def test_all_spellings_of_home_are_resolved(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/me")
    for line in ("cat ~/.ssh/id_rsa", "cat $HOME/.ssh/id_rsa", 'cat "${HOME}/.ssh/id_rsa"', "cd; cat .ssh/id_rsa"):
        assert ReadPath("/home/me/.ssh/id_rsa") in analyze(line, "/w").accesses, line
