"""Rows for whoever asked for them: kept in files by the run, read back batch by batch, written as text or JSON.

No plan can name this: the run is told besides the plan (``execute(plan, results=directory)``).
"""
