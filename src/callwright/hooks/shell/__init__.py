"""Hooks that run shell commands, in the format of other terminal agents."""
