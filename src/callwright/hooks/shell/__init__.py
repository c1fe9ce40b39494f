"""Hooks that run shell commands, in the format of terminal agents."""
