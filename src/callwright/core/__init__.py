"""Frozen values that every other package uses; imports only the standard library."""
