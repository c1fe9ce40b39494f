"""Repairs of calls that a model wrote almost right, and calls that it wrote as text.

names.py ─► arguments.py (lenient_json.py) ─► table.py (commands.py)    one call: its name, its JSON, its arguments
text_calls.py (markup_calls.py)                                         a whole message that is nothing but calls
"""
