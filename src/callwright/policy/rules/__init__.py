"""Permission rules in the syntax of terminal agents: parsing, matching, loading."""
