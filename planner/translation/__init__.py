"""Syntax trees of expressions to typed expressions, with the names of a query block resolved."""
