"""Keeps what files contained before they were changed, and restores it."""
