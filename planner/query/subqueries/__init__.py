"""Sub-queries that are values: what they are compiled to, and what they are worth."""
