"""Hints as they are written, and the account of what became of each."""
