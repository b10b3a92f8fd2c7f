"""The logical plan written as the operators of a plan: ids, column names, expressions as text, TTLs with their origin.

One kind of relation, one module, one function; :mod:`hintplan.planner.lowering.lower` lists them.
"""
