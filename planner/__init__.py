"""Compiles hinted SQL text to a plan. Knows sqlglot and the plan document, never Spark."""
