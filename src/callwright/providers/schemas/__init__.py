"""Schema dialects: what each vendor accepts, and how a tool's JSON Schema becomes that."""
