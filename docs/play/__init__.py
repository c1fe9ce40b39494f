"""Plays the pages of docs/start in a real terminal and draws what is seen, so that pages and pictures stay true."""
