"""`callwright trust`: see what this folder's files ask for, and let them have it."""

from callwright.app.locations import Locations
from callwright.app.trust import Trust
from callwright.cli.parsing import Parser
from callwright.cli.render.text import visible

_DESCRIPTION = """\
A repository's settings and skills may ask for hooks, MCP servers, allow rules, environment variables, a mode or a
model. None of that counts before you trust the folder; deny and ask rules always do. Your word holds for the files as
they are: when they ask for something new, you are asked again."""


def run(arguments: list[str]) -> int:
    """Carry out the subcommand. Without one: 0 if the folder has all it asks for, 3 if not."""
    parser = Parser("callwright trust", usage="callwright trust [show|give|take]", description=_DESCRIPTION)
    parser.add_argument(
        "action",
        nargs="?",
        choices=("show", "give", "take"),
        default="show",
        metavar="show|give|take",
        help="show what is asked for (code 3 if it is not given), give it, take it back",
    )
    options = parser.parse_args(arguments)
    locations = Locations.of()
    trust = Trust(locations)
    if options.action == "take":
        trust.take()
        print(f"{locations.project} is not trusted any more")
        return 0
    for word in trust.requests:
        print(f"  {visible(word)}")
    if not trust.requests:
        print(f"{locations.project} asks for nothing that needs trust")
        return 0
    if options.action == "give":
        trust.give()
    given = trust.given
    print(f"{locations.project} is {'trusted' if given else 'not trusted: callwright trust give'}")
    return 0 if given else 3
