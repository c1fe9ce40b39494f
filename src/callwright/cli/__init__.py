"""Arguments, terminal, exit codes."""
