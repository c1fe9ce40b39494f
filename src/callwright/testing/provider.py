"""A model that says what it was told to say; it lives among the providers, where `script:FILE` is its name."""

from callwright.providers.scripted import BrokenOff, Line, Script, ScriptedProvider

__all__ = ["BrokenOff", "Line", "Script", "ScriptedProvider"]
