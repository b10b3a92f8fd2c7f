"""The statements of a script: their grammar, and their representation as data."""
