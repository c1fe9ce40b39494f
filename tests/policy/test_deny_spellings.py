"""Deny and ask rules find the words they name among other options, in another order, and joined in another way."""

from pathlib import Path

import pytest

from callwright import Allow, Ask, Deny
from callwright.policy import judge_command


@pytest.mark.parametrize(
    ("rule", "line"),
    [
        ("Bash(git push *)", "git --no-pager push origin main"),
        ("Bash(git push:*)", "git --literal-pathspecs push origin main"),
        ("Bash(git push *)", "git -C . push"),
        ("Bash(git push *)", "git -C x -P --no-advice push"),
        ("Bash(git push *)", "/usr/bin/git -P push"),
        ("Bash(git push *)", "timeout 5 git -P push"),
        ("Bash(git push)", "git -P push"),
        ("Bash(git push origin*)", "git -P push -u origin main"),
        ("Bash(git push * --tags)", "git -P push origin --tags"),
        ("Bash(git commit *)", "git -P commit -m 'a b'"),
        ("Bash(git log *)", "git --no-pager log"),
        ("Bash(kubectl delete:*)", "kubectl -n x delete pod y"),
        ("Bash(npm publish *)", "npm --silent publish"),
        ("Bash(npm publish *)", "npm -w a publish"),
        ("Bash(docker rm *)", "docker -D rm x"),
        ("Bash(docker r*)", "docker -H x rm y"),
        ("Bash(terraform apply *)", "terraform -chdir=. apply"),
        ("Bash(aws s3 rm *)", "aws --profile x s3 rm y"),
        ("Bash(aws s3 rm *)", "aws s3 --region x rm y"),
        ("Bash(cargo publish *)", "cargo -q publish"),
        ("Bash(cargo publish *)", "cargo +nightly publish"),
        ("Bash(gh pr merge *)", "gh pr -R x merge 1"),
        ("Bash(make deploy *)", "make A=1 -j 4 deploy"),
        ("Bash(chmod 777 *)", "chmod -R 777 x"),
        ("Bash(rm -rf *)", "rm -fr x"),
        ("Bash(rm -rf *)", "rm -r -f x"),
        ("Bash(rm -rf *)", "rm -r -v -f x"),
        ("Bash(rm -rf *)", "rm -vrf x"),
        ("Bash(rm -rf *)", "rm x -rf"),
        ("Bash(rm -rf build)", "rm -fr build"),
        ("Bash(rm -rf build*)", "rm -r build/x -f"),
        ("Bash(git push --force *)", "git push origin main --force"),
        ("Bash(git push -f *)", "git push -uf origin main"),
        ("Bash(curl -X POST *)", "curl -s -X POST https://example.com"),
        ("Bash(python -c *)", "python -I -c pass"),
        ("Bash(git commit -m 'a b' *)", "git -P commit -m 'a b' -q"),
        ("Bash(rm *)", "{rm,-r,x}"),
        ("Bash(rm *)", "ls && {rm,-r,x}"),
        ("Bash(rm *)", "rm${IFS}x"),
        ("Bash(rm *)", "rm$IFS-r${IFS}x"),
        ("Bash(git push *)", "for x in push; do a=(1); git $x; done"),
        ("Bash(git push *)", "for x in pull push; do . ./a; git $x; done"),
        ("Bash(rm *)", "csh -c 'rm x'"),
        ("Bash(rm *)", "chronic rm x"),
        ("Bash(rm *)", "run0 -u ann rm x"),
        ("Bash(pip install *)", "pyenv exec pip install x"),
        ("Read(x.json)", "jq --rawfile a x.json"),
        ("Read(x.json)", "yq 'eval(.a)' x.json"),
        ("Read(x.json)", "yq 'load(\"a\")' x.json"),
        ("Read(x.json)", "jq -n --slurpfile a x.json"),
        ("Read(x.json)", "jq -n --argfile a x.json ."),
    ],
)
def test_deny_rule_matches_around_options(tmp_path: Path, rule: str, line: str) -> None:
    judged = judge_command(line, cwd=tmp_path, workspace=tmp_path, mode="bypass", deny=[rule])
    assert isinstance(judged, Deny)
    asked = judge_command(line, cwd=tmp_path, workspace=tmp_path, mode="auto", ask=[rule], allow=["Bash"])
    assert isinstance(asked, Ask)


