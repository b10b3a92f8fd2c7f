"""The SQL client: it runs statements in order in one session, from a script or typed in.

It imports neither planner nor runtime. ``hintplan.planner.execute_statement`` returns the action of a statement as one
of :mod:`hintplan.plans.client.actions`. Spark is behind ``hintplan.runtime.run.sql_client``. The client loads both by
:func:`hintplan.plans.lazy.load`, and Spark only when a statement needs it.
"""
