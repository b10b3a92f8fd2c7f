"""Edits of settings: one value at a path, with all consequences, and the explanation of a setting's value."""
