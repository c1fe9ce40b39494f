"""Benchmarks: processor time as a ratio to a baseline in the same run."""
