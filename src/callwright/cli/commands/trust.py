"""`callwright trust`: shows what the files of this folder request, and grants or revokes it."""

from callwright.app.locations import Locations
from callwright.app.trust import Trust
from callwright.cli.parsing import Parser
from callwright.cli.render.text import print_text, visible_line

_DESCRIPTION = """\
The settings and skills of a repository may request hooks, MCP servers, allow rules, environment variables, a mode or a
model. These requests are granted only after you trust the folder; its deny and ask rules always apply. Trust covers
the files as they are now: when they request something new, you are asked again."""


def run(arguments: list[str]) -> int:
    """Run the subcommand; `show` returns 0 if the folder is trusted or requests nothing, else 3."""
    parser = Parser("callwright trust", usage="callwright trust [show|give|take]", description=_DESCRIPTION)
    parser.add_argument(
        "action",
        nargs="?",
        choices=("show", "give", "take"),
        default="show",
        metavar="show|give|take",
        help="show the requests (exit code 3 if not trusted), grant them, or revoke the trust",
    )
    options = parser.parse_args(arguments)
    locations = Locations.of()
    trust = Trust(locations)
    if options.action == "take":
        trust.take()
        print_text(f"{locations.project} is no longer trusted")
        return 0
    review = trust.review()
    for request in review.requests:
        print_text(f"  {visible_line(request)}")
    if not review.requests:
        print_text(f"{locations.project} requests nothing that needs trust")
        return 0
    if options.action == "give":
        trust.give(review)
    given = trust.covers(review) and trust.covers_own(review)
    print_text(f"{locations.project} is {'trusted' if given else 'not trusted: callwright trust give'}")
    return 0 if given else 3
