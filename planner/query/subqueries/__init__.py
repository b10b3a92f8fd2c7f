"""Compiles sub-queries that stand for values, and LATERAL queries."""
