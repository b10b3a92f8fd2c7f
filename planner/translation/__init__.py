"""Translates syntax trees of expressions to typed expressions, and resolves the names of a query block."""