@pytest.mark.parametrize(
    ("rule", "line"),
    [
        ("Bash(git push *)", "git log -n 1 push"),
        ("Bash(git push *)", "git stash push"),
        ("Bash(git push *)", "git -C x stash push"),
        ("Bash(git push *)", "hg -v push x"),
        ("Bash(npm publish *)", "npm -- x publish"),
        ("Bash(* --force)", "git push"),
        ("Bash(rm -rf build *)", "rm build x"),
        ("Bash(git push)", "git push --dry-run"),
        ("Bash(git -c *)", "git switch -c x"),
        ("Bash(git push --force *)", "git push --force-with-lease"),
        ("Bash(rm -rf *)", "rm -f x"),
        ("Bash(rm -rf *)", "rm -f -- -r"),
        ("Bash(rm -rf build)", "rm -rf build src"),
        ("Bash(python -c *)", "python x.py -c y"),
        ("Bash(docker run -v *)", "docker run image -v"),
        ("Bash(npm publish *)", "npm run publish"),
        ("Bash(rm *)", "npm test -- -c 'rm x'"),
        ("Bash(terraform apply *)", "terraform -chdir=. plan"),
        ("Bash(terraform apply *)", "terraform -chdir=x plan apply"),
    ],
)
def test_deny_rule_leaves_other_commands_alone(tmp_path: Path, rule: str, line: str) -> None:
    judged = judge_command(line, cwd=tmp_path, workspace=tmp_path, mode="bypass", deny=[rule])
    assert isinstance(judged, Allow)


@pytest.mark.parametrize(
    "line",
    [
        "sudo -Hu root rm x",
        "distcc rm x",
        "sshpass -p a rm x",
        "grc --pty rm x",
        "torify rm x",
        "multitime -n 5 rm x",
        "logsave -a out rm x",
        "setlock lock rm x",
        "cabal exec --project-file=a -- rm x",
        "stack exec rm x",
        "rustup run nightly rm x",
        "lxc exec a -- rm x",
        "ip netns exec a rm x",
        "ip -all netn e rm x",
        "setarch -R rm x",
        "sudo -Hn rm x",
        "timeout -vk 5 10 rm x",
        "timeout --kill-a 5 10 rm x",
        "nice --adj 5 rm x",
        "env -iu HOME rm x",
        "env -iC src rm x",
        "env -iS 'rm x'",
        "env --split 'rm x'",
        "strace -fo out rm x",
        "ls | xargs -rn 1 rm",
        "ls | xargs -0I {} rm {}",
        "su -lc 'rm x'",
        "su bob --session-command='rm x'",
        "flock -nw 3 lock rm x",
        "flock lock -c 'rm x'",
        "flock lock nice rm -c x",
        "bwrap --ro-bind / / --dev /dev rm x",
        "fd -HX rm",
        "fd --exec=rm",
        "fd -tx -x rm",
        "git bisect run rm x",
        "git submodule foreach --recursive 'rm x'",
        "git filter-branch --tree-filter 'rm x' HEAD",
        "npm exec -c 'rm x'",
        "sudo A=1 rm x",
        "sudo -E -u bob A=1 B=2 rm x",
        "sudo --close-from 3 rm x",
        "env -a name rm x",
        "flock -s lock rm x",
        "/usr/bin/time -vo out rm x",
        "runuser -l bob -c 'rm x'",
        "runuser -u bob -- rm -c x",
        "unshare --root /x rm x",
        "nsenter --target 1 rm x",
        "strace --output out rm x",
        "perf record -o out rm x",
        "systemd-run --uid bob --pty rm x",
        "ls | xargs --process-slot-var X rm",
        "uv --directory x run rm x",
        "uv tool run rm x",
        "uv run --group dev --env-file .env rm x",
        "pnpm --filter a exec rm x",
        "coproc NAME { rm x; }",
        "watchexec -e rs -- rm x",
        "nodemon --exec 'rm x'",
        "dotenv -f .env run -- rm x",
        "doppler run -- rm x",
        "aws-vault exec p -- rm x",
        "nix-shell -p a --run 'rm x'",
        "nix develop .#x -c rm x",
        "screen -dmS name rm x",
    ],
)
def test_deny_rule_matches_behind_joined_and_shortened_options(tmp_path: Path, line: str) -> None:
    for rule in ("Bash(rm *)", "Bash(rm:*)"):
        assert isinstance(judge_command(line, cwd=tmp_path, workspace=tmp_path, mode="bypass", deny=[rule]), Deny)


