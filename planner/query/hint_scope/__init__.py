"""Matches the hints of a query block with the inputs that they name."""
