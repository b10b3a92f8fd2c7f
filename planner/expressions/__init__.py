"""Typed expressions: what they are, which types meet, Flink's functions, and the Spark SQL that means the same."""