@pytest.mark.parametrize(
    ("line", "rule", "broad"),
    [
        ("npm test -- -c jest.config.js", "Bash(npm test *)", ""),
        ("nix develop -c cargo test", "Bash(nix develop -c cargo *)", "Bash(nix develop *)"),
        ("nix-shell --run 'make x'", "Bash(nix-shell --run 'make x')", "Bash(nix-shell *)"),
        ("doppler run -- make x", "Bash(doppler run -- make *)", "Bash(doppler run *)"),
        ("git bisect run make test", "Bash(git bisect run make test)", "Bash(git bisect *)"),
        ("git submodule foreach 'git pull'", "Bash(git submodule foreach 'git pull')", "Bash(git submodule *)"),
    ],
)
def test_allow_rule_covers_a_program_that_another_runs_if_it_names_it(
    tmp_path: Path, line: str, rule: str, broad: str
) -> None:
    assert isinstance(judge_command(line, cwd=tmp_path, workspace=tmp_path, allow=[rule]), Allow)
    if broad:
        assert isinstance(judge_command(line, cwd=tmp_path, workspace=tmp_path, allow=[broad]), Ask)


@pytest.mark.parametrize("filler", ["-a ", "-a push ", "-a -b x "])
def test_deny_rule_holds_behind_very_many_options(tmp_path: Path, filler: str) -> None:
    line = f"git {filler * 500}push push y"
    for rule in ("Bash(git push push *)", "Bash(git -f push push *)", "Bash(git push* y)"):
        assert isinstance(judge_command(line, cwd=tmp_path, workspace=tmp_path, mode="bypass", deny=[rule]), Deny)


@pytest.mark.parametrize(
    "line",
    [
        "git clone https://a.example/x",
        "git clone -b main https://a.example/x",
        "git clone --depth 1 git@a.example:x y",
        "git clone --bundle-uri=https://a.example/x https://b.example",
        "git fetch --depth 3 a.example:x",
        "git fetch --multiple origin https://a.example/x",
        "git pull --depth 1 https://a.example/x",
        "git push --repo=https://a.example/x",
        "git ls-remote --sort x https://a.example/x",
        "git submodule add -b main https://a.example/x y",
        "git remote add -f x https://a.example/x",
        "git archive --remote=a.example:x HEAD",
        "git -c http.proxy=http://a.example fetch",
        "git -c url.https://a.example/.insteadOf=https://b.example clone https://b.example/x",
    ],
)
def test_deny_rule_for_a_host_finds_the_remotes_of_git(tmp_path: Path, line: str) -> None:
    deny = ["WebFetch(domain:a.example)"]
    assert isinstance(judge_command(line, cwd=tmp_path, workspace=tmp_path, mode="bypass", deny=deny), Deny)
    other = judge_command(line, cwd=tmp_path, workspace=tmp_path, mode="bypass", deny=["WebFetch(domain:c.example)"])
    assert isinstance(other, Allow)


@pytest.mark.parametrize(
    "line",
    [
        "ping -c 1 a.example",
        "dig @a.example b.example",
        "dig +short x.a.example. MX",
        "nslookup b.example a.example",
        "whois -ha.example b",
        "whois --host=a.example b",
        "getent hosts a.example",
        "pip index versions x --extra-index-url https://b.example --index-url=https://a.example",
        "npm view x --registry=https://a.example",
        "psql -h a.example -c 'select 1'",
        "psql --host a.example -c 'select 1'",
        "psql 'dbname=x host=a.example' -c 'select 1'",
        "sqlcmd -S a.example -Q 'select 1'",
        "mysql --host=a.example -e 'select 1'",
        "aws s3 ls --endpoint-url https://b.example --endpoint-url=https://a.example",
    ],
)
def test_deny_rule_for_a_host_finds_it_in_programs_that_read_the_network(tmp_path: Path, line: str) -> None:
    def judge(rule: str) -> object:
        return judge_command(line, cwd=tmp_path, workspace=tmp_path, network_reads="allow", deny=[rule])

    assert isinstance(
        judge("WebFetch(domain:*.a.example)") if ".a." in line else judge("WebFetch(domain:a.example)"), Deny
    )
    assert isinstance(judge("WebFetch(domain:c.example)"), Allow)
    asked = judge_command(line, cwd=tmp_path, workspace=tmp_path, allow=["WebFetch(domain:a.example)"])
    assert isinstance(asked, Ask) or "://" in line


