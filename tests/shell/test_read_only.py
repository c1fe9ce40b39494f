"""Ordinary read-only lines must be proven, or people stop reading the approval requests."""

import shutil
import subprocess

import pytest

from callwright.core.access import ReadPath
from callwright.shell import Verdict, analyze

_LOCAL = [
    "pip -q --timeout 5 list",
    "npm --silent ls",
    "jq -r --arg v \"$V\" '.[] | select(.a == $v)' f.json",
    "jq --indent 2 --argjson n 1 '.a[$n]' f.json",
    'while IFS= read -r line; do echo "${line%%:*}"; done < x',
    'IFS=: read -ra parts <<< "$PATH"; echo ${parts[0]}',
    'for f in *.txt; do echo "${f##*/} ${f//a/b} ${f:0:5} ${f^^} ${X:-none}"; done',
    'date +"%F $x"',
    "n=5; timeout $n ls",
    'for f in a b; do echo $f; done; while read -r f; do echo "$f"; done < notes.txt',
    "for f in a b; do sort $f; done; unset f",
    "for f in a b # c\ndo sort $f; done",
    'set -euo pipefail; f=a; read -r x < b; export y=1; printf "%s\\n" x; command -v git; sort "$f"',
    'f=a; [ -f $f ] && sort "$f"',
    'n=5 && sed -n "${n}p" f | head -n$n',
    'd=src; find "$d/a" -name x; sort $d/b',
    'for f in a b; do sort "$f" "c $f"; done',
    "for f in src/{a,b}.py; do sort $f; done",
    "npm ls --global --depth 0",
    "git reflog -n 5",
    "git clean -ndx",
    "git clean --dry-run -e '*.log' src",
    "rustfmt --check --edition 2021 src/main.rs",
    "rustc --explain E0308",
    "openssl rand -hex 16",
    "date --rfc-3339 seconds",
    "sysctl -n net.ipv4.* kernel/hostname",
    "gdu -sh src",
    "gdu -d1 src",
    "sysctl net.ipv4.conf.eth0/1.forwarding kernel.random/uuid",
    "nvidia-smi dmon",
    "systemctl --user --no-pager status x",
    "systemctl -t service --state=running list-units",
    "cargo -q --color never tree --locked",
    "apt -qq list --installed",
    "getent passwd root",
    "ps -eo pid,comm,%mem --sort=-%mem | head",
    "ps axo user,time,%mem",
    "ps -p $(pgrep x)",
    'ps -fp $(pgrep -f "python app" | head -1)',
    'ps -o pid= -p "$x"',
    "ps -o rss= -p $$",
    "for p in 1 2; do ps -p $p; done",
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
    'env FOO="$x" ls',
    'env -C "$x" pwd',
    'timeout "$x" ls',
    'timeout -k "$x" 5 ls',
    'nice -n "$x" ls',
    "for x in 1 2; do timeout $x ls; done",
    'ls | xargs -P "$(nproc)" -n "$x" echo',
    'find . -exec grep -l "$(cat n)" {} +',
    """find . -name '*.py' -exec grep -n "$x" {} \\;""",
    "head -c$((1024 * 4)) x",
    "grep -A$((2+1)) foo x",
    "grep -c $? x",
    "export x=$y; ls",
    'command export x="$y"; ls',
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
    "sqlite3 -readonly a:b.db '.tables'",
    "sqlite3 -readonly app.db 'select 1; select 2;'",
    "sqlite3 --version",
    "duckdb -c 'select 1'",
    "duckdb -readonly app.db -c 'select 1'",
    "psql --version",
    "mysql --help",
    "mysql -V",
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
    "git ls-remote 'git://[::1]/x'",
    "glab variable list",
    "curl -sSL https://a.example/x",
    "curl -I https://a.example",
    "curl --compressed-ssh https://a.example",
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
    "psql -c 'select count/* all */(*) from t'",
    "psql -l",
    "psql --list",
    "sqlcmd -S db -Q 'select 1'",
    "sqlcmd query 'select 1'",
    "sqlcmd query --text='select 1'",
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
        ("sqlite3 -readonly file:///etc/a%20b?mode=ro 'select 1'", "/etc/a b"),
        ("sqlite3 -readonly a%20b 'select 1'", "/srv/project/a%20b"),
        ("f=/etc/passwd; cat $f", "/etc/passwd"),
        ("command -p cd /etc; cat passwd", "/etc/passwd"),
        ("builtin -- cd /etc && cat passwd", "/etc/passwd"),
        ('d=/etc && f="pass word" && cat "$d/$f"', "/etc/pass word"),
        ("for f in a /etc/shadow; do cat $f; done", "/etc/shadow"),
        ("for d in a b; do for f in c e; do cat $d/$f; done; done", "/srv/project/b/c"),
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


@pytest.mark.parametrize(
    "line",
    [
        'cat "$FILE"',
        'FILE=a | cat "$FILE"',
        "FILE=a & cat $FILE",
        "FILE=a && ls & cat $FILE",
        "false && FILE=a; cat $FILE",
        "(FILE=a); cat $FILE",
        "FILE=a; export FILE=b; cat $FILE",
        "FILE='a b'; cat $FILE",
        "FILE=a; cat $FILE{b,c}",
        "if true; then c\\d /etc; fi; cat passwd",
        "while read -r x; do cat passwd; 'c'd /etc; done < a",
        "case $x in a) command 'c'd /etc;; esac; cat passwd",
        "time cd /etc; cat passwd",
        "FILE=a; cat {$FILE,b}c",
        "for f in a b; do cat $f{c,d}; done",
        f"for f in {{1..90}}; do cat $f{'; echo long' * 50}; done",
        "foo=b; read fo* < a; cat $foo",
        'f=a; read "$y" < b; cat "$f"',
        "word=b; unset wor{d,x}; cat $word",
        'f=a; declare -n g="$y"; g=/etc/passwd; cat "$f"',
        'f=a; mapfile "$y" < b; cat "$f"',
        'f=a; . ./env.sh; cat "$f"',
        'f=a; eval "$y"; cat "$f"',
        'f=a; trap "$y" DEBUG; cat "$f"',
        "y=af; f=a; read ${y:1} < b; cat $f",
        'for f in a b; do source env.sh; cat "$f"; done',
        "a=w; for wf in *.txt; do export ${a}f=.env; cat $wf; done",
        'for wf in *.txt; do command unset w{f,g}; cat "$wf"/etc/passwd; done',
        "a=w\nreadonly ${a}f=/etc/passwd\nwf=b\ncat $wf",
        "for COLUMNS in a; do ls; cat $COLUMNS; done",
        'f=a; $y; cat "$f"',
        'f=a; command $y f; cat "$f"',
        'f=a; coproc x; cat "$f"',
        'f=a; command . ./x; cat "$f"',
        "f=a; eval '. ./x'; cat $f",
        "f=5; test -v 'a[--f]'; cat $f",
        "f=5; '[' -v 'a[--f]' ]; cat $f",
        'for f in *.txt; do declare "$y"; cat "$f"; done',
        "a=wo; for word in *.txt; do typeset ${a}rd=.env; cat $word; done",
        "a=wo; for word in *.txt; do readonly ${a}rd=.env; cat $word; done",
        "a=wo; for word in *.txt; do local ${a}rd=.env; cat $word; done",
        "for a in wo; do for b in rd; do export $a$b=.env; done; done; word=b; cat $word",
        "a=wo=; word=b; export $a.env; unset ${a%=}rd; cat $word",
    ],
)
def test_unknown_path_is_not_absolute(line: str) -> None:
    accesses = analyze(line, "/w").accesses
    assert any(isinstance(access, ReadPath) and access.path[0] != "/" for access in accesses)


def test_nested_parts_are_read_twice_at_most() -> None:
    plan = analyze(f"{'if true; then ' * 30}cat a; c\\d /etc; cat a; {'fi; ' * 30}cat a", "/w")
    cats = [command.cwd for command in plan.commands if command.program == "cat"]
    assert len(cats) == 5
    assert cats.count(None) >= 3


@pytest.mark.skipif(shutil.which("bash") is None, reason="bash lists its builtins")
def test_no_text_is_held_beside_an_unclear_builtin() -> None:
    listed = subprocess.run(["bash", "-c", "compgen -b"], capture_output=True, text=True, check=True).stdout.split()
    assert "mapfile" in listed
    for name in listed:
        plan = analyze(f'f=a; {name} -Zf; cat "$f"', "/w")
        understood = all(command.verdict is not Verdict.UNKNOWN for command in plan.commands)
        assert understood or ReadPath('"$f"') in plan.accesses, name


@pytest.mark.parametrize(
    ("line", "path"),
    [
        ('for f in *.txt; do command export y="$z"; cat "$f"; done', "/w/*.txt"),
        ('for f in *.txt; do export PATH=x; cat "$f"; done', "/w/*.txt"),
        ('f=a; make; cat "$f"', "/w/a"),
        ("f=a; read -p 'b(c' y; cat \"$f\"", "/w/a"),
        ('n=1; f=a; read -t $n y < b; export y=$n; kill -0 $n; cat "$f"', "/w/a"),
    ],
)
def test_other_commands_leave_texts_held(line: str, path: str) -> None:
    paths = [access.path for access in analyze(line, "/w").accesses if isinstance(access, ReadPath)]
    assert path in paths
    assert all(found[0] == "/" for found in paths)


def test_xargs_names_from_a_file_are_unknown() -> None:
    plan = analyze("cat list | xargs cat", "/w")
    assert ReadPath("{}") in plan.accesses


def test_all_spellings_of_home_are_resolved(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/me")
    for line in ("cat ~/.ssh/id_rsa", "cat $HOME/.ssh/id_rsa", 'cat "${HOME}/.ssh/id_rsa"', "cd; cat .ssh/id_rsa"):
        assert ReadPath("/home/me/.ssh/id_rsa") in analyze(line, "/w").accesses, line
