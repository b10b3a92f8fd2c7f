"""Edits of settings: one value at a path with all that follows from it, and why a setting has its value."""