@pytest.mark.parametrize(
    "line",
    [
        "pip install https://a.example/x.whl",
        "npm install --registry=https://a.example x",
        "ssh -p 22 u@a.example ls",
        "nc a.example 80",
        "docker pull a.example/x",
        "sftp a.example:x",
        "wget --base=https://a.example -i x",
        "https_proxy=http://a.example curl https://b.example",
        "python -c 'import x; x.get(\"https://a.example\")'",
    ],
)
def test_unknown_program_that_is_given_a_denied_host_asks_in_every_mode(tmp_path: Path, line: str) -> None:
    def judge(rule: str) -> object:
        return judge_command(line, cwd=tmp_path, workspace=tmp_path, mode="bypass", deny=[rule])

    assert isinstance(judge("WebFetch(domain:a.example)"), Ask | Deny)
    assert isinstance(judge("WebFetch(domain:c.example)"), Allow)


@pytest.mark.parametrize("line", ["python x.py", "git commit -m https://a.example", "grep https://a.example x", "make"])
def test_rule_about_hosts_leaves_other_words_alone(tmp_path: Path, line: str) -> None:
    for rule in ("WebFetch(domain:a.example)", "WebFetch(domain:*)", "WebFetch(domain:*.example)"):
        assert isinstance(judge_command(line, cwd=tmp_path, workspace=tmp_path, mode="bypass", deny=[rule]), Allow)


@pytest.mark.parametrize(
    ("rule", "line"),
    [
        ("Edit(x.txt)", "sort -o x.txt a"),
        ("Edit(x.txt)", "sort a -ox.txt"),
        ("Edit(x.txt)", "shuf a --out=x.txt"),
        ("Edit(x.txt)", "uniq a x.txt"),
        ("Edit(x.txt)", "xxd -r a x.txt"),
        ("Edit(x.txt)", "tree -o x.txt"),
        ("Edit(x.txt)", "sed -n 'w x.txt' a"),
        ("Edit(x.txt)", "sed -n '/b/w x.txt' a"),
        ("Edit(x.txt)", "sed 's/a/b/gw x.txt' a"),
        ("Edit(x.txt)", "awk '{print > \"x.txt\"}' a"),
        ("Edit(x.txt)", "find . -fprint x.txt -delete"),
        ("Edit(x.txt)", "tar -c -g x.txt -f a.tar b"),
        ("Edit(x.txt)", "git config -f x.txt a.b c"),
        ("Read(x.txt)", "sed 'r x.txt' a"),
        ("Read(x.txt)", "sed '/read/r x.txt' a"),
        ("Read(x.txt)", "sed -e '1{r x.txt' -e '}' a"),
        ("Read(x.txt)", "sed -n -f x.txt a"),
        ("Read(x.txt)", "sed --file=x.txt a"),
        ("Read(x.txt)", "awk -f x.txt a"),
        ("Read(x.txt)", "awk 'BEGIN {while ((getline l < \"x.txt\") > 0) print l}'"),
        ("Read(x.txt)", "curl -T x.txt https://a.example"),
        ("Read(x.txt)", "curl -sTx.txt https://a.example"),
        ("Read(x.txt)", "curl --upload-f x.txt https://a.example"),
        ("Read(x.txt)", "curl -d@x.txt https://a.example"),
        ("Read(x.txt)", "curl --data-urlencode a@x.txt https://a.example"),
        ("Read(x.txt)", "curl -F 'a=@x.txt;type=b' https://a.example"),
        ("Read(x.txt)", "curl --form 'a=<x.txt' https://a.example"),
        ("Read(x.txt)", "curl -K x.txt"),
        ("Read(x.txt)", "curl -b x.txt https://a.example"),
        ("Read(x.txt)", "curl file://@/x.txt"),
        ("Read(x.txt)", "wget --post-file=x.txt https://a.example"),
        ("Read(x.txt)", "wget --body-file x.txt https://a.example"),
        ("Read(x.txt)", "wget -i x.txt"),
        ("Read(x.txt)", "tar -cf a.tar --add-file=x.txt"),
        ("Read(x.txt)", "tar -tf x.txt --warning=none"),
        ("Read(x.txt)", "shred -n 1 --random-source=x.txt a"),
    ],
)
def test_deny_rule_for_a_file_finds_it_in_options_and_scripts(tmp_path: Path, rule: str, line: str) -> None:
    line = line.replace("file://@", f"file://{tmp_path}")
    assert isinstance(judge_command(line, cwd=tmp_path, workspace=tmp_path, mode="bypass", deny=[rule]), Deny)


@pytest.mark.parametrize("line", ["tar -cf a.tar --exclude=x.txt src", "tar -cf a.tar --exclude x.md src"])
def test_file_that_is_left_out_is_not_read(tmp_path: Path, line: str) -> None:
    judged = judge_command(line, cwd=tmp_path, workspace=tmp_path, mode="bypass", deny=["Read(x.txt)"])
    assert isinstance(judged, Allow)
