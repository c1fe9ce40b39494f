"""Frozen values every other floor speaks in; nothing here imports more than the standard library."""
