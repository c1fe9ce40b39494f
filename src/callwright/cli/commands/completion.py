"""`callwright completion`: prints completion scripts for bash, zsh and fish."""

from callwright.cli.main import COMMANDS
from callwright.cli.options import build_parser as conversation_options
from callwright.cli.parsing import Parser

_DESCRIPTION = """\
Prints a script that completes commands and options. Add one of these lines to the configuration of your shell:
  bash, ~/.bashrc                   eval "$(callwright completion bash)"
  zsh, ~/.zshrc                     eval "$(callwright completion zsh)"
  fish, ~/.config/fish/config.fish  callwright completion fish | source"""
_ACTIONS = {
    "sessions": "list search show resume undo redo fork export delete",
    "permissions": "test explain schema",
    "skills": "list check",
    "mcp": "list add add-json remove test logout",
    "trust": "show give take",
    "tools": "search",
    "runs": "ask list waiting approve decline cancel watch",
    "completion": "bash zsh fish",
}

_BASH = """\
_callwright() {{
  local word=${{COMP_WORDS[COMP_CWORD]}}
  case "$COMP_CWORD:${{COMP_WORDS[1]}}" in
    1:*) COMPREPLY=($(compgen -W "{commands} {options}" -- "$word"));;
{cases}
    *) case "$word" in
         -*) COMPREPLY=($(compgen -W "{options}" -- "$word"));;
         *) COMPREPLY=($(compgen -f -- "$word"));;
       esac;;
  esac
}}
complete -F _callwright callwright
"""


def run(arguments: list[str]) -> int:
    """Print the completion script of one shell."""
    parser = Parser("callwright completion", usage="callwright completion SHELL", description=_DESCRIPTION)
    parser.add_argument("shell", choices=("bash", "zsh", "fish"), metavar="SHELL", help="bash, zsh or fish")
    shell = parser.parse_args(arguments).shell
    print({"bash": bash, "zsh": zsh, "fish": fish}[shell](), end="")
    return 0


def options() -> list[str]:
    """Return every long option of a conversation."""
    actions = conversation_options()._actions  # noqa: SLF001  # pyright: ignore[reportPrivateUsage] - argparse has no other list
    return [name for action in actions for name in action.option_strings if name.startswith("--")]


def bash() -> str:
    """Return the script for bash."""
    cases = [f'    2:{name}) COMPREPLY=($(compgen -W "{words}" -- "$word"));;' for name, words in _ACTIONS.items()]
    return _BASH.format(commands=" ".join(COMMANDS), options=" ".join(options()), cases="\n".join(cases))


def zsh() -> str:
    """Return the script for zsh, which loads that of bash."""
    return "autoload -U +X bashcompinit && bashcompinit\n" + bash()


def fish() -> str:
    """Return the script for fish."""
    commands = {name: what.replace("'", "\\'") for name, what in COMMANDS.items()}
    lines = [
        f"complete -c callwright -n __fish_use_subcommand -a {name} -d '{what}'" for name, what in commands.items()
    ]
    for name, words in _ACTIONS.items():
        lines.append(f"complete -c callwright -n '__fish_seen_subcommand_from {name}' -a '{words}'")
    lines += [f"complete -c callwright -l {name.removeprefix('--')}" for name in options()]
    return "\n".join(lines) + "\n"
