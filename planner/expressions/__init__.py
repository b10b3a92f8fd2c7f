"""Typed expressions: their nodes, common types, Flink's functions, and the equivalent Spark SQL."""
