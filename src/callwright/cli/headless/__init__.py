"""The `-p` mode: one prompt in, text or JSON out."""
