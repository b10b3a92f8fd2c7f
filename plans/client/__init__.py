"""The SQL client: statements in order in one session, from a script or typed in.

It imports neither planner nor runtime: what a statement asks for comes from ``hintplan.planner.execute_statement`` as
one of :mod:`hintplan.plans.client.actions`, and Spark is behind ``hintplan.runtime.run.sql_client``. Both are found by
:func:`hintplan.plans.lazy.load`, Spark only when a statement needs it.
"""
