"""Hinted SQL text to a plan. Knows sqlglot and the plan document, never Spark.

>>> from hintplan import compile_sql
"""

from hintplan.planner.compile import compile_sql

__all__ = ["compile_sql"]
