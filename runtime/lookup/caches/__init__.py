"""Caches of lookups: recently looked up keys, or a whole table, and the schedule by which a table is loaded again."""
