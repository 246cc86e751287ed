"""Sentences of a user: one parse, and what it becomes: a rule, a condition, or the end of a rule."""
