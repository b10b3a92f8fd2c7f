"""Result rows for the caller of a run: kept in files by the run, read back batch by batch, written as text or JSON.

No plan can request this. The caller passes a directory to the run: ``execute(plan, results=directory)``.
"""
