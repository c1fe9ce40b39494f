"""Twenty small tasks with a real model: callwright and two other packages, against the same endpoint.

`python -m benchmarks model --model local:FILE.gguf`. Nothing here but the standard library: the Python of every package
imports this module.
"""
