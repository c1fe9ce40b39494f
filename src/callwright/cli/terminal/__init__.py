"""The interactive face: an input line that stays at the bottom while everything else scrolls above it."""
