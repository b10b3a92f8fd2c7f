"""Caches of lookups: what was found lately, or a whole table, and when it is loaded again."""
