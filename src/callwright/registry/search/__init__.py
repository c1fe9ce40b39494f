"""Tool search: an index over names and descriptions, with optional embeddings."""
