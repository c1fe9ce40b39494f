"""The local page: a server for watching agents, answering their questions and trying tools and rules."""
