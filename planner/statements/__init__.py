"""The statements of a script: their grammar, and what they say as data."""
