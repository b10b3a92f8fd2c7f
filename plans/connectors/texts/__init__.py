"""Checks of texts in options: patterns with columns in braces, and values that look like secrets."""
