"""Converts the logical plan to the operators of a plan: ids, column names, expressions as text, and TTLs with origins.

Each kind of relation has one function; :mod:`hintplan.planner.lowering.lower` lists them.
"""
