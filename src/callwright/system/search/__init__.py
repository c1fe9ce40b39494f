"""File search: walking, ignore files, globs, contents."""
