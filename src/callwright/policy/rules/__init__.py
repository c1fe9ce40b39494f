"""Permission rules in the syntax terminal agents share: parsing, matching, loading."""
