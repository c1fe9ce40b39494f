"""Speed, measured as a ratio to a floor in the same run."""
