"""Compiles sub-queries that stand for values."""
