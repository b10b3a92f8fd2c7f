"""The SQL client: statements in order in one session, from a script or typed in.

It imports neither planner nor runtime: what a statement asks for comes from ``planner.execute_statement`` as one of
:mod:`plans.client.actions`, and Spark is behind ``runtime.run.sql_client``. Both are found by :func:`plans.lazy.load`,
Spark only when a statement needs it.
"""
