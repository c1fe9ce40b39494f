"""Runs the pages of docs/start in a real terminal and draws their pictures, so that both stay correct."""
