"""The words search treats specially: those that say nothing, and those that say the same."""

from callwright.registry.stem import stem

_SILENT_WORDS = """
a about above after again against all also am an and any are aren as at be because been before being below between
both but by can cannot could couldn d did didn do does doesn doing don down during each either else few for from
further had has have having he her here hers herself him himself his how i if in into is isn it its itself just ll
m me more most my myself no nor not now of off on once only or other our ours ourselves out over own re s same she
should so some such t than that the their theirs them themselves then there these they this those through to too
under until up upon ve very was we were what when where whether which while who whom whose why will with within
without won would you your yours yourself yourselves
able dear hello help hey hi kindly know let like maybe need needed needs ok okay please really tell thank thanks
want wanted wants
"""

_SAME_WORDS = """
add create insert make new
remove delete erase rm unlink
update edit modify change
get fetch retrieve obtain
list ls enumerate
find search lookup query
show display view
run execute exec launch
copy cp duplicate clone
move mv rename
send submit
start begin
stop end terminate kill
calculate compute
convert transform
buy purchase order
book reserve
folder directory dir
file document
image picture photo
email mail
repository repo
database db
message msg
settings configuration config preferences
authenticate login signin
movie film
song track music
car vehicle automobile
article news
price cost
trip travel journey
job career
invoice bill
weather forecast
meeting appointment
shop store
phone telephone
town city
summarize summary
authorization permission
"""

SILENT = frozenset(_SILENT_WORDS.split())
"""Function words, and the courtesies around a request: every request has them, no tool is known by them."""

WRITTEN = {stem(word): word for word in reversed(_SAME_WORDS.split())}
"""A word to show for the term of a synonym."""


def _synonyms() -> dict[str, tuple[str, ...]]:
    known: dict[str, tuple[str, ...]] = {}
    for line in _SAME_WORDS.strip().splitlines():
        group = list(dict.fromkeys(map(stem, line.split())))
        for term in group:
            known[term] = (*known.get(term, ()), *(other for other in group if other != term))
    return known


SYNONYMS = _synonyms()
"""Terms that mean the same on any list of tools, by term."""
