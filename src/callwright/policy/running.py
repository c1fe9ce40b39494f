"""Options and subcommands by which an ordinary program runs another one, or takes its orders from elsewhere."""

from collections.abc import Mapping, Sequence

from callwright.policy.names import words

_INLINE_CODE = words("-c -e -E -r -p -i -pe -ne --eval --print --command --execute --interactive")
_RUNNING: Mapping[str, frozenset[str]] = {
    "git": words(
        "-c -C --config-env --exec-path --git-dir --work-tree --namespace --super-prefix --upload-pack --receive-pack"
        " --exec --open-files-in-pager -O --ext-diff --textconv --output --template --server-option --tool --extcmd"
        " --paginate --smtp-server --sendmail-cmd foreach run filter-branch difftool mergetool daemon instaweb shell"
        " http-backend config credential upload-pack receive-pack cvsserver p4 svn fast-import hook"
    ),
    "rg": words("--pre --hostname-bin --search-zip -z"),
    "sort": words("--compress-program"),
    "tar": words(
        "--to-command --checkpoint-action --use-compress-program -I --rsh-command --rmt-command --info-script"
        " --new-volume-script -F --absolute-names -P"
    ),
    "zip": words("-T -TT --unzip-command"),
    "rsync": words("-e --rsh --rsync-path"),
    "scp": words("-S -o -F"),
    "sftp": words("-S -o -F -b"),
    "man": words("-P --pager -H --html -C --config-file"),
    "curl": words("-K --config --output-dir --engine"),
    "wget": words("--use-askpass --config --execute -e"),
    "cargo": words("--config"),
    "go": words("-exec -toolexec run -overlay -modfile"),
    "npm": words("--script-shell --node-options --userconfig --globalconfig exec x explore config"),
    "pnpm": words("--script-shell exec dlx config"),
    "yarn": words("--use-yarnrc exec dlx config node"),
    "make": words("--eval -E"),
    "pip": words("--index-url -i --extra-index-url --find-links -f --config-settings --global-option"),
    "docker": words("run exec plugin -H --host --context --config"),
    "podman": words("run exec plugin -H --host --config"),
    "kubectl": words("exec run cp attach debug plugin --kubeconfig proxy port-forward"),
    "ffmpeg": words("-filter_script"),
    **dict.fromkeys(("python", "python2", "python3", "pypy3", "node", "deno", "bun", "ruby", "perl"), _INLINE_CODE),
    **dict.fromkeys(("php", "lua", "luajit", "tsx", "ts-node", "rscript", "julia", "osascript"), _INLINE_CODE),
}


def runs_more(command: Sequence[str], spelled: str) -> bool:
    """Whether a word makes a command run more than its program, and the rule does not spell that word out."""
    known = _RUNNING.get(command[0].rpartition("/")[2])
    if known is None:
        return False
    named = frozenset(spelled.split())
    return any(word not in named and _means_running(word, known) for word in command[1:])


def _means_running(word: str, known: frozenset[str]) -> bool:
    name = word.partition("=")[0]
    if name in known:
        return True
    if name.startswith("--"):  # GNU programs accept any beginning of a long option that is not ambiguous
        return len(name) > 3 and any(option.startswith(name) for option in known)
    return name.startswith("-") and len(word) > 2 and word[:2] in known  # a value glued to its letter
