"""Operators that ask another system for every row: lookups of tables, calls of functions, and how they are set.

They carry groups of settings whether anyone speaks of them or not, and what one value is follows from others.
"""
