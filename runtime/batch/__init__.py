"""Batch plans: Spark's own joins and aggregates over bounded inputs, and cached results that jobs share (FLIP-205)."""
