"""How the command ends: one number for each thing a script may want to know."""

DONE, ERROR, USAGE, DENIED, PAUSED, LIMIT = 0, 1, 2, 3, 4, 5
INTERRUPTED = 130
TERMINATED = 143
